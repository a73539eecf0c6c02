import pytest

from pushsvc.common.store.redis_client import redis_client
from tests.api.support import owner_of
from tests.factories import make_channel


@pytest.fixture(autouse=True)
def _no_leftovers():
    redis_client().flushdb()


@pytest.fixture
def alice(db):
    return owner_of(make_channel(name="Alice's shop"))
