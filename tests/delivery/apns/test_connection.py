"""The iOS transport's use of its connections, against the APNs sandbox over TLS and HTTP/2."""

import asyncio
import gc
import random
import weakref

import pytest
from hyperframe.frame import PingFrame

from notifications_app.delivery.apns import connection as apns_connection
from notifications_app.delivery.apns import transport as apns
from notifications_app.delivery.apns.server import Server, tls_for_http2
from notifications_app.delivery.types import Accepted, Deferred, Gone, Misconfigured, Rejected
from sandbox.apns.server import running_apns_sandbox
from tests.delivery.apns.support import (
    CREDENTIALS,
    DEVICE,
    behaving,
    client_of,
    credentials_of,
    deliver,
    destination_of,
    make_client,
    one_who_says,
    received,
    until,
)
from tests.delivery.support import connection_settings, make_message

# One stream until a good token was seen


def test_the_first_request_goes_alone(sandbox, key, monkeypatch):
    monkeypatch.setattr(apns_connection, "PROOF_SECONDS", 20.0)
    first = behaving(sandbox, "slow", seconds=0.3)
    others = [sandbox.register() for _ in range(20)]
    outcomes = deliver(sandbox, key, first, *others, proven=False)
    assert {type(outcome) for outcome in outcomes} == {Accepted}
    assert sandbox.connection_count == 1
    assert min(device.receipts[0].at for device in others) >= first.receipts[0].at + 0.3


def test_refused_credentials_do_not_open_the_connection_for_more_requests(sandbox, key):
    """Not even if SETTINGS allow more."""
    refused = behaving(sandbox, "error", status=403, body={"reason": "InvalidProviderToken"})
    hanging = [behaving(sandbox, "hang") for _ in range(3)]
    outcomes = deliver(
        sandbox, key, refused, *hanging, proven=False, apns_connections=1, call_seconds=4.0
    )
    assert outcomes == [
        Misconfigured("key_refused", "403 InvalidProviderToken"),
        *[Deferred("timeout", outage=True)] * 3,
    ]
    (begun,) = (receipt.at for receipt in hanging[0].receipts)
    others = [receipt.at for device in hanging[1:] for receipt in device.receipts]
    assert all(at >= begun + 0.3 for at in others), "called while the first call was in flight"


def test_a_first_request_that_hangs_delays_others_only_until_a_new_connection_is_open(
    sandbox, key, monkeypatch
):
    monkeypatch.setattr(apns_connection, "PROOF_SECONDS", 0.5)
    first = behaving(sandbox, "hang")
    others = [sandbox.register() for _ in range(5)]
    outcomes = deliver(
        sandbox,
        key,
        first,
        *others,
        hanging=[first],
        proven=False,
        apns_connections=2,  # or a third one is opened if the second is slow, too
        call_seconds=60.0,
    )
    # It hung until the client was closed.
    lost = Deferred("connection_failed", "ConnectionLostError", outage=True)
    assert outcomes[0] == lost
    assert {type(outcome) for outcome in outcomes[1:]} == {Accepted}
    assert sandbox.connection_count == 2


# SETTINGS


def test_settings_that_lower_the_number_of_streams_are_obeyed(sandbox, key):
    limiting = behaving(sandbox, "streams", streams=1)
    devices = [behaving(sandbox, "slow", seconds=0.02) for _ in range(5)]

    async def whole():
        async with client_of(sandbox, apns_connections=1) as client:
            credentials = credentials_of(key)
            await client.send(make_message(), destination_of(limiting), credentials)
            sends = [client.send(make_message(), destination_of(d), credentials) for d in devices]
            return await asyncio.gather(*sends)

    assert {type(outcome) for outcome in asyncio.run(whole())} == {Accepted}
    assert {device.receipts[0].open_streams for device in devices} == {1}


def test_settings_that_raise_the_number_of_streams_again_are_used(sandbox, key):
    limiting = behaving(sandbox, "streams", streams=1)
    raising = behaving(sandbox, "streams", streams=4)
    devices = [behaving(sandbox, "hang") for _ in range(4)]

    async def whole():
        async with client_of(sandbox, apns_connections=1, call_seconds=20.0) as client:
            credentials = credentials_of(key)
            await client.send(make_message(), destination_of(limiting), credentials)
            await client.send(make_message(), destination_of(raising), credentials)
            sends = [
                asyncio.ensure_future(client.send(make_message(), destination_of(d), credentials))
                for d in devices
            ]
            await received(*devices)
            for send in sends:
                send.cancel()

    asyncio.run(whole())
    assert max(device.receipts[0].open_streams for device in devices) == 4


def test_a_server_of_few_streams_gets_more_connections_up_to_the_limit(monkeypatch):
    monkeypatch.setattr(apns_connection, "PROOF_SECONDS", 0.05)
    with running_apns_sandbox(streams=1) as narrow:
        devices = [behaving(narrow, "hang") for _ in range(5)]
        credentials = credentials_of(narrow.key())

        async def whole():
            async with client_of(narrow, apns_connections=3, call_seconds=30.0) as client:
                await client.send(make_message(), destination_of(narrow.register()), credentials)
                sends = [
                    asyncio.ensure_future(
                        client.send(make_message(), destination_of(d), credentials)
                    )
                    for d in devices
                ]
                await received(*devices[:3])
                await asyncio.wait(sends, timeout=0.2)
                for send in sends:
                    send.cancel()
                return [len(device.receipts) for device in devices]

        assert asyncio.run(whole()) == [1, 1, 1, 0, 0]
        assert narrow.connection_count == 3


# Timeouts and silence


def test_more_than_64_kib_of_error_bodies_do_not_stall_the_connection(sandbox, key):
    """The window of a connection is full after 17 of these answers."""
    body = '{"reason":"BadTopic","more":"' + "x" * 3_824 + '"}'
    assert len(body) * 17 == 65_535
    devices = [behaving(sandbox, "error", status=400, body=body) for _ in range(18)]
    outcomes = deliver(sandbox, key, *devices)
    assert {outcome.code for outcome in outcomes} == {"topic_refused"}
    assert sandbox.connection_count == 1


def test_a_timeout_leaves_the_connection_to_the_other_requests(sandbox, key):
    hanging, slow = behaving(sandbox, "hang"), behaving(sandbox, "slow", seconds=0.4)

    async def whole():
        async with client_of(sandbox) as patient:
            credentials = credentials_of(key)
            await patient.send(make_message(), destination_of(sandbox.register()), credentials)
            in_flight = asyncio.ensure_future(
                patient.send(make_message(), destination_of(slow), credentials)
            )
            impatient = patient.send(make_message(), destination_of(hanging), credentials)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(impatient, 0.1)
            after = await patient.send(
                make_message(), destination_of(sandbox.register()), credentials
            )
            return [after, await in_flight]

    assert {type(outcome) for outcome in asyncio.run(whole())} == {Accepted}
    assert sandbox.connection_count == 1


def test_each_of_several_hanging_requests_times_out(sandbox, key):
    """They share a timer, and began one after the other."""
    devices = [behaving(sandbox, "hang") for _ in range(3)]

    async def whole():
        async with client_of(sandbox, call_seconds=0.5) as client:
            credentials = credentials_of(key)
            await client.send(make_message(), destination_of(sandbox.register()), credentials)
            sends = []
            for device in devices:
                send = client.send(make_message(), destination_of(device), credentials)
                sends.append(asyncio.ensure_future(send))
                await asyncio.sleep(0.1)
            return await asyncio.wait_for(asyncio.gather(*sends), 60)

    assert asyncio.run(whole()) == [Deferred("timeout", outage=True)] * 3
    assert sandbox.connection_count == 1


def mute_server(tmp_path):
    return one_who_says(b"", tmp_path)


def test_a_connection_that_answers_no_ping_is_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr(apns_connection, "PING_SECONDS", 0.1)

    async def whole():
        async with mute_server(tmp_path) as (server, ca_file, heard):
            client = apns.Client(
                connection_settings(apns_server=server, ca_file=ca_file, call_seconds=2.0)
            )
            outcomes = []
            for _ in range(2):
                outcomes.append(
                    await client.send(make_message(), destination_of(DEVICE), CREDENTIALS)
                )
                await asyncio.sleep(1.0)  # the connection is given up
            await client.close()
            return outcomes, len(heard)

    assert asyncio.run(whole()) == ([Deferred("timeout", outage=True)] * 2, 2)


def test_an_idle_connection_is_checked_with_a_ping(tmp_path, monkeypatch):
    monkeypatch.setattr(apns_connection, "IDLE_SECONDS", 0.05)
    monkeypatch.setattr(apns_connection, "PING_SECONDS", 0.1)

    async def whole():
        async with mute_server(tmp_path) as (server, ca_file, heard):
            tls = tls_for_http2(ca_file)
            connection = await Server.parse(server).connect(tls, lambda: None)
            assert connection.room == 1
            await connection.wait_closed(5.0)
            return bytes(heard[0]), connection.room

    read, room = asyncio.run(whole())
    assert PingFrame(0, b"pushsvc?").serialize() in read
    assert room == 0


def test_the_first_request_after_long_silence_goes_out_with_a_ping(sandbox, key, monkeypatch):
    monkeypatch.setattr(apns_connection, "DOUBTFUL_SECONDS", -1.0)
    pings = []
    original = apns_connection.Connection._ping
    monkeypatch.setattr(
        apns_connection.Connection, "_ping", lambda self: (pings.append(1), original(self))
    )
    monkeypatch.setattr(apns_connection, "PING_SECONDS", 2.0)
    devices = [sandbox.register(), behaving(sandbox, "slow", seconds=2.5)]
    outcomes = deliver(sandbox, key, *devices)
    assert {type(outcome) for outcome in outcomes} == {Accepted}
    assert pings


def test_an_unused_connection_is_closed(sandbox, key, monkeypatch):
    monkeypatch.setattr(apns_connection, "IDLE_SECONDS", 0.05)
    monkeypatch.setattr(apns_connection, "UNUSED_SECONDS", 0.1)

    async def whole():
        async with client_of(sandbox) as client:
            await client.send(
                make_message(), destination_of(sandbox.register()), credentials_of(key)
            )
            assert sandbox.open_connection_count == 1
            await until(lambda: not sandbox.open_connection_count)
            again = destination_of(sandbox.register())
            return await client.send(make_message(), again, credentials_of(key))

    assert isinstance(asyncio.run(whole()), Accepted)


def test_a_connection_that_has_ended_is_removed_from_the_pool(tmp_path):
    async def whole():
        async with mute_server(tmp_path) as (server, ca_file, _):
            connection = await Server.parse(server).connect(tls_for_http2(ca_file), lambda: None)
            remembered = weakref.ref(connection)
            await connection.wait_closed(0.0)
            del connection
            await asyncio.sleep(0.05)
            gc.collect()
            return remembered()

    assert asyncio.run(whole()) is None


def test_closing_the_client_leaves_no_task_and_no_connection(sandbox, key):
    async def whole():
        client = make_client(sandbox)
        hanging = behaving(sandbox, "hang")
        send = asyncio.ensure_future(
            client.send(make_message(), destination_of(hanging), credentials_of(key))
        )
        await received(hanging)
        await client.close()
        outcome = await send
        return outcome, asyncio.all_tasks() - {asyncio.current_task()}

    outcome, tasks = asyncio.run(whole())
    assert (outcome.code, tasks) == ("connection_failed", set())


def test_each_request_gets_its_own_answer_among_many_kinds_of_answers(sandbox, key):
    chance = random.Random(20_261_120)  # noqa: S311 (the same in every run)
    modes = {
        "accept": Accepted,
        "no_apns_id": Accepted,
        "unregistered": Gone,
        "throttled": Deferred,
        "rst_stream": Deferred,
        "empty_data": Rejected,
        "header_only": Rejected,
        "hang": Deferred,
    }
    expected, devices, hanging = [], [], []
    for _ in range(300):
        mode = chance.choice(list(modes))
        options = {"status": 413} if mode in {"empty_data", "header_only"} else {}
        devices.append(behaving(sandbox, mode, **options))
        expected.append(modes[mode])
        if mode == "hang":
            hanging.append(devices[-1])
    outcomes = deliver(sandbox, key, *devices, hanging=hanging, call_seconds=60.0)
    assert [type(outcome) for outcome in outcomes] == expected
    assert {len(device.receipts) for device in devices} == {1}
    assert sandbox.connection_count == 1
