import pytest
from django.db import transaction
from pytest_django.plugin import DjangoDbBlocker

from pushsvc.common.store.redis_client import redis_client
from tests.admin.support import WORD
from tests.isolation.estates import add_channel, make_estate, number_from
from tests.isolation.witness import watching


@pytest.fixture(scope="module")
def _estates(django_db_setup, django_db_blocker: DjangoDbBlocker):
    """Made once for each file and deleted with it. A test undoes its own changes."""
    with django_db_blocker.unblock(), transaction.atomic():
        redis_client().flushdb()
        number_from(700_001)
        alice = make_estate("Alice", "lion")
        yield alice, add_channel(alice), make_estate("Bob", WORD)
        transaction.set_rollback(True)


@pytest.fixture
def alice(db, _estates):
    return _estates[0]


@pytest.fixture
def second(db, _estates):
    """Another channel of Alice's, in the same account."""
    return _estates[1]


@pytest.fixture
def bob(db, _estates):
    return _estates[2]


@pytest.fixture(scope="module")
def witness():
    with watching() as witness:
        yield witness
