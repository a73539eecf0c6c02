import pytest

from sandbox import running_sandbox
from tests.sandbox.webpush.sender import Sender


@pytest.fixture(scope="module")
def sandbox():
    with running_sandbox() as running:
        yield running


@pytest.fixture(scope="module")
def sender():
    return Sender()


@pytest.fixture
def device(sandbox, sender):
    """A browser that subscribed with the sender's key, as every Chrome and Safari must."""
    return sandbox.subscribe(sender.public_key)
