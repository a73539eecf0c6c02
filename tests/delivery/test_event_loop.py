"""The event loop of a worker process that did not run for a while."""

import asyncio
import time
from uuid import uuid4

import pytest

from notifications_app.delivery import event_loop
from notifications_app.delivery.event_loop import PatientLoop
from notifications_app.delivery.types import Accepted, BrowserDestination, Deferred
from sandbox import running_apns_sandbox, running_sandbox
from tests.delivery import support
from tests.delivery.apns import support as ios_support

CALL_SECONDS = 2.0


def _by_web(mode, **options):
    with running_sandbox() as sandbox:
        device = sandbox.subscribe()
        device.behave(mode, **options)
        destination = BrowserDestination(
            uuid4(), device.endpoint, "tracking", device.p256dh, device.auth, support.KEY_ID
        )
        client = lambda: support.make_client(sandbox.origin, call_seconds=CALL_SECONDS)  # noqa: E731
        return _held_up(client, destination, support.CREDENTIALS, device)


def _by_ios(mode, **options):
    with running_apns_sandbox() as sandbox:
        device = ios_support.behaving(sandbox, mode, **options)
        credentials = ios_support.credentials_of(sandbox.key())
        client = lambda: ios_support.make_client(sandbox, call_seconds=CALL_SECONDS)  # noqa: E731
        return _held_up(client, ios_support.destination_of(device), credentials, device)


def _held_up(make_client, destination, credentials, device):
    """The outcome of a call if the loop stands still from before the answer until long after the
    call's time."""

    async def whole():
        client = make_client()
        send = asyncio.ensure_future(client.send(support.make_message(), destination, credentials))
        await ios_support.received(device)
        time.sleep(CALL_SECONDS + 1.0)  # noqa: ASYNC251 (the loop is to be held up)
        outcome = await send
        await client.close()
        return outcome

    with asyncio.Runner(loop_factory=PatientLoop) as runner:
        return runner.run(whole())


@pytest.fixture(params=[_by_web, _by_ios], ids=["web", "ios"])
def call_held_up(request, monkeypatch):
    monkeypatch.setattr(event_loop, "_HELD_UP_SECONDS", 0.5)
    return request.param


@pytest.mark.parametrize("seconds", [0.4, CALL_SECONDS + 1.5])
def test_an_answer_that_arrives_while_the_process_is_paused_or_soon_after_is_read(
    seconds, call_held_up
):
    """The pause takes no time from the call."""
    assert isinstance(call_held_up("slow", seconds=seconds), Accepted)


def test_a_missing_answer_is_not_awaited_without_end(call_held_up):
    assert call_held_up("hang") == Deferred("timeout", outage=True)
