import pytest

from pushsvc.sandbox.apns.server import running_apns_sandbox


@pytest.fixture
def sandbox():
    """Apple, over TLS and HTTP/2."""
    with running_apns_sandbox() as running:
        yield running


@pytest.fixture
def key(sandbox):
    """Apple gave it to the team."""
    return sandbox.key()


@pytest.fixture
def narrow():
    """Takes one request at a time on each connection."""
    with running_apns_sandbox(streams=1) as running:
        yield running
