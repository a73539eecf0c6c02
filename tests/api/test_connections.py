"""Costly connections to the Procfile's web process, over real sockets."""

import json
import socket
import subprocess
import sys
import time
from contextlib import suppress

import pytest
from hyperframe.frame import ContinuationFrame, HeadersFrame, RstStreamFrame, SettingsFrame

from pushsvc.web.bulkhead import IN_FLIGHT, THREADS
from tests.api.sockets import unsent
from tests.api.support import owner_of
from tests.api.test_web_process import ask
from tests.factories import browser, make_channel
from tests.forked import CHECKOUT
from tests.pipeline.support import until

MANY = 2_100
HEALTH = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
SMALL = "GET /static/admin/js/core.js HTTP/1.1\r\nHost: localhost\r\n\r\n"
# More than granian buffers, so that the process has to wait before it sends the last part.
LARGE = "GET /static/rest_framework/css/bootstrap.min.css.map HTTP/1.1\r\n"
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + SettingsFrame().serialize()


def heard(connection):
    """Everything that arrives until the server closes."""
    found = b""
    with suppress(ConnectionError):
        while part := connection.recv(65_536):
            found += part
    return found


def assert_serves(port):
    """A browser subscribes and its owner sends."""
    owner = owner_of(make_channel())
    body = browser()
    assert post(port, "/subscribe", body, f"X-Channel-ID: {owner.channel.id}") == 201
    assert post(port, "/send-notification", {"body": "x"}, f"Authorization: Key {owner.key}") == 202


def served_beside(port, open_many):
    """The connections that `open_many` opened, all of which stayed open while it served. They are
    opened again if this machine took so long that the server closed the first of them."""
    for _ in range(5):
        connections = open_many()
        assert_serves(port)
        if all(map(is_open, connections)):
            return connections
        for connection in connections:
            connection.close()
    raise AssertionError("this machine is too slow to open so many before the server closes them")


def is_open(connection):
    established = 1
    return connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] == established


def post(port, path, body, header):
    text = json.dumps(body)
    return ask(
        port,
        f"POST {path} HTTP/1.1\r\nHost: localhost\r\n{header}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(text)}\r\n\r\n{text}",
    )[0]


@pytest.mark.parametrize("said", [b"", b"GET /healthz HTTP/1.1\r\nHos"], ids=["silent", "half"])
def test_connections_without_a_request_are_cheap_and_closed(web, opened, said):
    silent = served_beside(web, lambda: opened(MANY, said))

    for connection in silent:
        assert b" 200 " not in heard(connection)


def test_connections_that_stay_idle_after_a_request_are_cheap_and_closed(web, opened):
    def answered():
        """More than an address may have requests in flight."""
        found = []
        for _ in range(2):
            found += opened(IN_FLIGHT * 2 // 3, SMALL.encode())
            for connection in found:
                assert connection.recv(15, socket.MSG_PEEK) == b"HTTP/1.1 200 OK"
        return found

    idle = served_beside(web, answered)

    for connection in idle:
        assert heard(connection).startswith(b"HTTP/1.1 200")


def test_connections_that_read_no_answer_hold_no_thread_and_are_closed(web, opened):
    asked = f"{LARGE}Host: localhost\r\n\r\n".encode() * 40  # more than the kernel buffers for them
    assert ask(web, HEALTH)[0] == 200
    unread = opened(THREADS + 4, asked, receive_buffer=2048)
    ports = {connection.getsockname()[1] for connection in unread}
    until(lambda: has_stalled(web, ports), seconds=60)

    assert_serves(web)
    assert unsent(web).keys() >= ports, "it was answered when connections had ended, not before"
    until(lambda: not unsent(web).keys() & ports, seconds=120)
    assert_serves(web)


def has_stalled(port, clients):
    before = unsent(port)
    time.sleep(0.5)
    after = unsent(port)
    return all(before.get(client) and before[client] == after.get(client) for client in clients)


def requests_reset(count):
    for number in range(1, 2 * count, 2):
        yield HeadersFrame(number, b"\x82\x86\x84\x41\x09localhost", flags=["END_HEADERS"])
        yield RstStreamFrame(number)


def headers_without_end(count):
    yield HeadersFrame(1, b"\x82\x86\x84\x41\x09localhost")
    for _ in range(count):
        yield ContinuationFrame(1, b"\x00\x01x\x01y" * 200)


@pytest.mark.parametrize("flood", [requests_reset(2_000), headers_without_end(100)])
def test_a_connection_that_speaks_http_2_is_closed(web, opened, flood):
    frames = PREFACE + b"".join(frame.serialize() for frame in flood)
    (connection,) = opened(1)

    with suppress(ConnectionError):  # the server closed at the preface already
        connection.sendall(frames)

    answer = heard(connection)
    assert answer == b"" or answer.startswith(b"HTTP/1.1 4")
    assert_serves(web)


def test_no_connection_is_upgraded_to_http_2(web, opened):
    upgrade = "Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: \r\n\r\n"
    (connection,) = opened(1, HEALTH.removesuffix("\r\n").encode() + upgrade.encode())

    assert heard(connection).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize("headers", ["X: " + "a" * 70_000, "\r\n".join(["X: 1"] * 101)])
def test_headers_are_bounded(web, opened, headers):
    (connection,) = opened(1, f"GET /healthz HTTP/1.1\r\n{headers}\r\n\r\n".encode())

    assert heard(connection).startswith(b"HTTP/1.1 431")
    assert_serves(web)


def test_a_web_process_with_too_few_open_files_does_not_start():
    started = subprocess.run(
        ["/bin/sh", "-c", f"ulimit -n 512; exec {sys.executable} -c 'import pushsvc.asgi'"],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert started.returncode == 1
    assert "WEB_CONNECTIONS=4096" in started.stderr
    assert "Traceback" not in started.stderr
