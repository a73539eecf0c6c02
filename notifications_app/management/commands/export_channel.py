"""`manage.py export_channel`: writes what a channel has into files."""

import json
import os
from argparse import ArgumentParser
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from django.core.management.base import CommandError
from django.db import DatabaseError
from typing_extensions import override

from channels_app import audit
from channels_app.management.output import DatabaseCommand, channel_argument
from channels_app.models import Channel
from notifications_app.images.bucket import BucketFailed
from notifications_app.reporting.channel_data import channel_files, channel_settings, json_line
from pushsvc.common.store import sql
from pushsvc.common.store.crypto import SecretUnreadable
from pushsvc.common.timestamps import format_timestamp

_WHOLE: Final = "channel.json"  # only in a directory that is complete
_BEGUN: Final = "incomplete.json"


class Command(DatabaseCommand):
    help = "Writes what a channel has into files of a new directory. See docs/data.md."

    @override
    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("channel_id")
        parser.add_argument("directory")
        parser.add_argument(
            "--with-keys",
            action="store_true",
            help="also the addresses and keys of devices, webhooks, and the VAPID keys of the"
            " channel with which another service can send to its browsers",
        )
        parser.add_argument(
            "--resume",
            action="store_true",
            help="go on with an export that ended early: files that are complete are kept",
        )

    @override
    def handle(self, *args: Any, **options: Any) -> None:
        channel = channel_argument(options["channel_id"], is_changed=False)
        directory, with_keys = Path(options["directory"]), options["with_keys"]
        begun = {"channel_id": str(channel.pk), "with_keys": with_keys}
        if options["resume"]:
            _check_begun(directory, begun)
        else:
            _create(directory, begun)
        keys = "with addresses and keys" if with_keys else "without addresses and keys"
        note = f"The channel was exported by a command, {keys}."
        audit.record(channel, audit.Action.ACCESS, note=note)
        try:
            counts = self._write_files(channel, directory, with_keys=with_keys)
            channel_argument(str(channel.pk), is_changed=False)  # it may be gone meanwhile
            now = format_timestamp(sql.now())
            about = begun | {"name": channel.name, "exported_at": now, "rows": counts}
            _write(directory / _WHOLE, [json_line(about | channel_settings(channel))])
            (directory / _BEGUN).unlink()
        except (OSError, DatabaseError, SecretUnreadable, BucketFailed) as error:
            reason = f"The export is incomplete: {error}".strip()
            raise CommandError(f"{reason} Go on with --resume") from error
        except KeyboardInterrupt:
            raise CommandError("Interrupted. Go on with --resume") from None
        self.stdout.write(f"The export is complete: {directory}")
        if with_keys:
            self.stdout.write("Whoever has it can send to the devices. Delete it after use.")

    def _write_files(self, channel: Channel, directory: Path, *, with_keys: bool) -> dict[str, int]:
        counts = {}
        for name, texts in channel_files(channel, with_keys=with_keys):
            path = directory / f"{name}.ndjson"
            counts[name] = _lines_of(path) if path.exists() else _write(path, texts)
            self.stdout.write(f"{name:<13}  {counts[name]}")
        return counts


def _create(directory: Path, begun: dict[str, Any]) -> None:
    try:
        directory.mkdir(mode=0o700)
        _write(directory / _BEGUN, [json_line(begun)])
    except OSError as error:
        raise CommandError(f"{directory}: {error.strerror}") from error


def _check_begun(directory: Path, begun: dict[str, Any]) -> None:
    """Otherwise one export would have files of two."""
    if (directory / _WHOLE).exists():
        raise CommandError(f"{directory}: The export is complete.")
    try:
        found = json.loads((directory / _BEGUN).read_bytes())
    except (OSError, ValueError) as error:
        raise CommandError(f"{directory} has no export that ended early.") from error
    if found != begun:
        raise CommandError(f"{directory} has an export of another channel, or with other options.")


def _write(path: Path, texts: Iterable[str]) -> int:
    """The number of rows. The file has its name when it is complete. Only the user of this process
    can read it."""
    count, part = 0, path.with_name(f"{path.name}.part")
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
    with os.fdopen(os.open(part, flags, 0o600), "w", encoding="utf-8", newline="\n") as file:
        for text in texts:
            file.write(text)
            count += text.count("\n")
        file.flush()
        os.fsync(file.fileno())
    part.rename(path)
    return count


def _lines_of(path: Path) -> int:
    with path.open("rb") as file:
        return sum(1 for _ in file)
