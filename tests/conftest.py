import pytest

from notifications_app import dispatch
from pushsvc.sandbox import running_sandbox


@pytest.fixture(scope="session")
def _sandbox():
    with running_sandbox() as running:
        yield running
        dispatch.shut_down()


@pytest.fixture
def sandbox(_sandbox, settings):
    """A push service that the operator trusts; every test finds it empty."""
    settings.WEBPUSH_TRUSTED_ORIGINS = frozenset({_sandbox.origin})
    _sandbox.reset()
    return _sandbox
