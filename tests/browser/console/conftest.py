"""The console in Chromium, served by the real web process over the test's own database."""

import shutil
from itertools import count

import pytest
from django.core.management import call_command
from django.db import connections
from django.test import override_settings
from playwright.sync_api import sync_playwright

from pushsvc.common.redis_client import redis_client
from tests.admin.support import make_house
from tests.browser.console.support import Console, free_port, when_healthy
from tests.pipeline.processes import Processes

CHROMIUM = shutil.which("chromium")
NEEDS_CHROMIUM = "Chromium is not installed (Debian and Ubuntu: apt install chromium)"
_NUMBERS = count(1)


@pytest.fixture(scope="session")
def to_sandboxes(_sandbox, _fcm, _apns):
    """Makes the settings, while it is entered, those by which all is sent to the sandboxes."""

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
    """Emptied when the module ends: processes that know its content types use it, too.

    Each test has a house of its own.
    """
    with django_db_blocker.unblock():
        yield
        call_command("flush", interactive=False, verbosity=0)


@pytest.fixture(scope="module")
def process_names():
    """Of the Procfile; modules that send name more."""
    return ["web"]


@pytest.fixture(scope="module")
def service(transactional_db, to_sandboxes, process_names, tmp_path_factory):
    """Address of a running web process."""
    if CHROMIUM is None:
        pytest.skip(NEEDS_CHROMIUM)
    port = free_port()
    log_path = tmp_path_factory.mktemp("console") / "log"
    redis_client().flushdb()  # limits and doorbells of other tests
    with pytest.MonkeyPatch.context() as patch, log_path.open("w+") as log:
        patch.setenv("PORT", str(port))
        patch.setenv("GRANIAN_HOST", "127.0.0.1")
        processes = Processes(log)
        with to_sandboxes():
            for name in process_names:
                processes.start(name)
        try:
            yield when_healthy(f"http://127.0.0.1:{port}")
        finally:
            processes.stop()
            log.seek(0)
            print(log.read())  # noqa: T201 (pytest shows it where a test failed)


@pytest.fixture(scope="module")
def chromium():
    """The browser. Playwright keeps an event loop in this thread, which Django would refuse."""
    if CHROMIUM is None:
        pytest.skip(NEEDS_CHROMIUM)
    with pytest.MonkeyPatch.context() as patch, sync_playwright() as playwright:
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()
        connections.close_all()  # those of this loop, which nobody finds when it has ended


@pytest.fixture
def alice(transactional_db, settings):
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    return make_house(f"Alice-{next(_NUMBERS)}")


@pytest.fixture
def bob(alice):
    return make_house(f"Bob-{next(_NUMBERS)}")


@pytest.fixture
def google(_fcm):
    """Google's sandbox, which the processes call."""
    return _fcm


@pytest.fixture
def apple(_apns):
    """Apple's."""
    return _apns


@pytest.fixture
def console(chromium, service):
    """What the browser complained of on any page (CSP, errors of scripts, files that are not
    there) fails the test in the end."""
    with Console(chromium, service) as console:
        yield console
