"""What only the HTTP interface of the web push sandbox has."""

import re

import pytest
from pywebpush import WebPusher

from sandbox import running_sandbox
from tests.sandbox.services import call
from tests.sandbox.webpush.sender import TEXT, Sender, encoded, post


@pytest.fixture
def sandbox():
    with running_sandbox() as running:
        yield running


def subscribe(sandbox, **fields):
    status, subscription = call(sandbox, "POST", "/subscriptions", fields)
    assert status == 201
    return subscription


def test_a_subscription_made_over_http_receives_messages(sandbox, sender):
    made = subscribe(sandbox, application_server_key=sender.public_key)
    assert made.keys() == {"id", "endpoint", "keys"}
    body = WebPusher(made).encode(TEXT, content_encoding="aes128gcm")["body"]
    (device,) = sandbox.devices()
    assert post(made["endpoint"], sender.headers(device), body).status == 201
    status, received = call(sandbox, "GET", f"/subscriptions/{made['id']}/messages")
    (message,) = received["messages"]
    assert status == 200
    assert (message["payload"], message["status"]) == (TEXT.decode(), 201)
    assert message["headers"]["TTL"] == "60"


def test_a_subscription_made_over_http_is_restricted_to_its_key(sandbox, sender):
    subscribe(sandbox, application_server_key=sender.public_key + "=", mismatch_response="apple")
    (device,) = sandbox.devices()
    assert sender.send(device).status == 201
    assert Sender().send(device).body == b'{"reason":"VapidPkHashMismatch"}'


def test_a_subscription_that_is_reached_over_fcm_is_made_over_http(sandbox, sender):
    subscribe(sandbox, is_bridged=True)
    (phone,) = sandbox.devices()
    assert sender.send(phone, encoded(phone, b"x" * 2913)).status == 413
    assert call(sandbox, "POST", "/subscriptions", {"is_bridged": 1})[0] == 400


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        ({"application_server_key": 5}, "application_server_key must be"),
        ({"application_server_key": "AAAA"}, "P-256 point"),
        ({"mismatch_response": "rude"}, "rude"),
        ({"mismatch_response": []}, "not a valid"),
    ],
)
def test_an_invalid_subscription_is_rejected_with_a_reason(sandbox, body, complaint):
    status, answer = call(sandbox, "POST", "/subscriptions", body)
    assert status == 400
    assert re.search(complaint, answer["error"])
    assert sandbox.devices() == []


def test_a_payload_that_is_not_text_is_shown_with_escapes(sandbox, sender):
    made = subscribe(sandbox)
    (device,) = sandbox.devices()
    sender.send(device, encoded(device, b"a\xff"))
    _, received = call(sandbox, "GET", f"/subscriptions/{made['id']}/messages")
    assert received["messages"][0]["payload"] == "a\\xff"
