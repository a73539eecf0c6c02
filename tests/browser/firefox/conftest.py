"""A real Firefox, the whole service, and a site that uses it."""

import pytest
from django.test import override_settings

from pushsvc.common.store.redis_client import redis_client
from sandbox import running_sandbox
from tests import missing
from tests.browser.database import emptied_at_the_end
from tests.browser.firefox import site
from tests.browser.firefox.firefox import Firefox, installed
from tests.browser.firefox.service import Owner, Service
from tests.factories import make_channel, make_key
from tests.pipeline.processes import Processes


@pytest.fixture(scope="session")
def push_service():
    """The sandbox in place of Firefox's push service."""
    with running_sandbox() as running:
        yield running


@pytest.fixture(scope="session")
def _firefox(push_service, tmp_path_factory):
    if installed() is None:
        missing.skip_without("Firefox")
    folder = tmp_path_factory.mktemp("firefox")
    with (folder / "log").open("w") as log:
        firefox = Firefox(folder, push_service.browser_url, log)
        try:
            firefox.start()
            yield firefox
        finally:
            firefox.stop()


@pytest.fixture
def firefox(_firefox):
    """A Firefox with one empty tab that has visited no site yet."""
    yield _firefox
    _firefox.forget()


@pytest.fixture(scope="module")
def transactional_db(django_db_setup, django_db_blocker):
    """Emptied when the module ends, because the processes work on between tests. Each test has a
    channel of its own."""
    with emptied_at_the_end(django_db_blocker):
        yield


@pytest.fixture(scope="module")
def service(_firefox, push_service, transactional_db, tmp_path_factory):
    """The Procfile's processes, shared by all tests of a module."""
    trusted = frozenset({push_service.origin})
    log_path = tmp_path_factory.mktemp("service") / "log"
    with override_settings(WEBPUSH_TRUSTED_ORIGINS=trusted), log_path.open("w+") as log:
        redis_client().flushdb()  # wakeups of other tests
        processes = Processes(log)
        try:
            yield Service.started(processes, push_service)
        finally:
            processes.stop()
            log.seek(0)
            print(log.read())  # noqa: T201 (pytest shows it where a test failed)


@pytest.fixture
def alice(service):
    """The owner of a shop with a site."""
    channel = make_channel(name="Alice's shop")
    with site.serving(service.url, str(channel.id)) as shop:
        yield Owner(service, channel, make_key(channel), shop)
