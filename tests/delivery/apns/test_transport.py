"""Outcomes of the iOS transport, against the APNs sandbox over TLS and HTTP/2."""

import asyncio
import json
import logging
import time
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from notifications_app.delivery.apns import connection, pool, provider_token
from notifications_app.delivery.apns import transport as apns
from notifications_app.delivery.apns.provider_token import authorization
from notifications_app.delivery.types import Accepted, Deferred, Gone, Misconfigured, Rejected
from tests.delivery.apns.support import (
    behaving,
    client_of,
    credentials_of,
    deliver,
    destination_of,
    received,
    until,
)
from tests.delivery.support import make_message, seconds_for


def test_a_message_arrives(sandbox, key):
    device = sandbox.register()
    message = make_message(topic="weather", urgency="low", data={"plan": "gold"})
    [outcome] = deliver(sandbox, key, device, message=message)
    [receipt] = sandbox.messages(device.token)
    assert receipt.accepted
    assert outcome == Accepted()
    assert json.loads(receipt.payload)["data"] == {"plan": "gold"}
    assert receipt.headers["apns-collapse-id"] == "weather"
    assert receipt.headers["apns-priority"] == "5"
    left = int(receipt.headers["apns-expiration"]) - receipt.at
    assert 3_590 < left < 3_602


def test_a_batch_uses_one_connection(sandbox, key, monkeypatch):
    monkeypatch.setattr(connection, "PROOF_SECONDS", 20.0)
    devices = [sandbox.register() for _ in range(300)]
    outcomes = deliver(sandbox, key, *devices, proven=False)
    assert {type(outcome) for outcome in outcomes} == {Accepted}
    assert sandbox.connection_count == 1
    assert {len(device.receipts) for device in devices} == {1}


def test_large_messages_wait_for_the_servers_window(sandbox, key):
    devices = [sandbox.register() for _ in range(60)]
    message = make_message(data={"text": "x" * 3_700})
    outcomes = deliver(sandbox, key, *devices, message=message)
    assert {type(outcome) for outcome in outcomes} == {Accepted}
    assert {json.loads(device.receipts[0].payload)["data"]["text"] for device in devices} == {
        "x" * 3_700
    }


@pytest.mark.parametrize(
    ("mode", "options", "outcome"),
    [
        ("bad_device_token", {}, Gone("bad_device_token", "400 BadDeviceToken", suspect=True)),
        ("throttled", {"retry_after": 7}, Deferred("throttled", "429 TooManyRequests", 7.0)),
        ("unavailable", {}, Deferred("service_error", "503 ServiceUnavailable", 10.0, outage=True)),
        ("header_only", {"status": 500}, Deferred("service_error", "500", 10.0, outage=True)),
        ("empty_data", {"status": 413}, Rejected("payload_too_large", "413 ChosenByTheUser")),
        ("rst_stream", {}, Deferred("stream_reset", "INTERNAL_ERROR", outage=True)),
        (
            "close_after_accept",
            {},
            Deferred("connection_failed", "ConnectionLostError", outage=True),
        ),
        ("reset", {}, Deferred("connection_failed", "ConnectionLostError", outage=True)),
        ("garbage", {}, Deferred("connection_failed", "ConnectionLostError", outage=True)),
        ("hang", {}, Deferred("timeout", outage=True)),
    ],
)
def test_each_answer_becomes_its_outcome_and_nothing_is_sent_twice(
    sandbox, key, mode, options, outcome
):
    device = behaving(sandbox, mode, **options)
    seconds = seconds_for(getattr(outcome, "code", ""))
    assert deliver(sandbox, key, device, call_seconds=seconds) == [outcome]
    assert len(device.receipts) == 1


def test_only_the_beginning_of_a_long_answer_is_read(sandbox, key):
    body = '{"more":"' + "x" * 100_000 + '","reason":"BadTopic"}'
    device = behaving(sandbox, "error", status=400, body=body)
    [outcome] = deliver(sandbox, key, device)
    assert (outcome.code, outcome.detail[:14]) == ("foreign_response", '400 {"more":"x')


def test_a_dead_token_is_gone_since_apples_timestamp(sandbox, key):
    device = behaving(sandbox, "unregistered", timestamp=1_700_000_000_000)
    since = datetime.fromtimestamp(1_700_000_000, UTC)
    assert deliver(sandbox, key, device) == [Gone("unregistered", "410 Unregistered", since)]


@pytest.mark.parametrize(
    ("mode", "outcome"),
    [
        ("revoked", Misconfigured("key_refused", "403 InvalidProviderToken")),
        ("expired", Deferred("provider_token_expired", "403 ExpiredProviderToken", 60.0)),
        (
            "wrong_environment",
            Misconfigured("key_for_other_environment", "403 BadEnvironmentKeyIdInToken"),
        ),
    ],
)
def test_refused_credentials_are_told_from_dead_devices(sandbox, key, mode, outcome):
    key.behave(mode)
    assert deliver(sandbox, key, sandbox.register(), proven=False) == [outcome]


# Keys


def test_apps_of_a_team_share_a_connection(sandbox, key):
    key.topics.add("com.example.other")
    devices = [sandbox.register(), sandbox.register("com.example.other")]

    async def whole():
        async with client_of(sandbox) as client:
            for device in devices:
                credentials = credentials_of(key, topic=device.topic)
                assert isinstance(
                    await client.send(make_message(), destination_of(device), credentials), Accepted
                )

    asyncio.run(whole())
    assert sandbox.connection_count == 1


def test_each_team_and_environment_has_its_own_connections(sandbox, key):
    async def whole():
        async with client_of(sandbox) as client:
            all_of_them = [credentials_of(key), credentials_of(key, environment="production")]
            for credentials in [*all_of_them, credentials_of(sandbox.key("OTHERTEAM1"))]:
                outcome = await client.send(
                    make_message(), destination_of(sandbox.register()), credentials
                )
                assert isinstance(outcome, Accepted)

    asyncio.run(whole())
    assert sandbox.connection_count == 3


def test_new_credentials_take_over_while_calls_with_the_old_ones_finish(sandbox, key):
    slow = behaving(sandbox, "slow", seconds=0.3)

    async def whole():
        async with client_of(sandbox) as client:
            old = asyncio.ensure_future(
                client.send(make_message(), destination_of(slow), credentials_of(key, 1))
            )
            await received(slow)
            new = credentials_of(sandbox.key(), 2)
            return await client.send(
                make_message(), destination_of(sandbox.register()), new
            ), await old

    assert {type(outcome) for outcome in asyncio.run(whole())} == {Accepted}
    assert len(slow.receipts) == 1


def test_idle_connections_of_unused_keys_are_closed(sandbox, key, monkeypatch):
    monkeypatch.setattr(apns, "MAX_POOLS", 2)
    monkeypatch.setattr(pool, "CLOSE_SECONDS", 0.0)
    slow = behaving(sandbox, "slow", seconds=0.5)

    async def whole():
        async with client_of(sandbox) as client:
            in_use = asyncio.ensure_future(
                client.send(make_message(), destination_of(slow), credentials_of(key))
            )
            await received(slow)
            for _ in range(4):
                other = credentials_of(sandbox.key())
                await client.send(make_message(), destination_of(sandbox.register()), other)
            await until(lambda: sandbox.open_connection_count <= 2)
            return await in_use

    assert isinstance(asyncio.run(whole()), Accepted)
    assert len(slow.receipts) == 1


@pytest.mark.parametrize("mode", ["accept", "slow"])
def test_a_new_provider_token_gets_a_new_connection(sandbox, key, monkeypatch, mode):
    """Apple refuses a second one within 20 minutes on the same connection
    (TooManyProviderTokenUpdates)."""
    monkeypatch.setattr(provider_token, "GRID", 60)
    monkeypatch.setattr(connection, "PROOF_SECONDS", 20.0)
    clock = [time.time()]
    monkeypatch.setattr(apns, "authorization", lambda key, _: authorization(key, clock[0]))
    first = behaving(sandbox, mode, **({"seconds": 0.3} if mode == "slow" else {}))
    others = [sandbox.register() for _ in range(5)]

    async def whole():
        async with client_of(sandbox) as client:
            credentials = credentials_of(key)
            before = asyncio.ensure_future(
                client.send(make_message(), destination_of(first), credentials)
            )
            await (received(first) if mode == "slow" else before)
            clock[0] += 60
            sends = [
                client.send(make_message(), destination_of(each), credentials) for each in others
            ]
            outcomes = await asyncio.gather(before, *sends)
            if mode == "accept":  # no call was in flight on the old one
                await until(lambda: sandbox.open_connection_count <= 1)
            return outcomes

    assert {type(outcome) for outcome in asyncio.run(whole())} == {Accepted}
    assert sandbox.connection_count == 2
    tokens = [each.receipts[0].headers["authorization"] for each in (first, *others)]
    assert len({*tokens}) == 2


# Our own errors


def test_our_own_errors_send_nothing(sandbox, key):
    async def whole():
        async with client_of(sandbox) as client:
            device, good = sandbox.register(), credentials_of(key)
            large = make_message(data={"text": "x" * 4_096})
            unreadable = replace(good, key=replace(good.key, private_key="no key"))
            return [
                await client.send(make_message(), destination_of(device, address="x/y"), good),
                await client.send(large, destination_of(device), good),
                await client.send(make_message(topic="a\nb"), destination_of(device), good),
                await client.send(make_message(), destination_of(device), unreadable),
            ]

    outcomes = asyncio.run(whole())
    assert outcomes == [
        Rejected("malformed_token"),
        Rejected("payload_too_large", "more than 4096 bytes"),
        Rejected("bad_request", "a topic is not printable ASCII"),
        Misconfigured("key_unreadable"),
    ]
    assert not any(outcome.was_called for outcome in outcomes)
    assert sandbox.connection_count == 0


def test_an_unexpected_error_is_deferred_and_logged_without_the_token(sandbox, key, caplog):
    async def whole():
        async with client_of(sandbox) as client:
            destination = destination_of(sandbox.register())
            message = make_message(urgency="unknown")
            return await client.send(message, destination, credentials_of(key)), destination.address

    with caplog.at_level(logging.DEBUG):
        outcome, token = asyncio.run(whole())
    assert outcome == Deferred("unexpected_error", "KeyError")
    assert [record.error for record in caplog.records if record.levelname == "ERROR"] == [
        "KeyError"
    ]
    assert token not in caplog.text


def test_logs_name_no_device(sandbox, key, caplog):
    devices = [behaving(sandbox, mode) for mode in ("goaway_unprocessed", "reset", "rst_stream")]
    with caplog.at_level(logging.DEBUG):
        for device in devices:
            deliver(sandbox, key, device)
    shown = " ".join(str(vars(record)) for record in caplog.records)
    assert not [device for device in devices if device.token in shown]
