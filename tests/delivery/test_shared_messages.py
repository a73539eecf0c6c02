"""What transports cache of a message belongs to that message and to no single recipient."""

import json
import time
from dataclasses import replace

import pytest

from notifications_app.delivery.apns import transport as apns
from notifications_app.delivery.fcm import transport as fcm
from notifications_app.delivery.types import Destination
from notifications_app.delivery.webpush import transport as webpush
from pushsvc.common.endpoints import EndpointNotAllowed, check_endpoint
from tests.delivery.support import make_message

TRANSPORTS = [webpush, fcm, apns]


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_two_contents_of_one_notification_are_cached_separately(transport):
    first, second = make_message(body="one"), make_message(body="two")
    assert first.notification_id == second.notification_id

    read = [transport.payload(message, "t").decode() for message in (first, second, first)]

    assert "one" in read[0]
    assert "two" in read[1]
    assert read[2] == read[0]


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_each_recipient_gets_its_own_tracking_token(transport):
    message = make_message()

    texts = [transport.payload(message, token).decode() for token in ('a"b', "c", "")]

    assert '"token":"a\\"b"' in texts[0]
    assert '"token":"c"' in texts[1]
    assert "a" + '\\"' not in texts[1]
    assert '"token"' not in texts[2]
    assert all(json.loads(text) for text in texts)


def test_each_android_phone_gets_its_own_address_and_remaining_time():
    message = make_message()
    now = message.expires_at - 100

    def sent(address, now):
        destination = Destination(message.notification_id, address, "t")
        return json.loads(fcm.build_request(message, destination, "u", "a", now).body)["message"]

    first, second = sent("one", now), sent("two", now + 40)

    assert (first["token"], first["android"]["ttl"]) == ("one", "100s")
    assert (second["token"], second["android"]["ttl"]) == ("two", "60s")


def test_each_iphone_gets_the_key_and_topic_of_its_channel():
    message = make_message(expires_at=time.monotonic() + 3_600)
    destination = Destination(message.notification_id, "a1" * 32, "t")
    keys = [apns.AppKey(apns.ApnsKey("pem", "K", "T"), topic, "sandbox") for topic in ("a", "b")]

    def fields(key, signed):
        request = apns.build_request(message, destination, key, time.monotonic())
        headers, _ = apns.encode(request, authority="x", signed=signed, now=1.0)
        return {bytes(name): bytes(value) for name, value in headers}

    first, second = fields(keys[0], "one"), fields(keys[1], "two")

    assert (first[b"apns-topic"], first[b"authorization"]) == (b"a", b"one")
    assert (second[b"apns-topic"], second[b"authorization"]) == (b"b", b"two")


def test_a_cached_decision_about_an_origin_follows_the_operators_lists():
    url = "http://10.0.0.1:8080/push/1"

    def judged(trusted):
        return check_endpoint(url, trusted_origins=trusted, allowed_hosts=())

    for _ in range(2):
        assert judged(frozenset({"http://10.0.0.1:8080"})).is_trusted
        with pytest.raises(EndpointNotAllowed):
            judged(frozenset())


def test_endpoints_of_one_origin_keep_their_own_paths():
    origin = "https://updates.push.services.mozilla.com"
    paths = ["/a", "/b?c=%2b", "?d", ""]

    dialled = [
        check_endpoint(origin + path, trusted_origins=frozenset(), allowed_hosts=()).url
        for path in paths
    ]

    assert dialled == [f"{origin}/a", f"{origin}/b?c=%2b", f"{origin}/?d", f"{origin}/"]


def test_messages_are_compared_by_identity():
    message = make_message()

    assert message != replace(message)
    assert hash(message) != hash(replace(message))
