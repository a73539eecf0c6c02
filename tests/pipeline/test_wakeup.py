"""Wakeups are bounded, and the broker may be unreachable."""

import contextlib
import socket
import threading
from urllib.parse import urlsplit

import pytest
from celery import current_app
from kombu import pools

from notifications_app.content.values import Content, SendRequest
from notifications_app.models import Notification
from notifications_app.pipeline import wakeup
from notifications_app.sends.services import notification_accept
from pushsvc.common.platforms import Platform
from tests.pipeline import support


@pytest.fixture(autouse=True)
def _own_broker(monkeypatch):
    """The process forgets what it knows of the broker before and after each test."""
    monkeypatch.setattr(wakeup, "_silent_until", 0.0)
    yield
    monkeypatch.undo()
    _forget()


def _forget():
    pools.reset()
    current_app._pool = current_app.amqp._producer_pool = None  # they are closed
    wakeup._connection.cache_clear()
    wakeup._silent_until = 0.0


@pytest.fixture
def broker_at(monkeypatch):
    def use(url):
        monkeypatch.setattr(current_app.conf, "broker_write_url", url)
        _forget()

    return use


class Wire:
    """A TCP connection to Redis that can be cut."""

    def __init__(self, url):
        parts = urlsplit(url)
        self._redis = (parts.hostname, parts.port)
        self._server = socket.create_server(("127.0.0.1", 0))
        self._open = []
        self.sent = bytearray()  # bytes to Redis, over all connections
        self.is_cut = False
        self.dials = 0
        own = f"127.0.0.1:{self._server.getsockname()[1]}"
        self.url = parts._replace(netloc=parts.netloc.rsplit("@", 1)[0] + "@" + own).geturl()
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self):
        self.is_cut = True
        for end in self._open:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def close(self):
        self.cut()
        self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        for end in self._open:
            end.close()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._server.accept()
                self.dials += 1
                if self.is_cut:
                    near.close()
                else:
                    self._join(near)

    def _join(self, near):
        far = socket.create_connection(self._redis)
        self._open += [near, far]
        for source, target, seen in ((near, far, self.sent), (far, near, bytearray())):
            threading.Thread(target=self._copy, args=(source, target, seen), daemon=True).start()

    def _copy(self, source, target, seen):
        with contextlib.suppress(OSError):
            while data := source.recv(65_536):
                seen += data
                target.sendall(data)
            target.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def wire(settings, broker_at):
    wire = Wire(settings.REDIS_URL)
    broker_at(wire.url)
    yield wire
    wire.close()


@pytest.mark.parametrize(
    ("counts", "waiting"), [([1], 1), ([3, 4], 7), ([100], 16), ([9, 9, 9], 16)]
)
def test_no_more_wakeups_wait_than_the_bound(counts, waiting):
    for count in counts:
        wakeup.wake("web", count)

    assert support.waiting("web") == waiting
    assert support.waiting("plan") == 0


def test_one_kept_connection_sends_all_wakeups_and_declares_nothing(wire):
    wakeup.wake("web")
    dials = wire.dials
    wire.sent.clear()

    for _ in range(5):
        wakeup.wake("web")

    assert wire.dials == dials
    assert wire.sent.count(b"\r\nLLEN\r\n") == wire.sent.count(b"\r\nLPUSH\r\n") == 5
    assert wire.sent.count(b"\r\nSADD\r\n") == wire.sent.count(b"\r\nEXISTS\r\n") == 0
    assert support.waiting("web") == 6


def test_a_refused_connection_raises_nothing(broker_at, caplog):
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    broker_at(f"redis://127.0.0.1:{port}/0")

    wakeup.wake("web")

    assert len(support.logged(caplog, "wakeup.failed")) == 1


def test_a_broker_that_never_answers_raises_nothing(broker_at, caplog):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        broker_at(f"redis://127.0.0.1:{silent.getsockname()[1]}/0")

        wakeup.wake("web")  # it would wait for ever without a time limit

    assert len(support.logged(caplog, "wakeup.failed")) == 1


def test_a_broker_that_did_not_answer_is_not_asked_for_a_moment(wire, caplog, monkeypatch):
    monkeypatch.setattr(wakeup, "_SILENCE_SECONDS", 60.0)
    wire.cut()
    wakeup.wake("web")
    dials = wire.dials

    wakeup.wake("web")
    wakeup.wake("plan")

    assert wire.dials == dials
    assert len(support.logged(caplog, "wakeup.failed")) == 1


def test_wakeups_arrive_again_once_the_broker_is_back(wire, caplog):
    wakeup.wake("web")
    assert support.waiting("web") == 1
    wire.cut()
    wakeup.wake("web")
    assert support.logged(caplog, "wakeup.failed")

    wire.is_cut = False
    wakeup._silent_until = 0.0
    wakeup.wake("web")

    assert support.waiting("web") == 2


def test_more_failures_than_the_pool_has_connections_do_not_stop_wakeups(wire):
    wire.cut()
    for _ in range(12):
        wakeup._silent_until = 0.0
        wakeup.wake("web")

    wire.is_cut = False
    wakeup._silent_until = 0.0
    wakeup.wake("web")

    assert support.waiting("web") == 1


def test_threads_that_send_wakeups_simultaneously_all_return(wire):
    wakeup.wake("web")
    support.in_threads(*[lambda: wakeup.wake("web")] * 12)
    assert 1 < support.waiting("web") <= 28

    wire.cut()
    wakeup._silent_until = 0.0
    support.in_threads(*[lambda: wakeup.wake("web")] * 12)


def test_a_notification_accepted_while_the_broker_is_away_is_found_later(channel, wire):
    wire.cut()
    content = Content(body="Fresh bread", ttl=60)
    request = SendRequest(content=content, target_platforms=(Platform.WEB,))

    accepted = notification_accept(channel=channel, request=request)
    assert Notification.objects.get() == accepted

    wire.is_cut = False
    wakeup._silent_until = 0.0
    support.tick()
    assert support.waiting("plan") > 0
    support.plan()
    assert Notification.objects.get().status == "sent"
