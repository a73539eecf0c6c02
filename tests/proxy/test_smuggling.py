"""Requests with a second request inside, framed so that two readers may disagree on the boundary.

They are sent straight to the web process, and through nginx.
"""

import re
import socket
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from notifications_app.models import Notification
from tests.proxy.nginx import running_nginx
from tests.proxy.wire import ask, everything, send_notification

FIRST = "POST /first HTTP/1.1\r\nHost: push.example.com\r\n"
CHUNKED = "Transfer-Encoding: chunked\r\n"
# Name: headers of the first request, and the bytes before the second. {n}: the second's length,
# {x}: the same in hex.
FRAMINGS = {
    "CL.TE": ("Content-Length: {n}\r\n" + CHUNKED, "0\r\n\r\n"),
    "TE.CL": (CHUNKED + "Content-Length: 4\r\n", "0\r\n\r\n"),
    "TE.CL in a chunk": (CHUNKED + "Content-Length: 4\r\n", "{x}\r\n"),
    "TE.TE identity": (CHUNKED + "Transfer-Encoding: identity\r\n", "0\r\n\r\n"),
    "TE.TE unknown": (CHUNKED + "Transfer-Encoding: x\r\nContent-Length: 0\r\n", "0\r\n\r\n"),
    "TE xchunked": ("Transfer-Encoding: xchunked\r\nContent-Length: 0\r\n", ""),
    "TE identity": ("Transfer-Encoding: identity\r\nContent-Length: 0\r\n", ""),
    "TE vertical tab": ("Transfer-Encoding: \x0bchunked\r\nContent-Length: 5\r\n", "0\r\n\r\n"),
    "TE space before colon": ("Transfer-Encoding : chunked\r\nContent-Length: 0\r\n", ""),
    "TE folded": ("Transfer-Encoding:\r\n chunked\r\nContent-Length: 0\r\n", ""),
    "TE in a folded line": ("X: a\r\n Transfer-Encoding: chunked\r\nContent-Length: 0\r\n", ""),
    "TE after a bare CR": ("X: a\rTransfer-Encoding: chunked\r\nContent-Length: 0\r\n", ""),
    "TE after a bare LF": (
        "X: a\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n",
        "0\r\n\r\n",
    ),
    "CL after a bare LF": ("X: a\nContent-Length: {n}\r\n", ""),
    "CL space before colon": ("Content-Length : {n}\r\n", ""),
    "CL twice": ("Content-Length: 0\r\nContent-Length: {n}\r\n", ""),
    "CL twice, the other way": ("Content-Length: {n}\r\nContent-Length: 0\r\n", ""),
    "CL list": ("Content-Length: 0, {n}\r\n", ""),
    "CL plus": ("Content-Length: +0\r\n", ""),
    "CL negative": ("Content-Length: -1\r\n", ""),
    "chunk 0x0": (CHUNKED, "0x0\r\n\r\n"),
    "chunk beyond 64 bits": (CHUNKED, "10000000000000000\r\n\r\n"),
    "NUL": ("X: a\0b\r\nContent-Length: 0\r\n", ""),
}
# nginx takes that for the end of a line, and so sees a second request of the client's; its log says
OF_THE_WEB_PROCESS = {"chunk extension with LF": (CHUNKED, "0;\nx\r\n\r\n")}


@pytest.fixture
def brief_nginx(web, tmp_path, certificate):
    """An nginx that soon closes idle connections."""
    brief = {"keepalive_timeout 30s;": "keepalive_timeout 3s;"}
    with running_nginx(tmp_path / "nginx", certificate, web, **brief) as running:
        yield running


@pytest.fixture(params=["web", "nginx"])
def reach(request):
    """Opens a connection to the web process itself, or to nginx in front of it."""
    if request.param == "nginx":
        return request.getfixturevalue("brief_nginx").connect
    port = request.getfixturevalue("web")
    return partial(socket.create_connection, ("127.0.0.1", port), 60)


def hidden_in(framings, hidden):
    """Requests by name, each with another inside."""
    for name, (headers, before) in framings.items():
        sizes = {"n": len(before) + len(hidden), "x": f"{len(hidden):x}"}
        yield name, f"{FIRST}{headers}\r\n{before}".format(**sizes).encode() + hidden


def assert_one_answer_each(connect, framings, owner):
    attempts = dict(hidden_in(framings, send_notification(owner, "smuggled")))
    # All at once: where the other end expects more of a body, it waits until its timeout.
    with ThreadPoolExecutor(len(attempts)) as pool:
        heard = pool.map(lambda data: everything(connect(), data), attempts.values())
        answers = [re.findall(rb"HTTP/1\.1 (\d+)", text) for text in heard]
    found = dict(zip(attempts, answers, strict=True))
    assert {name: statuses for name, statuses in found.items() if len(statuses) != 1} == {}
    assert not Notification.objects.exists()


def test_no_second_request_is_seen(reach, owner):
    assert_one_answer_each(reach, FRAMINGS, owner)

    assert ask(reach(), send_notification(owner, "sent"))[0] == 202


def test_the_web_process_alone_sees_no_second_request(web, owner):
    connect = partial(socket.create_connection, ("127.0.0.1", web), 60)
    assert_one_answer_each(connect, OF_THE_WEB_PROCESS, owner)
