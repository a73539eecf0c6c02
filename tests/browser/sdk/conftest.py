"""The SDK in Chromium: the real web process, a site on another origin, a browser between them."""

import shutil
import time
import urllib.request

import pytest
from playwright.sync_api import sync_playwright

from tests.api.support import owner_of
from tests.browser.sdk.site import Site, Worker, free_port, visit
from tests.factories import make_channel
from tests.pipeline.processes import Processes

CHROMIUM = shutil.which("chromium")
NEEDS_CHROMIUM = "Chromium is not installed (Debian and Ubuntu: apt install chromium)"


@pytest.fixture(scope="module")
def demo_record(tmp_path_factory):
    """Where the service finds the demo channel, which a test may write."""
    return tmp_path_factory.mktemp("demo") / "demo.json"


@pytest.fixture(scope="module")
def service(django_db_setup, tmp_path_factory, demo_record):
    """Address of a running web process of the Procfile."""
    port = free_port()
    with (
        pytest.MonkeyPatch.context() as patch,
        (tmp_path_factory.mktemp("web") / "log").open("w+") as log,
    ):
        patch.setenv("PORT", str(port))
        patch.setenv("GRANIAN_HOST", "127.0.0.1")
        patch.setenv("DEMO_RECORD", str(demo_record))
        processes = Processes(log)
        processes.start("web")
        try:
            yield _when_healthy(f"http://127.0.0.1:{port}")
        finally:
            processes.stop()
            log.seek(0)
            print(log.read())  # noqa: T201 (pytest shows it where a test failed)


def _when_healthy(address):
    end = time.monotonic() + 60
    while time.monotonic() < end:
        try:
            with urllib.request.urlopen(f"{address}/healthz", timeout=5):
                return address
        except OSError:
            time.sleep(0.1)
    raise AssertionError("the web process did not start")


@pytest.fixture(scope="module")
def chromium():
    """The browser. Playwright keeps an event loop in this thread, which Django would refuse."""
    if CHROMIUM is None:
        pytest.skip(NEEDS_CHROMIUM)
    with pytest.MonkeyPatch.context() as patch, sync_playwright() as playwright:
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM,
            args=["--no-sandbox", "--host-resolver-rules=MAP *.test 127.0.0.1"],
        )
        yield browser
        browser.close()


@pytest.fixture
def alice(transactional_db):
    return owner_of(make_channel(name="Alice's shop"))


@pytest.fixture
def bob(transactional_db):
    return owner_of(make_channel(name="Bob's news"))


@pytest.fixture
def site(service, alice):
    """Alice's site, with the lines of docs/browser.md."""
    with Site(service, alice.channel.id) as site:
        yield site


@pytest.fixture
def context(chromium):
    with chromium.new_context() as context:
        context.set_default_timeout(20_000)
        yield context


@pytest.fixture
def allowed(context, site):
    """A visitor who has allowed notifications."""
    context.grant_permissions(["notifications"], origin=site.origin)
    return context


@pytest.fixture
def worker(allowed, site):
    """The site's worker, with a page open, that has heard nothing from push.js yet."""
    return Worker(visit(allowed, site, "/offers"), site)
