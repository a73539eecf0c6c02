"""`manage.py doctor` names processes that run with other keys or other code than it does."""

import secrets
import shutil
import signal
import socket

import psutil
import pytest
from cryptography.fernet import Fernet

from pushsvc.common import fingerprints, worker
from pushsvc.common.store import metric_reports
from pushsvc.common.store.metric_reports import Reporter
from pushsvc.common.store.redis_client import redis_client
from tests import forked
from tests.ops.doctor.findings import errors, report, report_all, the_error
from tests.ops.helpers import eventually

pytestmark = pytest.mark.django_db


@pytest.fixture
def reporting(settings):
    """Lets a process report that has these settings in place of the doctor's."""

    def report_with(kind="worker", **others):
        own = {name: getattr(settings, name) for name in others}
        for name, value in others.items():
            setattr(settings, name, value)
        Reporter(kind, take=dict).report()
        for name, value in own.items():
            setattr(settings, name, value)

    return report_with


@pytest.mark.parametrize(
    ("others", "what"),
    [
        ({"SECRET_KEY": "x" * 50}, "have another SECRET_KEY"),
        ({"CREDENTIAL_KEYS": ("other",)}, "have another CREDENTIAL_KEYS"),
    ],
)
def test_processes_with_other_keys_are_named_with_their_machine(healthy, reporting, others, what):
    reporting()
    assert errors() == {}

    reporting(**others)
    reporting(**others)

    title, remedy = the_error()
    assert title == f"Worker processes on {socket.gethostname()} {what} (2)"
    assert "same settings" in remedy


def test_a_web_process_that_no_longer_reports_is_missed(healthy):
    assert errors() == {}

    redis_client().delete(metric_reports._PROCESSES)
    for _ in range(2):
        Reporter("worker", take=dict).report()

    title, remedy = the_error()
    assert title == "No web process is running"
    assert "Start web" in remedy


@pytest.fixture
def running_worker(installation, tmp_path):
    """A worker with two processes, which report."""
    command = "python -m celery -A pushsvc worker -Q web -c 2"
    with (tmp_path / "log").open("wb") as log:
        started = forked.start(command, installation.environment, log)
    try:
        eventually(lambda: installation.redis.zcard(metric_reports._PROCESSES) == 2)
        yield psutil.Process(started.pid)
    finally:
        started.send_signal(signal.SIGKILL)
        started.wait()


READ_RECENT = """
return redis.call('ZCOUNT', KEYS[1], redis.call('TIME')[1] - 15, '+inf')
"""


def test_worker_processes_that_are_frozen_are_counted(installation, running_worker):
    title = f"Worker processes on {socket.gethostname()} that do not report: 1"
    assert title not in installation.doctor()

    frozen, other = running_worker.children()
    frozen.suspend()
    try:
        eventually(lambda: installation.redis.eval(READ_RECENT, 1, metric_reports._PROCESSES) == 1)
        installation.expect(title, "warning", "SIGCONT")
    finally:
        for child in (frozen, other):
            child.kill()


@pytest.mark.parametrize(("ahead", "severity"), [(-3, "warning"), (75, "error")])
def test_a_machine_with_another_time_is_named(healthy, ahead, severity):
    """`make cluster` shifts real clocks."""
    now = redis_client().time()[0]
    redis_client().hset(worker._CLOCKS, mapping={"w1": f"{now}:{ahead}", "w2": f"{now}:0.4"})

    (finding,) = [each for each in report()[0] if each["code"] == "clocks_differ"]
    assert finding["title"] == f"The clocks of w1 and Redis differ by {abs(ahead)} s"
    assert finding["severity"] == severity


def test_processes_may_differ_as_they_do_while_keys_are_replaced(healthy, reporting, settings):
    former = secrets.token_urlsafe(48)
    settings.SECRET_KEY_FALLBACKS = [former]
    settings.CREDENTIAL_KEYS = (*settings.CREDENTIAL_KEYS, Fernet.generate_key().decode())
    redis_client().delete(metric_reports._PROCESSES)
    for kind in ("web", "worker", "worker"):
        reporting(
            kind,
            SECRET_KEY=former,
            SECRET_KEY_FALLBACKS=[settings.SECRET_KEY],
            CREDENTIAL_KEYS=settings.CREDENTIAL_KEYS[::-1],
        )

    assert errors() == {}


def test_processes_of_another_version_are_named(healthy, reporting, tmp_path, settings):
    """Of a checkout with one file more."""
    for package in fingerprints._PACKAGES:
        shutil.copytree(settings.BASE_DIR / package, tmp_path / package)
    (tmp_path / "pushsvc" / "later.py").write_text("")
    fingerprints.code.cache_clear()
    reporting(BASE_DIR=tmp_path)
    fingerprints.code.cache_clear()

    title, remedy = the_error()
    assert title == f"Worker processes on {socket.gethostname()} run another version (1)"
    assert "restart them" in remedy


def test_a_redis_that_notices_late_that_a_machine_vanished_is_named(healthy, monkeypatch):
    """Nobody needs that on one machine."""
    client = redis_client()
    usual = client.config_get("tcp-keepalive")["tcp-keepalive"]
    try:
        client.config_set("tcp-keepalive", 300)
        assert errors() == {}

        report_all()  # again, because reports count for 15 s
        report_from("w2", monkeypatch)
        _, remedy = the_error()
        assert "Workers run on 2 machines" in remedy
        assert "tcp-keepalive is 300: set it to 5" in remedy

        client.config_set("tcp-keepalive", 5)
        report_all()
        report_from("w2", monkeypatch)
        assert errors() == {}
    finally:
        client.config_set("tcp-keepalive", usual)


def report_from(host, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(socket, "gethostname", lambda: host)
        Reporter("worker", take=dict).report()


def test_processes_of_a_version_that_does_not_say_what_it_is_are_no_finding(healthy):
    reporter = Reporter("worker", take=dict)
    reporter._process = "worker:0123456789abcdef"
    reporter.report()

    assert errors() == {}
