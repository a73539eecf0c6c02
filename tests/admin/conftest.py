import pytest

from pushsvc.common.store.redis_client import redis_client
from tests.admin.support import make_house, make_root, signed_in, stocked


@pytest.fixture(autouse=True)
def _no_leftovers():
    redis_client().flushdb()


@pytest.fixture(autouse=True)
def _quick_passwords(settings):
    """The real hash would take half a second for each user."""
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


@pytest.fixture(autouse=True)
def _many_sign_ins(settings):
    """All sign-ins of a test come from one address."""
    settings.SIGN_INS_PER_MINUTE = 1_000


@pytest.fixture
def alice(db):
    return make_house("Alice")


@pytest.fixture
def bob(db):
    return make_house("Bob")


@pytest.fixture
def zebra(bob):
    """Bob's account with a row of each kind."""
    return stocked(bob)


@pytest.fixture
def root(db):
    return make_root()


@pytest.fixture
def viewer(alice):
    """The browser of a viewer of Alice's account."""
    return signed_in(alice.members["viewer"])


@pytest.fixture
def sender(alice):
    return signed_in(alice.members["sender"])
