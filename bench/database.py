"""Django with a database that is deleted at the end, for benches and `make screenshots`."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cryptography.fernet import Fernet

from local import embedded

_SECRETS = {
    "SECRET_KEY": "only-for-the-bench-" + "0123456789" * 4,
    "CREDENTIAL_KEYS": Fernet.generate_key().decode(),
    "ALLOWED_HOSTS": "testserver,localhost",
}


@contextmanager
def own_database(*, durable: bool = False, **settings: str) -> Iterator[int]:
    """Starts a PostgreSQL and a Redis, sets Django up, migrates, and stops both servers at the end.
    Yields the process id of PostgreSQL. `durable`: as in production, each commit reaches the disk.
    `settings` are environment variables."""
    with tempfile.TemporaryDirectory(prefix="pushsvc-bench-") as folder:
        servers = embedded.start(Path(folder), durable=durable)
        try:
            environment = {"DJANGO_SETTINGS_MODULE": "pushsvc.settings", **_SECRETS, **settings}
            os.environ.update({**environment, **servers.environment})
            import django

            django.setup()
            from django.core.management import call_command

            call_command("migrate", verbosity=0)
            yield int(servers.home.read_json("run/postgres.json")["pid"])
        finally:
            _disconnect()
            servers.stop()


def _disconnect() -> None:
    from django.db import connections

    connections.close_all()
