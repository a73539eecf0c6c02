"""`manage.py create_api_key`: creates an API key for a channel."""

from argparse import ArgumentParser
from typing import Any

from typing_extensions import override

from channels_app.management.output import (
    DatabaseCommand,
    add_json_option,
    channel_argument,
    command_error,
    moment_argument,
    write_result,
)
from channels_app.models import Scope
from channels_app.services import api_key_issue
from pushsvc.common.errors import Conflict, Invalid


class Command(DatabaseCommand):
    help = "Creates another API key for a channel. The key is shown only here."

    @override
    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("channel_id")
        parser.add_argument(
            "--scopes",
            default=",".join(Scope.values),
            help="scopes, separated by commas (default: all)",
        )
        parser.add_argument("--name", default="")
        parser.add_argument("--expires", help="ISO 8601 date and time; UTC if it has no offset")
        add_json_option(parser)

    @override
    def handle(self, *args: Any, **options: Any) -> None:
        channel = channel_argument(options["channel_id"])
        scopes = [scope.strip() for scope in options["scopes"].split(",")]
        expires_at = moment_argument(options["expires"])
        try:
            _, text = api_key_issue(
                channel=channel, name=options["name"], scopes=scopes, expires_at=expires_at
            )
        except (Invalid, Conflict) as error:
            raise command_error(error) from error
        result = {"channel_id": str(channel.id), "api_key": text}
        write_result(self.stdout, result, as_json=options["json"])
