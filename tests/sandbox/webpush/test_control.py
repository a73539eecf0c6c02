"""The HTTP interface for other processes."""

import http.client
import re
from contextlib import closing
from datetime import datetime
from urllib.parse import urlsplit

import pytest
from pywebpush import WebPusher

from sandbox import running_sandbox
from tests.sandbox.over_http import call
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
    assert (message["taken"], message["complete"], message["accepted"]) == (True, True, True)
    assert message["headers"]["TTL"] == "60"
    assert datetime.fromisoformat(message["at"]).tzinfo is not None


def test_a_subscription_made_over_http_is_restricted_to_its_key(sandbox, sender):
    subscribe(sandbox, application_server_key=sender.public_key + "=", mismatch_answer="apple")
    (device,) = sandbox.devices()
    assert sender.send(device).status == 201
    assert Sender().send(device).body == b'{"reason":"VapidPkHashMismatch"}'


def test_a_subscription_that_is_reached_over_fcm_is_made_over_http(sandbox, sender):
    subscribe(sandbox, is_bridged=True)
    (phone,) = sandbox.devices()
    assert sender.send(phone, encoded(phone, b"x" * 2913)).status == 413
    assert call(sandbox, "POST", "/subscriptions", {"is_bridged": 1})[0] == 400


def test_many_devices_are_made_with_one_request(sandbox, sender):
    status, made = call(sandbox, "POST", "/subscriptions", {"count": 300})
    assert status == 201
    assert len({each["id"] for each in made["subscriptions"]}) == 300
    assert len({each["keys"]["p256dh"] for each in made["subscriptions"]}) == 300
    assert all(sender.send(device).status == 201 for device in sandbox.devices()[::100])


def test_a_behaviour_is_set_over_http(sandbox, sender):
    made = subscribe(sandbox)
    path = f"/subscriptions/{made['id']}/behaviour"
    assert call(sandbox, "PUT", path, {"mode": "error", "times": 1, "status": 502}) == (204, None)
    (device,) = sandbox.devices()
    assert [sender.send(device).status for _ in range(2)] == [502, 201]


def test_totals_are_given_for_each_device_and_for_all(sandbox, sender):
    first, second = subscribe(sandbox), subscribe(sandbox)
    one, two = sandbox.devices()
    two.behave("gone", times=1)
    assert [sender.send(each).status for each in (one, two, two)] == [201, 410, 201]
    status, totals = call(sandbox, "GET", "/messages")
    assert status == 200
    assert (totals["requests"], totals["taken"], totals["accepted"]) == (3, 2, 2)
    assert totals["devices"][second["id"]] == {
        "requests": 2,
        "taken": 1,
        "accepted": 1,
        "statuses": {"410": 1, "201": 1},
    }
    _, of_first = call(sandbox, "GET", f"/messages?id={first['id']}")
    assert (of_first["accepted"], list(of_first["devices"])) == (1, [first["id"]])


def test_a_deleted_subscription_answers_410_and_keeps_its_messages(sandbox, sender):
    made = subscribe(sandbox)
    (device,) = sandbox.devices()
    sender.send(device)
    assert call(sandbox, "DELETE", f"/subscriptions/{made['id']}") == (204, None)
    assert sender.send(device).status == 410
    _, received = call(sandbox, "GET", f"/subscriptions/{made['id']}/messages")
    assert [message["status"] for message in received["messages"]] == [201, 410]


def test_a_reset_deletes_devices_messages_and_keys(sandbox, sender):
    made = subscribe(sandbox)
    (device,) = sandbox.devices()
    sender.send(device)
    assert call(sandbox, "POST", "/reset") == (204, None)
    assert sender.send(device).status == 404
    assert call(sandbox, "GET", f"/subscriptions/{made['id']}/messages")[0] == 404
    assert call(sandbox, "GET", "/messages")[1]["requests"] == 0


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        (b"{", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"\xff", "not JSON"),
        (b"[]", "not a JSON object"),
        ({"key": "x"}, "unknown fields: key"),
        ({"count": 0}, "count must be"),
        ({"count": True}, "count must be"),
        ({"count": 10**9}, "count must be"),
        ({"application_server_key": 5}, "application_server_key must be"),
        ({"application_server_key": "AAAA"}, "P-256 point"),
        ({"mismatch_answer": "rude"}, "rude"),
        ({"mismatch_answer": []}, "not a valid"),
    ],
)
def test_an_invalid_subscription_is_refused_with_a_reason(sandbox, body, complaint):
    status, answer = call(sandbox, "POST", "/subscriptions", body)
    assert status == 400
    assert re.search(complaint, answer["error"])
    assert sandbox.devices() == []


@pytest.mark.parametrize(
    "body", [{}, {"mode": "sleepy"}, {"mode": []}, {"mode": "gone", "self": 1}]
)
def test_an_invalid_behaviour_is_refused_over_http(sandbox, body):
    made = subscribe(sandbox)
    status, answer = call(sandbox, "PUT", f"/subscriptions/{made['id']}/behaviour", body)
    assert status == 400
    assert answer["error"]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("PUT", "/subscriptions/x/behaviour"),
        ("GET", "/subscriptions/x/messages"),
        ("DELETE", "/subscriptions/x"),
        ("GET", "/messages?id=x"),
    ],
)
def test_an_unknown_subscription_is_404(sandbox, method, path):
    assert call(sandbox, method, path) == (404, {"error": "no such subscription"})


def test_a_payload_that_is_not_text_is_shown_with_escapes(sandbox, sender):
    made = subscribe(sandbox)
    (device,) = sandbox.devices()
    sender.send(device, encoded(device, b"a\xff"))
    _, received = call(sandbox, "GET", f"/subscriptions/{made['id']}/messages")
    assert received["messages"][0]["payload"] == "a\\xff"


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost:8030", 200),
        ("127.0.0.1", 200),
        ("[::1]:8030", 200),
        ("192.168.1.7:8030", 200),
        ("rebound.example:8030", 403),
        ("localhost.example", 403),
        ("127.0.0.1.example", 403),
    ],
)
def test_a_name_that_a_page_could_rebind_does_not_reach_the_sandbox(sandbox, host, status):
    parts = urlsplit(sandbox.origin)
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=60)
    with closing(connection):
        connection.request("GET", "/messages", headers={"Host": host})
        assert connection.getresponse().status == status
