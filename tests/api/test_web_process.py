"""The Procfile's web process on a real socket, with clients that misbehave."""

import json
import socket
import time
from contextlib import suppress

import pytest

from notifications_app.models import Notification
from pushsvc.web.request_body import BODY_SECONDS, DISCARDED_BYTES
from tests.api.sockets import sent_in_pieces
from tests.api.support import owner_of
from tests.factories import make_channel


def connect(port, text):
    connection = socket.create_connection(("127.0.0.1", port), timeout=60)
    connection.sendall(text.encode())
    return connection


def read(connection):
    """Status and JSON of the answer."""
    with connection, connection.makefile("rb") as file:
        status = int(file.readline().split()[1])
        length = 0
        for line in iter(file.readline, b"\r\n"):
            name, _, value = line.decode().partition(":")
            length = int(value) if name.lower() == "content-length" else length
        return status, json.loads(file.read(length))


def ask(port, text):
    return read(connect(port, text))


def post(key, body, *, length=None, extra=""):
    length = len(body) if length is None else length
    framing = extra or f"Content-Length: {length}\r\n"
    return (
        f"POST /send-notification HTTP/1.1\r\nHost: localhost\r\nAuthorization: Key {key}\r\n"
        f"Content-Type: application/json\r\n{framing}\r\n{body}"
    )


def in_chunks(body):
    return f"{len(body):x}\r\n{body}\r\n0\r\n\r\n"


def answer_in_time(port, request):
    """Sends the request in pieces, and again if this machine took longer for them than the server
    waits for a body."""
    began, answer = time.monotonic(), None
    with suppress(ConnectionError), connect(port, "") as connection:
        answer = read(sent_in_pieces(connection, request, 4))
    if time.monotonic() - began > BODY_SECONDS:
        return answer_in_time(port, request)
    assert answer, "the connection was closed before the answer was read"
    return answer


def test_slow_clients_delay_no_other_client(web):
    slow = [connect(web, post("none", "{", length=1000)) for _ in range(100)]

    assert ask(web, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")[0] == 200

    for connection in slow:
        connection.close()


def test_a_body_is_refused_by_its_length_before_it_arrives(web):
    status, problem = ask(web, post("none", "{", length=99_999_999_999))

    assert (status, problem["code"]) == (413, "body_too_large")


@pytest.mark.parametrize("is_chunked", [False, True])
def test_a_client_that_sends_everything_first_still_reads_the_refusal(web, is_chunked):
    large = " " * 200_000
    request = (
        post("none", in_chunks(large), extra="Transfer-Encoding: chunked\r\n")
        if is_chunked
        else post("none", large)
    )

    status, problem = answer_in_time(web, request.encode())

    assert (status, problem["code"]) == (413, "body_too_large")


def test_a_client_that_expects_100_continue_is_refused_at_once(web):
    extra = "Content-Length: 200000\r\nExpect: 100-continue\r\n"

    status, problem = ask(web, post("none", "", extra=extra))

    assert (status, problem["code"]) == (413, "body_too_large")


def test_a_refused_body_is_discarded_up_to_a_bound(web):
    chunks = (b"10000\r\n" + b" " * 65_536 + b"\r\n") * (10 * DISCARDED_BYTES // 65_536)
    chunked = post("none", "", extra="Transfer-Encoding: chunked\r\n")
    with connect(web, chunked) as connection, pytest.raises(ConnectionError):
        sent_in_pieces(connection, chunks, 100)


def test_a_body_that_ends_early_changes_nothing(web):
    owner = owner_of(make_channel())
    whole = json.dumps({"body": "x"})

    connection = connect(web, post(owner.key, whole, length=100))
    connection.shutdown(socket.SHUT_WR)
    status, problem = read(connection)
    assert (status, problem["code"]) == (400, "bad_request")

    assert ask(web, post(owner.key, whole))[0] == 202
    assert Notification.objects.count() == 1


def test_a_chunked_body_is_read_and_measured(web):
    owner = owner_of(make_channel())
    chunked = "Transfer-Encoding: chunked\r\n"

    body = in_chunks(json.dumps({"body": "x"}))
    assert ask(web, post(owner.key, body, extra=chunked))[0] == 202

    large = in_chunks(" " * 70_000)
    status, problem = ask(web, post(owner.key, large, extra=chunked))
    assert (status, problem["code"]) == (413, "body_too_large")
    assert Notification.objects.count() == 1
