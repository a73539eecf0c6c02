"""What `make run` does in the database. Runs in its own process, so that Django starts only once.

Django is imported inside the functions, because it reads settings when it is first imported.
"""

import io
import json
import secrets
from typing import Any

from local.embedded.home import EmbeddedError, Home

ADMIN_NAME = "admin"


def migrate() -> None:
    """Checks the settings and runs migrations. Raises EmbeddedError, which says what to correct."""
    import django
    from django.core.management import call_command
    from django.core.management.base import SystemCheckError
    from django.db import Error

    django.setup()
    screen = io.StringIO()
    try:
        call_command("check", stdout=screen, stderr=screen)
        call_command("migrate", interactive=False, verbosity=0)
    except SystemCheckError as error:
        raise EmbeddedError(f"the settings are refused: {error}") from error
    except Error as error:
        raise EmbeddedError(f"the database cannot be used: {error}") from error


def ensure_admin(home: Home) -> str:
    """Creates the staff login if it is missing. Returns its password, or a note if it was
    changed."""
    from django.contrib.auth.models import User

    password = home.secret("ADMIN_PASSWORD", lambda: secrets.token_urlsafe(12))
    admin = User.objects.filter(username=ADMIN_NAME).first()
    if admin is None:
        User.objects.create_superuser(ADMIN_NAME, password=password)
        return password
    return password if admin.check_password(password) else "(the one that you set)"


def create_channel(name: str) -> dict[str, Any]:
    """Creates a channel. Returns {"channel_id", "api_key", "vapid_public_key"}."""
    from django.core.management import call_command

    output = io.StringIO()
    call_command("create_channel", name, "--json", stdout=output)
    created: dict[str, Any] = json.loads(output.getvalue())
    return created


def disconnect() -> None:
    """Closes this process's connections, because it needs none after the start."""
    from django.db import connections

    connections.close_all()
