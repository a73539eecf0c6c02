"""Django with a database of the bench's own, which is thrown away."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cryptography.fernet import Fernet

from pushsvc.local import embedded

_SECRETS = {
    "SECRET_KEY": "only-for-the-bench-" + "0123456789" * 4,
    "CREDENTIAL_KEYS": Fernet.generate_key().decode(),
    "ALLOWED_HOSTS": "testserver",
}


@contextmanager
def own_database() -> Iterator[None]:
    """Starts servers, migrates, and stops the servers in the end. DATABASE_URL and REDIS_URL are
    used where they are set."""
    with tempfile.TemporaryDirectory(prefix="pushsvc-bench-") as folder:
        servers = embedded.start(
            Path(folder),
            postgres=not embedded.is_given("DATABASE_URL"),
            redis=not embedded.is_given("REDIS_URL"),
            durable=False,
        )
        try:
            environment = {"DJANGO_SETTINGS_MODULE": "pushsvc.settings", **_SECRETS}
            os.environ.update({**environment, **servers.environment})
            import django

            django.setup()
            from django.core.management import call_command

            call_command("migrate", verbosity=0)
            yield
        finally:
            servers.stop()
