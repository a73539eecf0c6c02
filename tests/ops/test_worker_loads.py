"""A process loads what it needs.

A worker loads the library of its own push service, and neither the console nor the HTTP interface.
The web process loads no library of a push service.
"""

import json
import os
import subprocess
import sys
from functools import cache

import pytest

from pushsvc.common.process import is_worker
from tests.ops.helpers import CHECKOUT
from tests.plugin import ENVIRONMENT

NOT_FOR_WORKERS = {
    "PIL",
    "allauth",
    "axes",
    "celery.bin",
    "click_repl",
    "corsheaders",
    "django_celery_beat",
    "drf_spectacular",
    "fido2",
    "prompt_toolkit",
    "pushsvc.asgi",
    "pushsvc.common.console",
    "pushsvc.common.http.drf",
    "pushsvc.urls",
    "rest_framework",
    "unfold",
    "whitenoise",
    "django.contrib.admin",
}
# Celery's own command and its schedule in the database.
OF_BEAT = {"celery.bin", "click_repl", "prompt_toolkit", "django_celery_beat"}
# What it takes to call a push service, by the worker that does.
LIBRARIES = {
    "web": {"pywebpush", "http_ece", "aiohttp", "httptools"},
    "android": {"firebase_admin", "google.auth", "httpx", "httptools"},
    "ios": {"aioapns", "h2", "hpack", "jwt"},
    "plan": set(),
    "hooks": {"httptools"},
}
# Images in a bucket, traces and error reports. redis-py loads the SDK's metrics wherever it is
# installed.
OF_SETTINGS = (
    "storages",
    "boto3",
    "botocore",
    "opentelemetry.sdk.trace",
    "opentelemetry.exporter",
    "pushsvc.common.telemetry.sentry",
    "sentry_sdk",
)
SHOW = "print(json.dumps({'loaded': sorted(sys.modules), 'frozen': gc.get_freeze_count()}))"
# As `python -m pushsvc.worker` starts, until it connects and forks.
WORKER = """
import contextlib, gc, json, runpy, sys
from celery.apps.worker import Worker
from celery.signals import worker_before_create_process
made = []
Worker.start = lambda worker: made.append(worker)
sys.argv[1:] = ["{kind}"]
with contextlib.suppress(SystemExit):
    runpy.run_module("pushsvc.worker", run_name="__main__", alter_sys=True)
[worker] = made
from django.conf import settings
assert settings.DATABASES["default"]["CONN_MAX_AGE"] is None
assert "notifications_app.tasks.deliver" in worker.app.tasks
worker_before_create_process.send(sender=worker)
{show}
"""
# As `celery -A pushsvc beat` starts, until it connects.
BEAT = """
import contextlib, gc, json, runpy, sys
from celery.apps.beat import Beat
made = []
Beat.start_scheduler = lambda beat: made.append(beat)
sys.argv[1:] = ["-A", "pushsvc", "beat"]
with contextlib.suppress(SystemExit):
    runpy.run_module("celery", run_name="__main__", alter_sys=True)
[beat] = made
assert "tick" in beat.app.conf.beat_schedule
{show}
"""
WEB = """
import gc, json, sys
import pushsvc.asgi
from django.urls import get_resolver
assert get_resolver().url_patterns
{show}
"""


@cache
def started(program):
    shown = subprocess.run(
        [sys.executable, "-c", program],
        cwd=CHECKOUT,
        env={**os.environ, **ENVIRONMENT, "DJANGO_SETTINGS_MODULE": "pushsvc.settings"},
        stdout=subprocess.PIPE,
        check=True,
        timeout=300,
    )
    return json.loads(shown.stdout.splitlines()[-1])  # Celery greets before


def worker(kind):
    return started(WORKER.format(kind=kind, show=SHOW))


@pytest.mark.parametrize("kind", LIBRARIES)
def test_a_worker_loads_neither_the_console_nor_the_http_interface(kind):
    loaded = worker(kind)["loaded"]

    assert not NOT_FOR_WORKERS.intersection(loaded)
    assert not [name for name in loaded if "_app.admin" in name or "_app.api" in name]


def test_the_worker_that_writes_mails_knows_their_languages():
    write = """
from channels_app.sign_in.mailing import rendered
from django.utils import translation
with translation.override("de"):
    print(json.dumps(rendered("mail/approval.txt", {"user": "Ada", "note": "Now."})))
"""
    assert "Ada schrieb:" in started(WORKER.format(kind="plan", show=write))


def test_beat_loads_neither_the_console_nor_the_http_interface():
    loaded = started(BEAT.format(show=SHOW))["loaded"]

    assert not (NOT_FOR_WORKERS - OF_BEAT).intersection(loaded)
    assert not [name for name in loaded if "_app.admin" in name or "_app.api" in name]


@pytest.mark.parametrize("kind", LIBRARIES)
def test_a_worker_loads_the_libraries_of_its_own_push_service_before_it_forks(kind):
    every = set().union(*LIBRARIES.values())

    assert every.intersection(worker(kind)["loaded"]) == LIBRARIES[kind]


def test_the_web_process_loads_no_library_of_a_push_service():
    # Granian's HTTP, and the tokens by which people sign in.
    own = {"httptools", "jwt"}
    every = set().union(*LIBRARIES.values()) - own

    assert not every.intersection(started(WEB.format(show=SHOW))["loaded"])


@pytest.mark.parametrize("kind", [*LIBRARIES, "web process"])
def test_no_library_of_an_optional_setting_is_loaded_without_it(kind):
    ran = started(WEB.format(show=SHOW)) if kind == "web process" else worker(kind)

    assert [name for name in ran["loaded"] if name.startswith(OF_SETTINGS)] == []


def test_its_processes_share_what_was_loaded_before_the_fork():
    assert worker("plan")["frozen"] > 80_000


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["/app/pushsvc/worker.py", "web"], True),
        (["/app/.venv/bin/celery", "-A", "pushsvc", "worker", "-Q", "web"], True),
        (["/x/celery/__main__.py", "-A", "pushsvc", "worker"], True),
        (["/app/.venv/bin/celery", "-A", "pushsvc", "beat"], False),
        (["manage.py", "worker"], False),
        (["/app/.venv/bin/granian", "pushsvc.asgi:application"], False),
    ],
)
def test_only_a_worker_is_one(monkeypatch, words, expected):
    monkeypatch.setattr(sys, "argv", words)
    assert is_worker() is expected


def test_a_worker_with_threads_in_place_of_processes_does_not_start():
    command = [sys.executable, "-m", "celery", "-A", "pushsvc", "worker", "-P", "threads"]
    done = subprocess.run(
        command, cwd=CHECKOUT, env=ENVIRONMENT, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 1
    assert "A worker's tasks need processes of their own." in done.stderr
