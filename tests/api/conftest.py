import pytest

from pushsvc.common.redis_client import redis_client
from tests.api.events import reached
from tests.api.support import owner_of
from tests.factories import make_channel


@pytest.fixture(autouse=True)
def _no_leftovers():
    """Limits and doorbells of other tests."""
    redis_client().flushdb()


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
def sent(alice):
    """A notification that has reached two browsers: (notification, their tokens)."""
    return reached(alice, 2)
