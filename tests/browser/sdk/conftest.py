"""The SDK in Chromium: the real web process, a site on another origin, and a browser."""

import pytest

from tests.api.support import owner_of
from tests.browser.chromium import running_chromium
from tests.browser.sdk.site import Site, Worker, visit
from tests.factories import make_channel
from tests.pipeline.processes import running_web


@pytest.fixture(scope="package")
def demo_record(tmp_path_factory):
    """The file in which the service looks for the demo channel; a test may write it."""
    return tmp_path_factory.mktemp("demo") / "demo.json"


@pytest.fixture(scope="package")
def service(django_db_setup, tmp_path_factory, demo_record):
    """The address of a running web process of the Procfile."""
    log_path = tmp_path_factory.mktemp("web") / "log"
    with running_web(log_path, DEMO_RECORD=str(demo_record)) as address:
        yield address


@pytest.fixture(scope="package")
def chromium():
    with running_chromium("--host-resolver-rules=MAP *.test 127.0.0.1") as browser:
        yield browser


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
        context.set_default_timeout(60_000)
        yield context


@pytest.fixture
def allowed(context, site):
    """A visitor who has allowed notifications."""
    context.grant_permissions(["notifications"], origin=site.origin)
    return context


@pytest.fixture
def worker(allowed, site):
    """The site's worker, with a page open. push.js has told it nothing yet."""
    return Worker(visit(allowed, site, "/offers"), site)
