"""What the commands share: reading arguments, and printing results as text or JSON."""

import json
from argparse import ArgumentParser
from datetime import datetime
from typing import Any, Final

from django.core.management.base import BaseCommand, CommandError, OutputWrapper
from django.db import InterfaceError, OperationalError, ProgrammingError
from psycopg.errors import UndefinedColumn, UndefinedTable
from typing_extensions import override

from channels_app.models import Channel
from channels_app.selectors import (
    ChannelDeleted,
    ChannelNotFound,
    channel_get,
    refuse_deleted,
)
from pushsvc.common.errors import Conflict, Invalid
from pushsvc.common.ids import parse_uuid
from pushsvc.common.timestamps import parse_timestamp

UNAVAILABLE: Final = (OperationalError, InterfaceError)


class DatabaseCommand(BaseCommand):
    """A command that reads or changes rows. It requires a migrated database that responds."""

    @override
    def execute(self, *args: Any, **options: Any) -> str | None:
        try:
            return super().execute(*args, **options)
        except ProgrammingError as error:
            if isinstance(error.__cause__, UndefinedTable | UndefinedColumn):
                raise CommandError("Migrate the database first: manage.py migrate") from error
            raise
        except UnicodeEncodeError as error:
            raise CommandError("An argument is not UTF-8.") from error
        except UNAVAILABLE as error:
            reason = said_by_database(error)
            raise CommandError(f"{reason} manage.py doctor reports what to do.") from error


def said_by_database(error: Exception) -> str:
    return f"PostgreSQL: {str(error).strip().partition(chr(10))[0].rstrip('.')}."


def add_json_option(parser: ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def write_result(stdout: OutputWrapper, result: dict[str, str], *, as_json: bool) -> None:
    if as_json:
        stdout.write(json.dumps(result))
        return
    width = max(len(name) for name in result)
    for name, value in result.items():
        stdout.write(f"{name:<{width}}  {value}")


def command_error(error: Invalid | Conflict) -> CommandError:
    if isinstance(error, Conflict):
        return CommandError(error.detail)
    return CommandError(
        "; ".join(f"{field_error.attr}: {field_error.detail}" for field_error in error.errors)
    )


def channel_argument(text: str, *, is_changed: bool = True) -> Channel:
    """`is_changed`: refuses a channel that is being deleted, as the API does."""
    try:
        channel = channel_get(parse_uuid(text))
        if is_changed:
            refuse_deleted(channel.deletion_asked_at)
    except (ValueError, ChannelNotFound) as error:
        raise CommandError(f"There is no channel {text!r}.") from error
    except ChannelDeleted as error:
        raise CommandError(error.detail) from error
    return channel


def moment_argument(text: str | None) -> datetime | None:
    try:
        return parse_timestamp(text) if text else None
    except ValueError as error:
        raise CommandError(f"{text!r} is not an ISO 8601 date and time.") from error
