"""A worker loads what it needs to send, and neither the console nor the HTTP interface."""

import json
import os
import subprocess
import sys

import pytest

from pushsvc.common.process import is_worker
from tests.ops.helpers import CHECKOUT
from tests.plugin import ENVIRONMENT

NOT_FOR_WORKERS = {
    "axes",
    "corsheaders",
    "csp",
    "django_celery_beat",
    "django_otp",
    "drf_spectacular",
    "pushsvc.asgi",
    "pushsvc.common.console",
    "pushsvc.common.http.drf",
    "pushsvc.urls",
    "rest_framework",
    "unfold",
    "whitenoise",
    "django.contrib.admin",
}
# As `celery -A pushsvc worker` starts: it imports the tasks and runs Django's checks.
START = """
import gc, json, sys
sys.argv = ["celery", "-A", "pushsvc", "worker", "-Q", "web"]
import celery.bin.celery
from celery.signals import worker_before_create_process
from pushsvc.celery import app
app.loader.import_default_modules()
assert "notifications_app.tasks.deliver_web" in app.tasks
worker_before_create_process.send(sender=None)
print(json.dumps({"loaded": sorted(sys.modules), "frozen": gc.get_freeze_count()}))
"""


@pytest.fixture(scope="module")
def started():
    shown = subprocess.run(
        [sys.executable, "-c", START],
        cwd=CHECKOUT,
        env={**os.environ, **ENVIRONMENT, "DJANGO_SETTINGS_MODULE": "pushsvc.settings"},
        stdout=subprocess.PIPE,
        check=True,
        timeout=300,
    )
    return json.loads(shown.stdout)


def test_a_worker_loads_neither_the_console_nor_the_http_interface(started):
    assert not NOT_FOR_WORKERS.intersection(started["loaded"])
    assert not [name for name in started["loaded"] if "_app.admin" in name or "_app.api" in name]


def test_its_processes_share_what_was_loaded_before_the_fork(started):
    assert started["frozen"] > 100_000


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["/app/.venv/bin/celery", "-A", "pushsvc", "worker", "-Q", "web"], True),
        (["/x/celery/__main__.py", "-A", "pushsvc", "worker"], True),
        (["/app/.venv/bin/celery", "-A", "pushsvc", "beat"], False),
        (["manage.py", "worker"], False),
        (["/app/.venv/bin/granian", "pushsvc.asgi:application"], False),
    ],
)
def test_only_celerys_worker_is_one(monkeypatch, words, expected):
    monkeypatch.setattr(sys, "argv", words)
    assert is_worker() is expected
