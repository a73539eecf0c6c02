"""Requests share the connections of a key, against the APNs sandbox over TLS and HTTP/2."""

import asyncio
import gc

import pytest

from notifications_app.delivery.apns import pool
from notifications_app.delivery.apns.connection import Connection
from notifications_app.delivery.types import Accepted
from tests.delivery.apns.support import (
    behaving,
    client_of,
    credentials_of,
    deliver,
    destination_of,
    ended,
    received,
    until,
)
from tests.delivery.support import make_message


@pytest.mark.parametrize("_time", range(4))
def test_requests_that_wait_are_sent_in_order(narrow, _time):
    """Repeated, because it depends on when the server's SETTINGS arrive."""
    devices = [behaving(narrow, "slow", seconds=0.01) for _ in range(30)]
    outcomes = deliver(narrow, narrow.key(), *devices, proven=False, apns_connections=1)
    assert {type(outcome) for outcome in outcomes} == {Accepted}
    arrivals = [device.receipts[0].at for device in devices]
    assert arrivals == sorted(arrivals)


def test_a_waiting_request_that_gives_up_at_its_turn_passes_it_on(narrow):
    slow, last = behaving(narrow, "slow", seconds=0.1), narrow.register()
    credentials = credentials_of(narrow.key())

    async def whole():
        async with client_of(narrow, apns_connections=1) as client:

            async def send(device):
                return await client.send(make_message(), destination_of(device), credentials)

            async def send_and_cancel(device, others):
                outcome = await send(device)
                for other in others:
                    other.cancel()
                return outcome

            await send(narrow.register())
            others = []
            ahead = asyncio.ensure_future(send_and_cancel(slow, others))
            await received(slow)
            others += [asyncio.ensure_future(send(narrow.register())) for _ in range(5)]
            patient = asyncio.ensure_future(send(last))
            await ahead
            return await ended(patient)

    assert isinstance(asyncio.run(whole()), Accepted)
    assert len(last.receipts) == 1


def test_connections_that_have_ended_are_removed(sandbox):
    credentials = credentials_of(sandbox.key())

    def connections():
        gc.collect()
        return sum(type(thing) is Connection for thing in gc.get_objects())

    async def whole():
        before = connections()
        async with client_of(sandbox) as client:
            for device in [behaving(sandbox, "goaway") for _ in range(5)]:
                await client.send(make_message(), destination_of(device), credentials)
            await client.send(make_message(), destination_of(sandbox.register()), credentials)
            await until(lambda: connections() - before == 1)

    asyncio.run(whole())
    assert sandbox.connection_count == 6


def test_a_new_connection_follows_at_once_on_one_that_worked(sandbox, monkeypatch):
    credentials = credentials_of(sandbox.key())
    failing = behaving(sandbox, "close_after_accept", times=1)

    async def whole():
        async with client_of(sandbox, call_seconds=20.0) as client:
            for device in (failing, behaving(sandbox, "goaway")):
                outcome = await client.send(make_message(), destination_of(device), credentials)
            assert isinstance(outcome, Accepted)
            monkeypatch.setattr(pool, "FIRST_WAIT", 60.0)
            await until(lambda: not sandbox.open_connection_count)  # GOAWAY has arrived
            return await client.send(
                make_message(), destination_of(sandbox.register()), credentials
            )

    assert isinstance(asyncio.run(whole()), Accepted)
    assert sandbox.connection_count == 3


def test_a_pause_separates_attempts_to_connect_that_fail(sandbox, monkeypatch):
    monkeypatch.setattr(pool, "FIRST_WAIT", 60.0)
    credentials = credentials_of(sandbox.key())
    failing = behaving(sandbox, "close_after_accept", times=1)

    async def whole():
        async with client_of(sandbox, call_seconds=2.0) as client:
            await client.send(make_message(), destination_of(failing), credentials)
            return await client.send(
                make_message(), destination_of(sandbox.register()), credentials
            )

    assert asyncio.run(whole()).code == "timeout"
    assert sandbox.connection_count == 1


def test_a_waiting_send_fails_when_the_client_is_closed(narrow):
    hanging = behaving(narrow, "hang")
    credentials = credentials_of(narrow.key())

    async def whole():
        async with client_of(narrow, apns_connections=1) as client:
            await client.send(make_message(), destination_of(narrow.register()), credentials)
            sends = [
                asyncio.ensure_future(
                    client.send(make_message(), destination_of(device), credentials)
                )
                for device in (hanging, narrow.register(), narrow.register())
            ]
            await received(hanging)
            await client.close()
            return [outcome.code for outcome in await asyncio.gather(*sends)]

    assert asyncio.run(whole()) == ["connection_failed"] * 3
