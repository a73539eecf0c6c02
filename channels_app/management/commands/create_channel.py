"""`manage.py create_channel`: creates a channel with an API key."""

from argparse import ArgumentParser
from typing import Any

from django.db import transaction
from typing_extensions import override

from channels_app.management.output import (
    DatabaseCommand,
    add_json_option,
    command_error,
    write_result,
)
from channels_app.selectors import current_vapid_key
from channels_app.services import api_key_issue, channel_create
from pushsvc.common.errors import Invalid


class Command(DatabaseCommand):
    help = "Creates a channel and an API key with all scopes. The key is shown only here."

    @override
    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name")
        parser.add_argument(
            "--vapid-subject", help="mailto: or https: address where push services can reach you"
        )
        parser.add_argument("--site-url", default="", help="address of the site")
        add_json_option(parser)

    @override
    def handle(self, *args: Any, **options: Any) -> None:
        try:
            result = _create(options["name"], options["vapid_subject"], options["site_url"])
        except Invalid as error:
            raise command_error(error) from error
        write_result(self.stdout, result, as_json=options["json"])


@transaction.atomic
def _create(name: str, vapid_subject: str | None, site_url: str) -> dict[str, str]:
    channel = channel_create(name=name, vapid_subject=vapid_subject, site_url=site_url)
    _, text = api_key_issue(channel=channel, name="first key")
    return {
        "channel_id": str(channel.id),
        "api_key": text,
        "vapid_public_key": current_vapid_key(channel).public_key,
    }
