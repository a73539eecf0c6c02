"""`manage.py turn_off_two_step`: for a user who lost the phone and the recovery codes."""

from argparse import ArgumentParser
from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import CommandError
from typing_extensions import override

from channels_app.management.output import DatabaseCommand
from channels_app.sign_in import two_step


class Command(DatabaseCommand):
    help = "Turns two-step sign-in off for a user who lost the phone and the recovery codes."

    @override
    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("username")

    @override
    def handle(self, *args: Any, **options: Any) -> None:
        user = User.objects.filter(username=options["username"]).first()
        if user is None:
            raise CommandError(f"User {options['username']!r} does not exist.")
        two_step.turn_off(user=user)
        self.stdout.write(f"Two-step sign-in is off for {user}.")
