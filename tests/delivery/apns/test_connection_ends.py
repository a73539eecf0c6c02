"""Requests on a connection that Apple's server ends.

An answer that was sent counts. Only requests that the server has not processed are sent again.
"""

import asyncio
import socket
import time
from contextlib import suppress

import pytest
from hpack import Encoder
from hyperframe.frame import (
    DataFrame,
    HeadersFrame,
    PingFrame,
    RstStreamFrame,
    SettingsFrame,
)

from notifications_app.delivery.apns import connection
from notifications_app.delivery.apns import transport as apns
from notifications_app.delivery.apns.server import Server, tls_for_http2
from notifications_app.delivery.types import Accepted, Deferred, Rejected
from sandbox.certificate import server_tls
from tests.delivery.apns.support import (
    CREDENTIALS,
    DEVICE,
    behaving,
    client_of,
    credentials_of,
    deliver,
    destination_of,
    one_who_says,
    until,
)
from tests.delivery.support import connection_settings, make_message


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
                outcome = await client.send(
                    make_message(), destination_of(device), credentials_of(key)
                )
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
            await client.send(make_message(), destination_of(sandbox.register()), credentials)
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
    return asyncio.ensure_future(client.send(make_message(), destination_of(device), credentials))


def test_an_answer_before_a_frame_that_breaks_the_protocol_counts(tmp_path):
    answer = HeadersFrame(1, data=b"\x88", flags=["END_HEADERS", "END_STREAM"])  # :status: 200
    broken = PingFrame(0, b"12345678").serialize()
    broken = b"\0\0\7" + broken[3:-1]
    says = SettingsFrame(0).serialize() + answer.serialize() + broken

    assert asyncio.run(_answered(says, tmp_path)) == Accepted()


async def _answered(says, tmp_path):
    async with one_who_says(says, tmp_path) as (server, ca_file, _):
        client = apns.Client(connection_settings(apns_server=server, ca_file=ca_file))
        try:
            return await client.send(make_message(), destination_of(DEVICE), CREDENTIALS)
        finally:
            await client.close()


def test_an_answer_may_begin_with_an_interim_one_and_end_with_trailers(tmp_path):
    says = [
        SettingsFrame(0),
        HeadersFrame(1, data=b"\x08\x03103", flags=["END_HEADERS"]),
        HeadersFrame(1, data=b"\x8c", flags=["END_HEADERS"]),  # :status: 400
        DataFrame(1, b'{"reason":"BadMessageId"}'),
        HeadersFrame(1, data=b"\x08\x03200", flags=["END_HEADERS", "END_STREAM"]),
    ]
    outcome = asyncio.run(_answered(b"".join(each.serialize() for each in says), tmp_path))
    assert outcome == Rejected("bad_request", "400 BadMessageId")


def test_a_status_that_is_no_status_counts_as_an_outage(tmp_path):
    fields = Encoder().encode([(":status", "2" * 5_000)])
    answer = HeadersFrame(1, fields, flags=["END_HEADERS", "END_STREAM"])
    says = SettingsFrame(0).serialize() + answer.serialize()

    assert asyncio.run(_answered(says, tmp_path)).code == "service_error"


def test_a_success_whose_stream_never_ends_takes_no_place_for_long(tmp_path, monkeypatch):
    monkeypatch.setattr(connection, "IDLE_SECONDS", 0.05)
    head = HeadersFrame(1, b"\x88", flags=["END_HEADERS"])  # :status: 200
    says = SettingsFrame(0).serialize() + head.serialize()

    async def whole():
        async with one_who_says(says, tmp_path) as (server, ca_file, heard):
            client = apns.Client(connection_settings(apns_server=server, ca_file=ca_file))
            outcome = await client.send(make_message(), destination_of(DEVICE), CREDENTIALS)
            cancelled = RstStreamFrame(1, error_code=8).serialize()
            await until(lambda: cancelled in heard[0])
            await client.close()
            return outcome

    assert asyncio.run(whole()) == Accepted()


def test_a_server_that_asks_much_and_reads_nothing_is_left(tmp_path, monkeypatch):
    monkeypatch.setattr(connection, "MAX_UNREAD", 50_000)
    pings = PingFrame(0, b"12345678").serialize() * 4_000

    async def flood(_reader, writer):  # nothing reads, so acknowledgements remain with the client
        with suppress(ConnectionError):
            for _ in range(200):
                writer.write(pings)
                await writer.drain()
        writer.close()

    async def whole():
        tls, pem = server_tls("127.0.0.1")
        (tmp_path / "ca.pem").write_text(pem)
        with socket.create_server(("127.0.0.1", 0)) as listening:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            port = listening.getsockname()[1]
            async with await asyncio.start_server(flood, sock=listening, ssl=tls):
                made = await Server("127.0.0.1", port).connect(
                    tls_for_http2(str(tmp_path / "ca.pem")), lambda: None
                )
                await made.wait_closed(30.0)

    logged = []
    monkeypatch.setattr(connection.logger, "info", lambda _, **fields: logged.append(fields))
    asyncio.run(whole())
    assert logged == [{"reason": "unread"}]


def test_a_new_connection_takes_over_when_the_stream_numbers_are_used_up(sandbox, key, monkeypatch):
    monkeypatch.setattr(connection, "LAST_STREAM_ID", 9)
    devices = [sandbox.register() for _ in range(12)]
    outcomes = deliver(sandbox, key, *devices)
    assert {type(outcome) for outcome in outcomes} == {Accepted}
    assert sandbox.connection_count == 3
