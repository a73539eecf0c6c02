import pytest

from notifications_app.delivery.apns.http2 import Http2
from sandbox.apns.server import running_apns_sandbox
from tests.delivery.apns.http2_server import REQUEST


@pytest.fixture
def sandbox():
    """Apple's push service, over TLS and HTTP/2."""
    with running_apns_sandbox() as running:
        yield running


@pytest.fixture
def key(sandbox):
    """A key that Apple issued to the team."""
    return sandbox.key()


@pytest.fixture
def narrow():
    """A sandbox that takes one request at a time on each connection."""
    with running_apns_sandbox(streams=1) as running:
        yield running


@pytest.fixture
def http2():
    """A connection with requests on the streams 1 and 3."""
    connection = Http2()
    for _ in range(2):
        connection.open(REQUEST)
    connection.take_output()
    return connection
