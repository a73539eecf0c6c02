"""`manage.py revoke_api_key`: revokes an API key."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError
from typing_extensions import override

from channels_app.keys import public_id_of
from channels_app.management.output import DatabaseCommand
from channels_app.selectors import api_key_find
from channels_app.services import api_key_revoke


class Command(DatabaseCommand):
    help = "Revokes an API key. It is refused from the next request on. Safe to repeat."

    @override
    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("key", help="the key, or its first 12 characters (psk_ and eight more)")

    @override
    def handle(self, *args: Any, **options: Any) -> None:
        public_id = public_id_of(options["key"])
        found = api_key_find(public_id) if public_id else None
        if found is None:
            raise CommandError("There is no such API key.")
        was_live = api_key_revoke(api_key=found.api_key)
        done = "was revoked" if was_live else "was revoked before"
        self.stdout.write(
            f"The key psk_{public_id}_… of channel {found.api_key.channel_id} {done}."
        )
