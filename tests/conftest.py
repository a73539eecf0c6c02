import pytest

from notifications_app import connections
from pushsvc.sandbox import running_apns_sandbox, running_fcm_sandbox, running_sandbox


@pytest.fixture(scope="session")
def _sandbox():
    with running_sandbox() as running:
        yield running
        connections.shut_down()


@pytest.fixture(scope="session")
def _fcm():
    with running_fcm_sandbox() as running:
        yield running
        connections.shut_down()


@pytest.fixture(scope="session")
def _apns():
    with running_apns_sandbox() as running:
        yield running
        connections.shut_down()


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
