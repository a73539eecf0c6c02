import pytest
from django.dispatch import receiver
from django.test import TransactionTestCase
from django.test.signals import setting_changed
from hypothesis import HealthCheck, settings
from whitenoise.middleware import WhiteNoiseMiddleware

from notifications_app.pipeline import connections
from sandbox import running_apns_sandbox, running_fcm_sandbox, running_sandbox
from tests.tables import empty_tables
from tests.template import copy_migrated_database

# These need a compiler and Android's classes: `make kotlin` names the folder.
collect_ignore = ["android"]

# How long an example takes depends on how busy the machine is, and says nothing about the code.
settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any machine")


def _fixture_teardown(_case):
    empty_tables()


TransactionTestCase._fixture_teardown = _fixture_teardown  # type: ignore[attr-defined]
# Django closes the connection after each test that commits, and the next test starts another
# process of PostgreSQL, which reads the catalog again. So no test may leave settings in its
# session: SET LOCAL ends with the transaction, and a connection of `in_threads` with its thread.
TransactionTestCase._should_reload_connections = lambda _case: False  # type: ignore[attr-defined]


# Each test client makes the middleware again. WhiteNoise's looks at every static file then, which
# takes as long as some ten requests.
_find_files = WhiteNoiseMiddleware.add_files_from_finders
_found_files: dict = {}


def _find_files_once(self):
    if not _found_files:
        _find_files(self)
        _found_files.update(self.files)
    self.files = _found_files


WhiteNoiseMiddleware.add_files_from_finders = _find_files_once


@pytest.fixture(scope="session")
def django_db_modify_db_settings(django_db_modify_db_settings, django_db_blocker):
    with django_db_blocker.unblock():
        copy_migrated_database()


# A process's transports are made with the settings of the moment, and kept. Where push services are
# is the same throughout a file.


@receiver(setting_changed)
def _shut_down_with(setting, **_):
    if setting in {"CALL_SECONDS", "UNKNOWN_HOST_CALL_SECONDS", "CALLS_IN_FLIGHT"}:
        connections.shut_down()


@pytest.fixture(scope="module", autouse=True)
def _no_connections_of_other_files():
    yield
    connections.shut_down()


@pytest.fixture(autouse=True)
def _no_connections_without_a_push_service(request):
    """So that the next test's know where its push service is, whichever tests of the file ran."""
    yield
    if not {"sandbox", "fcm", "apns"}.intersection(request.fixturenames):
        connections.shut_down()


@pytest.fixture(autouse=True)
def _rows_are_read_anew(settings):
    """Tests change rows between two requests, and want the second to see it."""
    settings.ROWS_KEPT_SECONDS = 0


@pytest.fixture(autouse=True)
def _transactions_may_be_silent(settings):
    """Most tests run in one transaction, which is silent while they read pages."""
    settings.SILENT_TRANSACTION_SECONDS = 600


@pytest.fixture(scope="session")
def _sandbox():
    with running_sandbox() as running:
        yield running


@pytest.fixture(scope="session")
def _fcm():
    with running_fcm_sandbox() as running:
        yield running


@pytest.fixture(scope="session")
def _apns():
    with running_apns_sandbox() as running:
        yield running


@pytest.fixture
def sandbox(_sandbox, settings):
    """A push service that the operator trusts; it is empty at the start of each test."""
    settings.WEBPUSH_TRUSTED_ORIGINS = frozenset({_sandbox.origin})
    _sandbox.reset()
    return _sandbox


@pytest.fixture
def fcm(_fcm, settings):
    """Google's push service for this installation; it is empty at the start of each test."""
    settings.FCM_API_BASE = _fcm.origin
    settings.GOOGLE_TOKEN_URI = _fcm.token_uri
    _fcm.reset()
    return _fcm


@pytest.fixture
def apns(_apns, settings):
    """Apple's push service for this installation; it is empty at the start of each test."""
    settings.APNS_SERVER = _apns.server
    settings.PROVIDER_CA_FILE = str(_apns.ca_file)
    _apns.reset()
    return _apns
