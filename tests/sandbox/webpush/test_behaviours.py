"""Each mode does what its name says over a real socket, for as many requests as it was set for."""

import http.client
import json
import socket
import threading

import pytest

from tests.sandbox.over_http import check_wait
from tests.sandbox.webpush.sender import TEXT, encoded, post

INSTEAD_OF_AN_ANSWER = {
    "reset": ConnectionResetError,
    "close_after_accept": http.client.RemoteDisconnected,
    "garbage": http.client.BadStatusLine,
}


def last(sandbox, device):
    return sandbox.messages(device.id)[-1]


@pytest.mark.parametrize(
    ("mode", "status", "errno"),
    [
        ("gone", 410, 106),
        ("not_found", 404, 102),
        ("too_large", 413, 104),
        ("throttled", 429, None),
    ],
)
def test_an_error_mode_answers_in_the_shape_of_autopush(
    sandbox, sender, device, mode, status, errno
):
    device.behave(mode)
    answered = sender.send(device)
    body = json.loads(answered.body)
    assert (answered.status, body["code"], body["errno"]) == (status, status, errno)
    assert body.keys() == {"code", "errno", "error", "message", "more_info"}
    receipt = last(sandbox, device)
    assert (receipt.status, receipt.plaintext) == (status, TEXT)
    assert (receipt.complete, receipt.accepted) == (True, False)


@pytest.mark.parametrize("mode", ["throttled", "wns_throttled"])
def test_a_retry_after_is_in_seconds_a_date_or_absent(sender, device, mode):
    check_wait(sender, device, mode)


def test_wns_throttles_with_406_and_headers_of_its_own(sender, device):
    device.behave("wns_throttled")
    answered = sender.send(device)
    assert answered.status == 406
    assert answered.headers["X-WNS-NotificationStatus"] == "channelThrottled"
    assert answered.headers["X-WNS-Error-Description"]


@pytest.mark.parametrize(("options", "status"), [({}, 201), ({"status": 200}, 200)])
def test_wns_can_drop_a_message_and_answer_with_success(sandbox, sender, device, options, status):
    device.behave("wns_dropped", **options)
    answered = sender.send(device)
    assert answered.status == status
    assert answered.headers["X-WNS-NotificationStatus"] == "dropped"
    assert sandbox.accepted_count(device.id) == 0


def test_any_error_can_be_chosen_with_its_body_and_headers(sender, device):
    device.behave(
        "error",
        status=503,
        body={"reason": "Shutdown"},
        headers={"apns-id": "1", "content-type": "text/x-test"},
        retry_after=9,
    )
    answered = sender.send(device)
    assert (answered.status, json.loads(answered.body)) == (503, {"reason": "Shutdown"})
    assert answered.headers["apns-id"] == "1"
    assert answered.headers.get_content_type() == "text/x-test"
    assert answered.headers["Retry-After"] == "9"


def test_a_chosen_error_without_a_body_has_autopushs_shape(sender, device):
    device.behave("error", status=500)
    answered = sender.send(device)
    assert (answered.status, json.loads(answered.body)["code"]) == (500, 500)


@pytest.mark.parametrize(("status", "accepted"), [(200, 1), (202, 1), (400, 0), (599, 0)])
def test_only_a_chosen_success_is_accepted(sandbox, sender, device, status, accepted):
    device.behave("error", status=status)
    assert sender.send(device).status == status
    assert sandbox.accepted_count(device.id) == accepted


def test_a_redirect_points_to_the_given_address(sender, device):
    device.behave("redirect", location="http://127.0.0.1:9/internal")
    answered = sender.send(device)
    assert (answered.status, answered.headers["Location"]) == (307, "http://127.0.0.1:9/internal")


def test_a_slow_device_accepts_in_the_end(sandbox, sender, device):
    device.behave("slow", seconds=2.0)
    with pytest.raises(TimeoutError):
        post(device.endpoint, sender.headers(device), encoded(device), timeout=0.5)
    answered = post(device.endpoint, sender.headers(device), encoded(device))
    assert answered.status == 201
    assert [receipt.accepted for receipt in sandbox.messages(device.id)] == [False, True]


def test_a_hanging_device_never_answers(sandbox, sender, device):
    device.behave("hang", times=1)
    with pytest.raises(TimeoutError):
        post(device.endpoint, sender.headers(device), encoded(device), timeout=2.0)
    receipt = last(sandbox, device)
    assert (receipt.status, receipt.plaintext, receipt.accepted) == (None, TEXT, False)


@pytest.mark.parametrize("mode", INSTEAD_OF_AN_ANSWER)
def test_a_connection_can_end_without_an_answer(sandbox, sender, device, mode):
    device.behave(mode, times=1)
    with pytest.raises((http.client.HTTPException, OSError)) as raised:
        sender.send(device)
    assert raised.type is INSTEAD_OF_AN_ANSWER[mode]
    receipt = last(sandbox, device)
    assert (receipt.status, receipt.complete, receipt.accepted) == (None, False, False)
    assert receipt.taken is (mode == "close_after_accept")


def test_an_endless_body_continues_and_is_never_accepted(sandbox, sender, device):
    device.behave("endless_body", times=1)
    host, port = sandbox.origin.removeprefix("http://").split(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=60)
    connection.request("POST", f"/push/{device.id}", encoded(device), sender.headers(device))
    response = connection.getresponse()
    assert response.status == 201
    assert len(response.read(5_000_000)) == 5_000_000
    connection.close()
    receipt = last(sandbox, device)
    assert (receipt.status, receipt.taken, receipt.accepted) == (201, True, False)


def test_a_message_is_not_accepted_if_its_sender_left_before_the_answer(sandbox, sender, device):
    """Keep-alive clients that give up close the connection."""
    device.behave("slow", seconds=0.5, times=1)
    host, port = sandbox.origin.removeprefix("http://").split(":")
    body = encoded(device)
    lines = [f"{name}: {value}" for name, value in sender.headers(device).items()]
    head = f"POST /push/{device.id} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n"
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall((head + "\r\n".join(lines) + "\r\n\r\n").encode() + body)
    assert sender.send(sandbox.subscribe()).status == 201
    threading.Event().wait(0.8)
    receipt = last(sandbox, device)
    assert (receipt.taken, receipt.accepted) == (False, False)


def test_a_behaviour_ends_after_its_times(sender, device):
    device.behave("gone", times=2)
    assert [sender.send(device).status for _ in range(4)] == [410, 410, 201, 201]


def test_a_behaviour_without_times_stays_until_it_is_replaced(sender, device):
    device.behave("error", status=500)
    assert [sender.send(device).status for _ in range(3)] == [500, 500, 500]
    device.behave("accept")
    assert sender.send(device).status == 201


def test_a_behaviour_belongs_to_one_device(sandbox, sender, device):
    device.behave("gone")
    assert sender.send(sandbox.subscribe(sender.public_key)).status == 201


def test_a_refused_request_does_not_count_as_one_of_the_times(sender, device):
    device.behave("gone", times=1)
    assert sender.send(device, TTL=None).status == 400
    assert [sender.send(device).status for _ in range(2)] == [410, 201]


@pytest.mark.parametrize(
    ("mode", "options", "complaint"),
    [
        ("sleepy", {}, "mode must be one of accept, gone"),
        ("gone", {"status": 410}, "mode gone has no option status"),
        ("slow", {}, "mode slow needs the option seconds"),
        ("slow", {"seconds": -1}, "seconds must be"),
        ("slow", {"seconds": float("nan")}, "seconds must be"),
        ("error", {}, "mode error needs the option status"),
        ("error", {"status": 199}, "status must be"),
        ("error", {"status": True}, "status must be"),
        ("error", {"status": 500, "headers": {"A": "b\r\nC: d"}}, "headers must be"),
        ("error", {"status": 500, "body": 5}, "body must be"),
        ("error", {"status": 500, "body": "\ud800"}, "body must be"),
        ("throttled", {"retry_after": "soon"}, "retry_after must be"),
        ("throttled", {"as_date": 1}, "as_date must be"),
        ("redirect", {"location": "\n"}, "location must be"),
        ("gone", {"times": 0}, "times must be"),
        ("gone", {"times": 1.5}, "times must be"),
        ("gone", {"times": True}, "times must be"),
    ],
)
def test_an_invalid_behaviour_is_refused_with_a_reason(device, mode, options, complaint):
    with pytest.raises(ValueError, match=complaint):
        device.behave(mode, **options)
