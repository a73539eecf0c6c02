"""`manage.py rotate_credential_keys`: encrypts all secrets with the newest key."""

from typing import Any

from django.core.management.base import CommandError
from typing_extensions import override

from channels_app.management.output import DatabaseCommand
from channels_app.services import secrets_reencrypt, secrets_unreadable
from channels_app.sign_in import two_step


class Command(DatabaseCommand):
    help = "Encrypts every stored secret with the first key of CREDENTIAL_KEYS. Safe to repeat."

    @override
    def handle(self, *args: Any, **options: Any) -> None:
        changed = secrets_reencrypt() + two_step.secrets_reencrypt()
        self.stdout.write(f"{changed} secrets were encrypted again.")
        if unreadable := secrets_unreadable() + two_step.secrets_unreadable():
            raise CommandError(
                f"Secrets under a key that CREDENTIAL_KEYS does not hold: {len(unreadable)}. Add"
                " that key again, at the end, and repeat the command. The doctor names them."
            )
