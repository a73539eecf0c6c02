"""Starts a PostgreSQL and a Redis of the run's own before Django's settings are read.

Named in pyproject.toml's addopts, so that `pytest` works by itself. With DATABASE_URL or REDIS_URL
set, that one is used instead.
"""

import os
import shutil
import signal
import tempfile
from pathlib import Path

import pytest
from cryptography.fernet import Fernet

from pushsvc import embedded

_HOME = pytest.StashKey[tuple[Path, embedded.Servers]]()

ENVIRONMENT = {
    "SECRET_KEY": "only-for-tests-" + "0123456789" * 4,
    "CREDENTIAL_KEYS": Fernet.generate_key().decode(),
    "ALLOWED_HOSTS": "testserver,localhost,127.0.0.1",
    "VAPID_SUBJECT": "mailto:push@example.com",
}


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    # Ended from outside, the run still stops its servers.
    signal.signal(signal.SIGTERM, lambda *_: pytest.exit("SIGTERM", returncode=143))
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    home = Path(tempfile.mkdtemp(prefix="pushsvc-tests-"))
    servers = embedded.start(
        home,
        postgres=not embedded.is_given("DATABASE_URL"),
        redis=not embedded.is_given("REDIS_URL"),
        durable=False,
    )
    os.environ.update(servers.environment)
    early_config.stash[_HOME] = (home, servers)


def pytest_unconfigure(config: pytest.Config) -> None:
    home, servers = config.stash[_HOME]
    servers.stop()
    shutil.rmtree(home, ignore_errors=True)
