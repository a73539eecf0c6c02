import pytest
from django.core.management.color import no_style
from django.db import connections as databases
from django.dispatch import receiver
from django.test import TransactionTestCase
from django.test.signals import setting_changed
from hypothesis import HealthCheck, settings

from notifications_app.pipeline import connections
from pushsvc.sandbox import running_apns_sandbox, running_fcm_sandbox, running_sandbox

# How long an example takes says how busy the machine is, and nothing of the code.
settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any machine")

# What Django writes there when it migrates never changes.
_KEPT_TABLES = {"django_content_type", "auth_permission"}


def _empty_tables(_case):
    """After each test that commits. Django's own also makes every permission anew, which takes
    longer than the rest."""
    database = databases["default"]
    tables = database.introspection.django_table_names(only_existing=True, include_views=False)
    emptied = sorted(set(tables) - _KEPT_TABLES)
    database.ops.execute_sql_flush(database.ops.sql_flush(no_style(), emptied))


TransactionTestCase._fixture_teardown = _empty_tables  # type: ignore[attr-defined]


# A process's transports are made with the settings of the moment, and kept. Where push services are
# is the same throughout a file.


@receiver(setting_changed)
def _shut_down_with(setting, **_):
    if setting in {"CALL_SECONDS", "STRANGER_CALL_SECONDS", "CALLS_IN_FLIGHT"}:
        connections.shut_down()


@pytest.fixture(scope="module", autouse=True)
def _no_connections_of_other_files():
    yield
    connections.shut_down()


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
    """A push service that the operator trusts; every test finds it empty."""
    settings.WEBPUSH_TRUSTED_ORIGINS = frozenset({_sandbox.origin})
    _sandbox.reset()
    return _sandbox


@pytest.fixture
def fcm(_fcm, settings):
    """Google, for this installation; every test finds it empty."""
    settings.FCM_API_BASE = _fcm.origin
    settings.GOOGLE_TOKEN_URI = _fcm.token_uri
    _fcm.reset()
    return _fcm


@pytest.fixture
def apns(_apns, settings):
    """Apple, for this installation; every test finds it empty."""
    settings.APNS_SERVER = _apns.server
    settings.PROVIDER_CA_FILE = str(_apns.ca_file)
    _apns.reset()
    return _apns
