import resource
import socket
from contextlib import ExitStack
from urllib.parse import urlsplit

import pytest

from pushsvc.common.store.redis_client import redis_client
from pushsvc.ops import health
from tests.api.events import reached
from tests.api.support import owner_of
from tests.factories import make_category, make_channel
from tests.pipeline.processes import running_web
from tests.pipeline.support import assert_people_exact


@pytest.fixture(autouse=True)
def _no_leftovers(monkeypatch):
    """Removes limits and wakeups of other tests, and the last answer of the readiness check."""
    redis_client().flushdb()
    monkeypatch.setattr(health, "missing_now", health.Kept(health._missing))


@pytest.fixture
def alice(db):
    return owner_of(make_channel(name="Alice's shop"))


@pytest.fixture
def bob(db):
    return owner_of(make_channel(name="Bob's news"))


@pytest.fixture
def everywhere():
    """The owner of a channel with every platform enabled."""
    return owner_of(make_channel(android_enabled=True, ios_enabled=True))


@pytest.fixture
def shop(everywhere):
    """It believes every device. Its offers nobody gets who did not choose them."""
    everywhere.channel.identity = "trust"
    everywhere.channel.save()
    make_category(everywhere.channel, "offers", default=False)
    make_category(everywhere.channel, "news", default=True)
    yield everywhere
    assert_people_exact(everywhere.channel)


@pytest.fixture
def sent(alice):
    """A notification that has reached two browsers: (notification, their tokens)."""
    return reached(alice, 2)


@pytest.fixture(scope="module")
def service(django_db_setup, tmp_path_factory):
    """The address of a web process that all tests of a file share."""
    with running_web(tmp_path_factory.mktemp("web") / "log") as address:
        yield address


@pytest.fixture
def web(service, transactional_db):
    """The port of that web process."""
    return urlsplit(service).port


@pytest.fixture
def opened(web):
    """Opens connections that send `data` and nothing else. They are closed after the test."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with ExitStack() as stack:

        def open_(count, data=b"", receive_buffer=0, address="127.0.0.1"):
            made = [stack.enter_context(socket.socket()) for _ in range(count)]
            for connection in made:
                _connect(connection, web, receive_buffer, address)
                connection.sendall(data)
            return made

        yield open_
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def _connect(connection, port, receive_buffer, address):
    connection.settimeout(60)
    if receive_buffer:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        # With loopback's large segments, the server's kernel would buffer 2 MB of each answer.
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 536)
    connection.bind((address, 0))
    connection.connect(("127.0.0.1", port))
