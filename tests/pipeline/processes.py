"""Workers and beat as the Procfile starts them, over the test's own database and Redis."""

import os
import signal
import sys
import time
import urllib.request
from contextlib import contextmanager
from pathlib import Path
from unittest import mock
from urllib.parse import urlsplit

from django.conf import settings
from django.db import connection

from bench.ports import own_port
from tests import forked

_IS_STOPPING = "worker: begins no further work"
_OF_PYTEST = {"DJANGO_SETTINGS_MODULE"}


class Processes:
    """Of this checkout, with the test's settings."""

    def __init__(self, log):
        self._log = log
        self._started = []

    def start(self, name, **variables):
        """The Procfile's process of this name, in a process group of its own."""
        process = forked.start(forked.procfile()[name], environment() | variables, self._log)
        self._started.append(process)
        return process

    def stop_gently(self, worker, tell=os.kill):
        """SIGTERM to a worker, by `tell(pid, signal)`; returns when it begins no further work."""
        before = self._stops()
        tell(worker.pid, signal.SIGTERM)
        end = time.monotonic() + 60
        while self._stops() == before:
            assert time.monotonic() < end, "the worker did not hear SIGTERM"
            time.sleep(0.01)

    def _stops(self):
        return Path(self._log.name).read_text().count(_IS_STOPPING)

    def stop(self):
        for process in self._started:
            kill(process)


@contextmanager
def running_web(log_path, *others, **variables):
    """Address of the Procfile's web process, started with the processes `others`.

    Their log is printed in the end: pytest shows it where a test failed.
    """
    port = own_port()
    variables = {"WEB_WAIT_SECONDS": "600"} | variables  # for a busy machine
    variables |= {"PORT": str(port), "GRANIAN_HOST": "127.0.0.1"}
    with mock.patch.dict(os.environ, variables), log_path.open("w+") as log:
        processes = Processes(log)
        try:
            for name in ("web", *others):
                processes.start(name)
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


def kill(process):
    """SIGKILL to the process and all its children."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def environment():
    """The test's settings, and its test database instead of the one that it was made beside."""
    database = urlsplit(os.environ["DATABASE_URL"])
    name = connection.settings_dict["NAME"]
    deployed = {name: value for name, value in os.environ.items() if name not in _OF_PYTEST}
    return deployed | {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "DATABASE_URL": database._replace(path=f"/{name}").geturl(),
        "WEBPUSH_TRUSTED_ORIGINS": ",".join(settings.WEBPUSH_TRUSTED_ORIGINS),
        "FCM_API_BASE": settings.FCM_API_BASE,
        "GOOGLE_TOKEN_URI": settings.GOOGLE_TOKEN_URI,
        "APNS_SERVER": settings.APNS_SERVER,
        "PROVIDER_CA_FILE": settings.PROVIDER_CA_FILE,
        "WORKER_CONCURRENCY": "2",
    }
