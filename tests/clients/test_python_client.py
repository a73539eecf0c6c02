"""clients/python against the running service, and its retries against a server that fails."""

import asyncio
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from pushsvc_client import AsyncClient, Client, Refused, Unreachable, calls, types
from tests import openapi
from tests.clients.failing import BUSY, SENT, answering

CHECKOUT = Path(__file__).resolve().parent.parent.parent
PACKAGE = CHECKOUT / "clients" / "python"


@pytest.fixture
def push(shop):
    with Client(shop.url, channel=shop.channel, key=shop.key) as push:
        yield push


def test_a_send_is_delivered_and_read(push, shop):
    push.subscribe(shop.browser())
    sent = push.send(title="Hello", body="It works.", url="https://example.com/")

    shown = push.wait(sent["notification_id"])

    assert (shown["status"], shown["delivered_count"], shown["recipient_count"]) == ("sent", 1, 1)
    assert [each["notification_id"] for each in push.notifications()] == [sent["notification_id"]]
    assert push.statistics()["subscriber_count"] == 1


def test_an_unsubscribed_browser_is_sent_nothing(push, shop):
    browser = shop.browser()
    push.subscribe(browser)
    push.unsubscribe({"endpoint": browser["endpoint"]})

    sent = push.send(body="Anybody?")

    assert push.wait(sent["notification_id"])["recipient_count"] == 0


def test_a_scheduled_notification_is_cancelled(push):
    sent = push.send(body="Later", scheduled_at="2999-01-01T00:00:00Z")

    push.cancel(sent["notification_id"])

    assert push.notification(sent["notification_id"])["status"] == "cancelled"


def test_a_scheduled_notification_waits_while_it_is_paused(push):
    sent = push.send(body="Later", scheduled_at="2999-01-01T00:00:00Z")

    push.pause(sent["notification_id"])
    paused = push.details(sent["notification_id"])
    push.resume(sent["notification_id"])
    resumed = push.details(sent["notification_id"])

    assert (paused["paused"], resumed["paused"]) == (True, False)
    assert paused["content"]["body"] == "Later"


def test_only_what_is_being_sent_is_stopped(push):
    sent = push.send(body="Later", scheduled_at="2999-01-01T00:00:00Z")

    with pytest.raises(Refused, match="not_running"):
        push.stop(sent["notification_id"])


def test_the_state_of_each_platform_is_read(push):
    web = push.platforms()["platforms"]["web"]

    assert (web["enabled"], web["paused"], web["credential"]["kind"]) == (True, None, "vapid_key")


@pytest.mark.parametrize(
    ("answer", "schema"),
    [
        (types.Sent, "SendOutput"),
        (types.Notification, "NotificationOutput"),
        (types.ChannelStatistics, "ChannelStatisticsOutput"),
        (types.NotificationDetails, "NotificationDetailsOutput"),
        (types.Audience, "AudienceOutput"),
        (types.Timing, "TimingOutput"),
        (types.Content, "ContentOutput"),
        (types.PlatformDetails, "PlatformDetailsOutput"),
        (types.Release, "ReleaseOutput"),
        (types.Reason, "ReasonOutput"),
        (types.PlatformState, "PlatformStateOutput"),
        (types.PlatformPause, "PauseOutput"),
        (types.Credential, "CredentialOutput"),
    ],
)
def test_the_types_have_the_fields_of_the_openapi_document(answer, schema):
    described = openapi.document()["components"]["schemas"][schema]["properties"]

    assert answer.__annotations__.keys() == described.keys()


def test_the_same_idempotency_key_sends_once(push):
    first, second = (push.send(body="Once", idempotency_key="order-1") for _ in range(2))

    assert first == second


def test_an_error_has_its_code_and_its_faults(push):
    with pytest.raises(Refused) as refused:
        push.send(body="", target_platforms=["web", "fax"])

    assert (refused.value.status, refused.value.code) == (400, "validation_error")
    assert {fault.attr for fault in refused.value.faults} == {"body", "target_platforms.1"}


def test_the_asynchronous_client_has_the_same_results(shop):
    async def send():
        async with AsyncClient(shop.url, channel=shop.channel, key=shop.key) as push:
            await push.subscribe(shop.browser())
            sent = await push.send(body="It works.")
            shown = await push.wait(sent["notification_id"])
            assert (await push.details(sent["notification_id"]))["status"] == "sent"
            with pytest.raises(Refused, match="validation_error"):
                await push.send(body="")
            return shown["delivered_count"], len(await push.notifications())

    assert asyncio.run(send()) == (1, 1)


# Retries


def test_a_send_is_retried_with_the_same_idempotency_key():
    with failing(BUSY, BUSY, SENT) as (push, requests):
        assert push.send(body="Once")["notification_id"] == "one"

    assert len(requests) == 3
    assert len({headers["Idempotency-Key"] for headers in requests}) == 1


def test_two_sends_have_two_idempotency_keys():
    with failing(SENT, SENT) as (push, requests):
        push.send(body="One")
        push.send(body="Two")

    assert len({headers["Idempotency-Key"] for headers in requests}) == 2


def test_a_permanently_refused_request_is_not_retried():
    refusal = (400, {"code": "validation_error"}, {})
    with failing(refusal, SENT) as (push, requests), pytest.raises(Refused, match="validation"):
        push.send(body="Once")

    assert len(requests) == 1


def test_the_last_attempts_error_is_raised():
    with failing(*[BUSY] * 5) as (push, requests), pytest.raises(Refused, match="busy"):
        push.send(body="Once")

    assert len(requests) == 5


def test_a_broken_connection_is_retried():
    with failing(None, SENT) as (push, requests):
        assert push.send(body="Once")["notification_id"] == "one"

    assert len(requests) == 2


def test_a_server_without_answers_is_unreachable():
    with failing(None, None, retries=1) as (push, requests), pytest.raises(Unreachable):
        push.notification("one")

    assert len(requests) == 2


@pytest.mark.parametrize("status", [429, 503])
def test_a_retry_waits_for_as_long_as_the_answer_says(status):
    attempts = calls.attempts(calls.notification("one"), 1)
    next(attempts)

    assert attempts.send(httpx.Response(status, headers={"Retry-After": "7"})) == calls.Pause(7.0)


def test_an_id_is_quoted_as_one_part_of_the_path():
    assert calls.notification("../channel?x=1").path == "/notification/..%2Fchannel%3Fx%3D1"


@contextmanager
def failing(*answers, retries=4):
    """A client of a server that gives these answers, None being none; and the requests' headers."""
    with (
        answering(*answers) as (url, requests),
        Client(url, channel="shop", key="psk_x", retries=retries) as push,
    ):
        yield push, requests


# The package


def test_the_package_can_be_installed_by_its_path(tmp_path):
    install = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--no-deps", "--offline"]
    subprocess.run([*install, "--target", str(tmp_path), str(PACKAGE)], check=True)

    names = {path.name for path in (tmp_path / "pushsvc_client").iterdir()}
    assert names >= {"__init__.py", "client.py", "py.typed"}
