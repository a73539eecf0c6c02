"""The console in Chromium, served by the real web process over the test's own database."""

from itertools import count

import pytest
from django.conf import settings as configured
from django.contrib.auth.models import User
from django.db import connections
from django.test import override_settings

from channels_app.models import Membership
from pushsvc.common.store.redis_client import redis_client
from tests.admin.support import PASSWORD, make_house
from tests.browser.chromium import WINDOWLESS_PATH, running_chromium, skip_without_chromium
from tests.browser.console.support import Console
from tests.browser.database import emptied_at_the_end
from tests.pipeline.processes import running_web

_NUMBERS = count(1)
_CAROLS = count(1)
HASHERS = configured.PASSWORD_HASHERS


@pytest.fixture(scope="session")
def to_sandboxes(_sandbox, _fcm, _apns):
    """Sets the settings for the duration of the block so that every send goes to the sandboxes."""

    def override():
        return override_settings(
            WEBPUSH_TRUSTED_ORIGINS=frozenset({_sandbox.origin}),
            FCM_API_BASE=_fcm.origin,
            GOOGLE_TOKEN_URI=_fcm.token_uri,
            APNS_SERVER=_apns.server,
            PROVIDER_CA_FILE=str(_apns.ca_file),
        )

    return override


@pytest.fixture(scope="module")
def transactional_db(django_db_setup, django_db_blocker):
    """Emptied when the module ends. Each test has an account of its own."""
    redis_client().flushdb()  # limits and wakeups of other tests
    with emptied_at_the_end(django_db_blocker):
        yield


@pytest.fixture(scope="package")
def service(django_db_setup, to_sandboxes, tmp_path_factory):
    """Address of a running web process."""
    skip_without_chromium()
    log_path = tmp_path_factory.mktemp("console") / "log"
    with to_sandboxes(), running_web(log_path) as address:
        yield address


@pytest.fixture(scope="package")
def chromium():
    with running_chromium(path=WINDOWLESS_PATH) as browser:
        yield browser
        # The connections of this event loop, which nothing finds after it has ended.
        connections.close_all()


@pytest.fixture(autouse=True)
def _limits_not_used_up():
    """All tests sign in from one address."""
    for name in redis_client().scan_iter("limit:*"):
        redis_client().delete(name)


@pytest.fixture
def alice(transactional_db, settings):
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    return make_house(f"Alice-{next(_NUMBERS)}")


@pytest.fixture
def sender(alice):
    return alice.members["sender"]


@pytest.fixture
def manager(alice):
    return alice.members["manager"]


@pytest.fixture
def bob(alice):
    return make_house(f"Bob-{next(_NUMBERS)}")


@pytest.fixture
def google(_fcm):
    """Google's sandbox, which the processes call."""
    return _fcm


@pytest.fixture
def apple(_apns):
    """Apple's sandbox."""
    return _apns


@pytest.fixture
def console(chromium, service, transactional_db):
    """A test fails at its end if the browser complained on any page: CSP, errors of scripts,
    missing files."""
    with Console(chromium, service) as console:
        yield console


@pytest.fixture
def carol(alice, settings):
    """A user whose password is hashed as the web process does it."""
    settings.PASSWORD_HASHERS = HASHERS
    user = User.objects.create_user(f"carol-{next(_CAROLS)}", password=PASSWORD, is_staff=True)
    Membership.objects.create(account=alice.account, user=user, role="sender")
    return user
