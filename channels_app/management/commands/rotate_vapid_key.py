"""`manage.py rotate_vapid_key`: creates a new VAPID key for a channel."""

from argparse import ArgumentParser
from typing import Any

from typing_extensions import override

from channels_app.management.output import (
    DatabaseCommand,
    add_json_option,
    channel_argument,
    command_error,
    write_result,
)
from channels_app.services import TooManyVapidKeys, vapid_key_rotate


class Command(DatabaseCommand):
    help = "Creates a new VAPID key for a channel. The old key still serves its subscriptions."

    @override
    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("channel_id")
        add_json_option(parser)

    @override
    def handle(self, *args: Any, **options: Any) -> None:
        channel = channel_argument(options["channel_id"])
        try:
            key = vapid_key_rotate(channel=channel)
        except TooManyVapidKeys as error:
            raise command_error(error) from error
        result = {"channel_id": str(channel.id), "vapid_public_key": key.public_key}
        write_result(self.stdout, result, as_json=options["json"])
