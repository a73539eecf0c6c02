"""`manage.py rotate_credential_keys`: encrypts all secrets with the newest key."""

from typing import Any

from django.core.management.base import CommandError
from typing_extensions import override

from channels_app.management.output import DatabaseCommand
from channels_app.services import secrets_reencrypt
from channels_app.sign_in import two_step
from pushsvc.common.store.crypto import SecretUnreadable


class Command(DatabaseCommand):
    help = "Encrypts every stored secret with the first key of CREDENTIAL_KEYS. Safe to repeat."

    @override
    def handle(self, *args: Any, **options: Any) -> None:
        try:
            changed = secrets_reencrypt() + two_step.secrets_reencrypt()
        except SecretUnreadable as error:
            raise CommandError(
                f"A secret is {error}. Add that key again, at the end of CREDENTIAL_KEYS."
            ) from error
        self.stdout.write(f"{changed} secrets were encrypted again.")
