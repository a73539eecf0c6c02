import pytest

from pushsvc.sandbox.apns.server import running_apns_sandbox


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
