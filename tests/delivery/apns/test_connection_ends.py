"""Requests on a connection that Apple's server ends.

An answer that was sent counts. Only requests that the server has not processed are sent again.
"""

import asyncio
import time

import pytest
from hyperframe.frame import GoAwayFrame, HeadersFrame, PingFrame, SettingsFrame

from notifications_app.delivery.apns import connection
from notifications_app.delivery.apns import transport as apns
from notifications_app.delivery.apns.frames import GoawayFilter
from notifications_app.delivery.types import Accepted, Deferred
from tests.delivery.apns.support import (
    CREDENTIALS,
    DEVICE,
    behaving,
    client_of,
    credentials_of,
    deliver,
    one_who_says,
    target_of,
)
from tests.delivery.support import make_message


@pytest.mark.parametrize(
    ("mode", "connections"), [("refused_stream", 1), ("goaway_unprocessed", 2)]
)
def test_a_request_that_the_server_has_not_processed_is_sent_again(sandbox, key, mode, connections):
    device = behaving(sandbox, mode, times=1)
    [outcome] = deliver(sandbox, key, device)
    assert isinstance(outcome, Accepted)
    assert [receipt.status for receipt in device.receipts] == [None, 200]
    assert len({receipt.headers["apns-id"] for receipt in device.receipts}) == 1
    assert sandbox.connection_count == connections


@pytest.mark.parametrize("mode", ["refused_stream", "goaway_unprocessed"])
def test_unprocessed_requests_are_not_sent_again_without_end(sandbox, key, mode):
    device = behaving(sandbox, mode)
    [outcome] = deliver(sandbox, key, device)
    assert (outcome.code, outcome.outage) == ("not_processed", True)
    assert len(device.receipts) == 3


def test_goaway_separates_answered_requests_from_those_sent_again(sandbox, key):
    below = behaving(sandbox, "slow", seconds=0.2)
    above = behaving(sandbox, "goaway_unprocessed", times=1)
    outcomes = deliver(sandbox, key, below, above)
    assert {type(outcome) for outcome in outcomes} == {Accepted}
    assert (len(below.receipts), len(above.receipts)) == (1, 2)
    assert above.receipts[1].connection != below.receipts[0].connection


def test_after_goaway_the_next_request_uses_a_new_connection(sandbox, key):
    async def whole():
        async with client_of(sandbox) as client:
            for device in (behaving(sandbox, "goaway"), sandbox.register()):
                outcome = await client.send(make_message(), target_of(device), credentials_of(key))
                assert isinstance(outcome, Accepted)

    asyncio.run(whole())
    assert sandbox.connection_count == 2


def test_a_success_counts_even_if_the_connection_ends_right_after_its_header(sandbox, key):
    device = behaving(sandbox, "endless")
    assert deliver(sandbox, key, device) == [Accepted()]
    assert len(device.receipts) == 1


def test_an_answer_before_a_reset_is_read_although_more_was_sent_after_it(sandbox, key):
    device, cutting, later = sandbox.register(), behaving(sandbox, "reset"), sandbox.register()

    async def whole():
        async with client_of(sandbox) as client:
            credentials = credentials_of(key)
            await client.send(make_message(), target_of(sandbox.register()), credentials)
            sends = [_begun(client, each, credentials) for each in (device, cutting)]
            await asyncio.sleep(0)  # they are opened,
            sends.append(_begun(client, later, credentials))
            await asyncio.sleep(0)  # and sent; the third is opened
            end = time.monotonic() + 20
            while sandbox.open_connection_count:  # nothing is read until the server has closed
                assert time.monotonic() < end
                time.sleep(0.005)  # noqa: ASYNC251 (the loop is to be held up)
            return await asyncio.gather(*sends)

    first, *others = asyncio.run(whole())
    assert isinstance(first, Accepted)
    assert others == [Deferred("connection_failed", "ConnectionLostError", outage=True)] * 2
    assert [len(each.receipts) for each in (device, cutting, later)] == [1, 1, 0]


def _begun(client, device, credentials):
    return asyncio.ensure_future(client.send(make_message(), target_of(device), credentials))


def test_an_answer_before_a_frame_that_breaks_the_protocol_counts(tmp_path):
    answer = HeadersFrame(1, data=b"\x88", flags=["END_HEADERS", "END_STREAM"])  # :status: 200
    broken = PingFrame(0, b"12345678").serialize()
    broken = b"\0\0\7" + broken[3:-1]
    says = SettingsFrame(0).serialize() + answer.serialize() + broken

    async def whole():
        async with one_who_says(says, tmp_path) as (server, ca_file, _):
            client = apns.Client(server=server, ca_file=ca_file)
            try:
                return await client.send(make_message(), target_of(DEVICE), CREDENTIALS)
            finally:
                await client.close()

    assert asyncio.run(whole()) == Accepted()


def test_a_new_connection_takes_over_when_the_stream_numbers_are_used_up(sandbox, key, monkeypatch):
    monkeypatch.setattr(connection, "LAST_STREAM_ID", 9)
    devices = [sandbox.register() for _ in range(12)]
    outcomes = deliver(sandbox, key, *devices)
    assert {type(outcome) for outcome in outcomes} == {Accepted}
    assert sandbox.connection_count == 3


@pytest.mark.parametrize("size", [1, 7, 9, 1_000])
def test_goaway_frames_are_separated_from_others_however_they_arrive(size):
    ping = PingFrame(0, b"12345678").serialize()
    goaway = GoAwayFrame(0, last_stream_id=5, error_code=2, additional_data=b"{}").serialize()
    sent = ping + goaway + ping + goaway
    parted, seen, others = GoawayFilter(), [], []
    for start in range(0, len(sent), size):
        passed, goaways = parted.feed(sent[start : start + size])
        others += passed
        seen += [(frame.last_stream_id, bytes(frame.additional_data)) for frame in goaways]
    assert (others, seen) == ([ping, ping], [(5, b"{}")] * 2)
