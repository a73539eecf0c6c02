import pytest
from django.db import transaction

from notifications_app.events import events_record
from notifications_app.pipeline import breakers, connections, planning
from pushsvc.common.store.redis_client import redis_client
from sandbox import running_sandbox
from tests.factories import make_channel
from tests.pipeline import phones, support
from tests.pipeline.newsfeeds import running_site
from tests.pipeline.processes import Processes
from tests.pipeline.receivers import running_receiver


@pytest.fixture(autouse=True)
def _no_leftovers():
    """Removes breakers, limits and wakeups of other tests."""
    redis_client().flushdb()


@pytest.fixture
def one_breaker_window(monkeypatch):
    """All calls of a test fall into one of the breakers' windows."""
    monkeypatch.setattr(breakers, "WINDOW_SECONDS", 36_000)
    monkeypatch.setattr(breakers, "SERVICE_WINDOW_SECONDS", 36_000)


@pytest.fixture
def patient_transactions(monkeypatch):
    """A transaction of the planner takes all windows that it may, however slow the machine is."""
    monkeypatch.setattr(planning, "_TRANSACTION_SECONDS", 3600.0)


@pytest.fixture
def channel(transactional_db):
    """Checks at the end of each test that every sum is exact."""
    channel = make_channel("Alice's shop")
    yield channel
    support.assert_exact(channel)


@pytest.fixture
def other_channel(transactional_db):
    channel = make_channel("Bob's news")
    yield channel
    support.assert_exact(channel)


@pytest.fixture
def tampered_channel(transactional_db):
    """For tests that break sums, or delete the rows that were summed."""
    return make_channel("Charlie's")


@pytest.fixture(scope="session")
def _other_sandbox():
    with running_sandbox() as running:
        yield running


@pytest.fixture
def sandbox(sandbox, _other_sandbox, settings):
    settings.WEBPUSH_TRUSTED_ORIGINS = frozenset({sandbox.origin, _other_sandbox.origin})
    connections.client("web")  # made here, so that not every thread of a test makes one
    return sandbox


@pytest.fixture
def other_sandbox(sandbox, _other_sandbox):
    """Another push service."""
    _other_sandbox.reset()
    return _other_sandbox


@pytest.fixture
def processes(channel, tmp_path):
    """The Procfile's processes, which the test starts; they are stopped with it."""
    with (tmp_path / "processes.log").open("w+") as log:
        processes = Processes(log)
        yield processes
        processes.stop()
        log.seek(0)
        print(log.read())  # noqa: T201 (pytest shows it where a test failed)


@pytest.fixture(params=["android", "ios"])
def provider(request, fcm, apns):
    return phones.Provider(request.param, {"android": fcm, "ios": apns}[request.param])


@pytest.fixture
def google(fcm):
    return phones.Provider("android", fcm)


@pytest.fixture
def apple(apns):
    return phones.Provider("ios", apns)


def _record_apart(reports):
    """As another process would: in a transaction of its own."""
    with transaction.atomic():
        events_record(reports)


@pytest.fixture(params=[events_record, _record_apart], ids=["one process", "several"])
def record(request):
    """Records events."""
    return request.param


@pytest.fixture
def receiver(settings):
    with running_receiver() as running:
        settings.WEBHOOK_TRUSTED_ORIGINS = frozenset({running.origin})
        yield running


@pytest.fixture
def other_receiver(receiver, settings):
    with running_receiver() as running:
        settings.WEBHOOK_TRUSTED_ORIGINS |= {running.origin}
        yield running


@pytest.fixture
def site(settings):
    """A site with a feed."""
    with running_site() as running:
        settings.NEWSFEED_TRUSTED_ORIGINS = frozenset({running.origin})
        yield running
