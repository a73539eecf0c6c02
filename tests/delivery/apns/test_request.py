import json
import time
from dataclasses import replace
from uuid import UUID, uuid4, uuid5

import pytest
from aioapns import PushType
from hpack import Decoder, Encoder
from hypothesis import given
from hypothesis import strategies as st

from notifications_app.delivery.apns.server import Server
from notifications_app.delivery.apns.transport import (
    MAX_PAYLOAD,
    ApnsKey,
    AppKey,
    MalformedFieldError,
    MalformedTokenError,
    build_request,
    encode,
    payload,
)
from notifications_app.delivery.client import PayloadTooLargeError
from notifications_app.delivery.types import Destination
from tests.delivery.support import make_message

CREDENTIALS = AppKey(ApnsKey("pem", "KEY1234567", "TEAM123456"), "com.example.app", "sandbox")
STORED = {
    "key": "pem",
    "key_id": "KEY1234567",
    "team_id": "TEAM123456",
    "topic": "com.example.app",
    "environment": "sandbox",
}
DEVICE = "A1" * 32
WALL = 1_795_000_000.9


def destination(**over):
    values = {"subscription_id": UUID(int=7), "address": DEVICE, "token": "tracking"}
    return Destination(**values | over)


def sent(message, to=None, *, now=None):
    """Headers and body of the message, as a server reads them."""
    moment = time.monotonic() if now is None else now
    request = build_request(message, to or destination(), CREDENTIALS, moment)
    headers, body = encode(request, authority="api.push.apple.com", signed="bearer x", now=WALL)
    return {name.decode(): value.decode() for name, value in headers}, body


def test_the_payload_holds_exactly_what_was_given():
    message = make_message(
        icon="https://example.org/i.png",
        url="https://example.org/",
        image="https://example.org/p.jpg",
        data={"plan": "gold"},
    )
    assert json.loads(payload(message, "tracking")) == {
        "aps": {
            "alert": {"title": "Rain", "body": "It rains."},
            "mutable-content": 1,
            "sound": "default",
        },
        "notification_id": str(message.notification_id),
        "icon": "https://example.org/i.png",
        "url": "https://example.org/",
        "image": "https://example.org/p.jpg",
        "data": {"plan": "gold"},
        "token": "tracking",
    }


def test_apples_own_keys_are_in_aps():
    ios = {
        "subtitle": "Order 17", "badge": 0, "category": "ORDER", "thread_id": "orders",
        "sound": {"name": "ding.wav", "critical": True, "volume": 0.8},
        "interruption_level": "time-sensitive", "relevance_score": 0.5,
        "target_content_id": "order", "content_available": True,
    }  # fmt: skip
    actions = [{"id": "buy", "title": "Buy"}]

    body = payload(make_message(ios=ios, actions=actions), "tracking")

    said = json.loads(body)
    assert said["actions"] == actions
    assert said["aps"] == {
        "alert": {"title": "Rain", "subtitle": "Order 17", "body": "It rains."},
        "mutable-content": 1,
        "badge": 0,
        "category": "ORDER",
        "thread-id": "orders",
        "sound": {"name": "ding.wav", "critical": 1, "volume": 0.8},
        "interruption-level": "time-sensitive",
        "relevance-score": 0.5,
        "target-content-id": "order",
        "content-available": 1,
    }
    assert b"true" not in body  # Apple's flags are numbers


@pytest.mark.parametrize(
    ("ios", "sound"),
    [({"sound": "ding.wav"}, "ding.wav"), ({}, "default"), ({"sound": None}, None)],
)
def test_a_sound_is_a_name_or_the_default_or_none(ios, sound):
    said = json.loads(payload(make_message(ios=ios), "tracking"))
    assert said["aps"].get("sound") == sound
    assert ("sound" in said["aps"]) is (sound is not None)


def test_omitted_content_is_left_out():
    said = json.loads(payload(make_message(title=""), "tracking"))
    assert said.keys() == {"aps", "notification_id", "token"}
    assert said["aps"]["alert"] == {"body": "It rains."}


def test_the_payload_is_compact_and_in_utf8():
    body = payload(make_message(body="Es regnet … „überall“ 🌧"), "tracking")
    assert "Es regnet … „überall“ 🌧".encode() in body
    assert b'":' in body
    assert b'": ' not in body


def test_a_payload_is_sent_as_it_was_measured():
    message = make_message(data={"a": "b"})
    assert sent(message)[1] == payload(message, "tracking")


def test_the_largest_payload_is_4096_bytes():
    room = MAX_PAYLOAD - len(payload(make_message(body="x"), "tracking")) + 1
    fitting = make_message(body="x" * room)
    assert len(sent(fitting)[1]) == 4_096
    with pytest.raises(PayloadTooLargeError):
        sent(make_message(body="x" * (room + 1)))


def test_the_headers_are_those_that_apple_documents():
    message = make_message(expires_at=1_000.0)
    headers, _ = sent(message, now=900.0)
    assert headers == {
        ":method": "POST",
        ":scheme": "https",
        ":authority": "api.push.apple.com",
        ":path": f"/3/device/{DEVICE}",
        "authorization": "bearer x",
        "apns-topic": "com.example.app",
        "apns-push-type": "alert",
        "apns-priority": "10",
        "apns-expiration": "1795000100",
        "apns-collapse-id": str(message.notification_id),
        "apns-id": headers["apns-id"],
    }


def test_the_request_is_an_aioapns_request():
    request = build_request(make_message(), destination(), CREDENTIALS, time.monotonic())
    assert (request.push_type, request.apns_topic) == (PushType.ALERT, "com.example.app")


@pytest.mark.parametrize(
    ("urgency", "priority"), [("very-low", "1"), ("low", "5"), ("normal", "10"), ("high", "10")]
)
def test_urgency_becomes_apples_priority(urgency, priority):
    assert sent(make_message(urgency=urgency))[0]["apns-priority"] == priority


@pytest.mark.parametrize(
    ("ttl", "left", "expiration"),
    [
        (0, 3_600, "0"),
        (60, 59.1, "1795000060"),
        (60, 0.4, "1795000001"),
        (60, -5, "1795000001"),
    ],
)
def test_the_expiration_is_the_deadline_and_0_without_a_time_to_live(ttl, left, expiration):
    message = make_message(ttl=ttl, expires_at=500.0 + left)
    assert sent(message, now=500.0)[0]["apns-expiration"] == expiration


def test_a_topic_becomes_the_collapse_id():
    assert sent(make_message(topic="weather"))[0]["apns-collapse-id"] == "weather"


@given(st.text("abcXYZ019-_", max_size=32))
def test_a_collapse_id_has_at_most_64_bytes(topic):
    assert 0 < len(sent(make_message(topic=topic))[0]["apns-collapse-id"].encode()) <= 64


def test_the_apns_id_is_the_same_in_every_attempt_and_differs_between_deliveries():
    message, other = make_message(), make_message(notification_id=uuid4())
    first = sent(message)[0]["apns-id"]
    assert sent(message, destination(address="b2" * 32, token="new"))[0]["apns-id"] == first
    assert sent(other)[0]["apns-id"] != first
    assert sent(message, destination(subscription_id=uuid4()))[0]["apns-id"] != first
    assert str(UUID(first)) == first


@given(st.uuids(), st.uuids())
def test_the_apns_id_is_a_uuid_of_version_5(notification_id, subscription_id):
    """Versions before sent it, and an attempt may follow one of theirs."""
    message = make_message(notification_id=notification_id)
    headers, _ = sent(message, destination(subscription_id=subscription_id))
    assert headers["apns-id"] == str(uuid5(notification_id, str(subscription_id)))


@pytest.mark.parametrize("text", ["", "xyz", "a1/../../secret", "a1 ", "a1\n", "ä1", "a" * 201])
def test_a_device_token_that_is_not_hexadecimal_is_refused(text):
    with pytest.raises(MalformedTokenError):
        sent(make_message(), destination(address=text))


@pytest.mark.parametrize("topic", ["a b", "a\nb", " a", "ä", "\x00", "a" * 256])
def test_a_topic_that_is_no_valid_header_value_is_refused(topic):
    with pytest.raises(MalformedFieldError):
        sent(make_message(topic=topic))
    foreign = replace(CREDENTIALS, topic=topic)
    with pytest.raises(MalformedFieldError):
        build_request(make_message(), destination(), foreign, time.monotonic())


def test_device_tokens_are_not_added_to_the_header_compression_table():
    request = build_request(make_message(), destination(), CREDENTIALS, time.monotonic())
    headers, _ = encode(request, authority="a", signed="bearer x", now=WALL)
    decoder = Decoder()
    decoder.decode(Encoder().encode(headers))
    held = {bytes(name) for name, _ in decoder.header_table.dynamic_entries}
    assert b"authorization" in held
    assert not held & {b":path", b"apns-id"}


def test_the_repr_shows_no_secret():
    assert DEVICE not in repr(destination())
    assert "tracking" not in repr(destination())
    assert "pem" not in repr(CREDENTIALS)


def test_credentials_are_read_from_what_the_channel_stores():
    assert AppKey.parse(json.dumps(STORED), 3) == AppKey(
        CREDENTIALS.key, CREDENTIALS.topic, "sandbox", 3
    )


@pytest.mark.parametrize(
    "secret",
    [
        "",
        "[]",
        "null",
        json.dumps({name: value for name, value in STORED.items() if name != "topic"}),
        json.dumps(STORED | {"environment": "staging"}),
    ],
)
def test_invalid_credentials_are_refused(secret):
    with pytest.raises(ValueError, match=r"these names|environment"):
        AppKey.parse(secret, 1)


@pytest.mark.parametrize(
    ("text", "server", "authority"),
    [
        ("127.0.0.1:2197", Server("127.0.0.1", 2197), "127.0.0.1:2197"),
        ("apns.example.org:443", Server("apns.example.org", 443), "apns.example.org"),
        ("[::1]:2197", Server("::1", 2197), "[::1]:2197"),
    ],
)
def test_a_server_is_a_host_and_a_port(text, server, authority):
    assert Server.parse(text) == server
    assert server.authority == authority


@pytest.mark.parametrize(
    "text", ["", "host", "host:", ":1", "host:0", "host:65536", "::1:1", "a/b:1"]
)
def test_an_invalid_server_is_refused(text):
    with pytest.raises(ValueError, match="host:port"):
        Server.parse(text)
