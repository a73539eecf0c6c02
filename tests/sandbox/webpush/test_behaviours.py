"""What only the modes of the web push sandbox do, over a real socket."""

import http.client
import json
import socket
import threading

import pytest

from tests.sandbox.webpush.sender import TEXT, encoded


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
def test_an_error_mode_responds_in_the_shape_of_autopush(
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


def test_wns_throttles_with_406_and_its_own_headers(sender, device):
    device.behave("wns_throttled", retry_after=7)
    answered = sender.send(device)
    assert answered.status == 406
    assert answered.headers["X-WNS-NotificationStatus"] == "channelThrottled"
    assert answered.headers["X-WNS-Error-Description"]
    assert answered.headers["Retry-After"] == "7"


@pytest.mark.parametrize(("options", "status"), [({}, 201), ({"status": 200}, 200)])
def test_wns_can_drop_a_message_and_respond_with_success(sandbox, sender, device, options, status):
    device.behave("wns_dropped", **options)
    answered = sender.send(device)
    assert answered.status == status
    assert answered.headers["X-WNS-NotificationStatus"] == "dropped"
    assert sandbox.accepted_count(device.id) == 0


def test_a_chosen_error_without_a_body_has_autopushs_shape(sender, device):
    device.behave("error", status=500)
    answered = sender.send(device)
    assert (answered.status, json.loads(answered.body)["code"]) == (500, 500)


def test_a_redirect_points_to_the_given_address(sender, device):
    device.behave("redirect", location="http://127.0.0.1:9/internal")
    answered = sender.send(device)
    assert (answered.status, answered.headers["Location"]) == (307, "http://127.0.0.1:9/internal")
    with pytest.raises(ValueError, match="location must be"):
        device.behave("redirect", location="\n")


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


def test_a_message_is_not_accepted_if_its_sender_left_before_the_response(sandbox, sender, device):
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
