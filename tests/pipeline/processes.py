"""Workers and beat as the Procfile starts them, over the test's own database and Redis."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

from django.conf import settings
from django.db import connection

CHECKOUT = Path(__file__).resolve().parent.parent.parent


class Processes:
    def __init__(self, log):
        self._log = log
        self._started = []

    def start(self, name):
        """The Procfile's process of this name, in a process group of its own."""
        process = subprocess.Popen(
            ["/bin/sh", "-c", f"exec {_commands()[name]}"],
            cwd=CHECKOUT,
            env=_environment(),
            stdout=self._log,
            stderr=self._log,
            start_new_session=True,
        )
        self._started.append(process)
        return process

    def stop(self):
        for process in self._started:
            kill(process)


def kill(process):
    """SIGKILL to the process and all its children."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _commands():
    lines = (CHECKOUT / "Procfile").read_text().splitlines()
    return dict(line.split(": ", 1) for line in lines)


def _environment():
    """The test's settings, and its test database instead of the one that it was made beside."""
    database = urlsplit(os.environ["DATABASE_URL"])
    name = connection.settings_dict["NAME"]
    return os.environ | {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "DATABASE_URL": database._replace(path=f"/{name}").geturl(),
        "WEBPUSH_TRUSTED_ORIGINS": ",".join(settings.WEBPUSH_TRUSTED_ORIGINS),
        "FCM_API_BASE": settings.FCM_API_BASE,
        "GOOGLE_TOKEN_URI": settings.GOOGLE_TOKEN_URI,
        "APNS_SERVER": settings.APNS_SERVER,
        "PROVIDER_CA_FILE": settings.PROVIDER_CA_FILE,
        "WORKER_CONCURRENCY": "2",
    }
