"""`manage.py export_channel`: writes what a channel has into files."""

import json
import os
from argparse import ArgumentParser
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from django.core.management.base import CommandError
from typing_extensions import override

from channels_app import audit
from channels_app.management.output import DatabaseCommand, channel_argument
from channels_app.models import Channel, VapidKey
from channels_app.selectors import vapid_private_keys
from notifications_app.content.values import CONTENT, DEFAULTS
from notifications_app.models import Notification, Schedule, Target, Template
from notifications_app.reporting.deliveries import delivery_slices
from notifications_app.selectors import LogEntry, log_after
from pushsvc.common.http.exports import NO_ID, ndjson_lines
from pushsvc.common.store import sql
from pushsvc.common.timestamps import format_timestamp
from subscriptions_app.devices.exporting import subscription_ids_after, subscription_slices
from subscriptions_app.models import Category, Person, Segment

Row = dict[str, Any]
Slices = Iterable[Sequence[Row]]
_SLICE: Final = 500
_NOTIFICATION: Final = (
    "status",
    "target_platforms",
    "segment_id",
    "rule",
    "category",
    "template_id",
    "name",
    "labels",
    "created_at",
    "scheduled_at",
    "expires_at",
    "started_at",
    "finished_at",
    "recipient_count",
    "delivered_count",
    "bounced_count",
    "stopped_count",
    "opted_out_count",
    "expired_count",
    "received_count",
    "clicked_count",
    "dismissed_count",
)


class Command(DatabaseCommand):
    help = "Writes what a channel has into files of a new directory. See docs/data.md."

    @override
    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("channel_id")
        parser.add_argument("directory")
        parser.add_argument(
            "--with-keys",
            action="store_true",
            help="also the addresses and keys of devices, and the VAPID keys of the channel with"
            " which another service can send to its browsers",
        )

    @override
    def handle(self, *args: Any, **options: Any) -> None:
        channel = channel_argument(options["channel_id"])
        directory, with_keys = Path(options["directory"]), options["with_keys"]
        try:
            directory.mkdir(mode=0o700)
        except OSError as error:
            raise CommandError(f"{directory}: {error.strerror}") from error
        keys = "with addresses and keys" if with_keys else "without addresses and keys"
        note = f"The channel was exported by a command, {keys}."
        audit.record(channel, audit.Action.ACCESS, note=note)
        counts = {}
        for name, slices in _files(channel, with_keys=with_keys):
            counts[name] = _write(directory / f"{name}.ndjson", slices)
            self.stdout.write(f"{name:<13}  {counts[name]}")
        # Last, so that a directory with it is complete.
        about = {
            "channel_id": str(channel.pk),
            "name": channel.name,
            "exported_at": format_timestamp(sql.now()),
            "rows": counts,
        }
        _write(directory / "channel.json", [[about]])


def _files(channel: Channel, *, with_keys: bool) -> Iterator[tuple[str, Slices]]:
    yield "subscriptions", _subscriptions(channel.pk, with_keys)
    yield "people", _people(channel.pk)
    yield "categories", [[_category(each) for each in _of(Category, channel, "position", "id")]]
    yield (
        "segments",
        [[_named("segment_id", each, rule=each.rule) for each in _of(Segment, channel)]],
    )
    yield "templates", ([_template(each)] for each in _of(Template, channel))
    yield "schedules", ([_schedule(each)] for each in _of(Schedule, channel))
    yield "notifications", ([_notification(each)] for each in _notifications(channel.pk))
    yield "deliveries", _deliveries(channel.pk)
    if with_keys:
        yield "vapid_keys", [_vapid_keys(channel)]


def _write(path: Path, slices: Slices) -> int:
    """The number of rows. Only the user of this process can read the file."""
    count = 0
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        for rows in slices:
            file.writelines(ndjson_lines([rows]))
            count += len(rows)
    return count


def _read(read: Callable[[UUID], list[Any]], id_of: Callable[[Any], UUID]) -> Iterator[list[Any]]:
    """Everything that follows the smallest id, a bounded number at a time."""
    after = NO_ID
    while found := read(after):
        yield found
        after = id_of(found[-1])


def _subscriptions(channel_id: UUID, with_keys: bool) -> Slices:
    def read(after: UUID) -> list[UUID]:
        return subscription_ids_after(channel_id, after=after, limit=_SLICE)

    for ids in _read(read, lambda id_: id_):
        yield from subscription_slices(ids, with_address=with_keys)


def _people(channel_id: UUID) -> Slices:
    """Those who opted out or have choices. Of the others, subscriptions have everything."""
    own = Person.objects.filter(channel_id=channel_id).order_by("external_id")
    found = own.exclude(opted_out_at=None, choices={})
    after = ""
    while people := list(found.filter(external_id__gt=after)[:_SLICE]):
        yield [
            {
                "external_id": each.external_id,
                "choices": each.choices,
                "opted_out": each.opted_out_at is not None,
            }
            for each in people
        ]
        after = people[-1].external_id


def _notifications(channel_id: UUID) -> Iterator[Notification]:
    own = Notification.objects.filter(channel_id=channel_id).order_by("id")
    for found in _read(lambda after: list(own.filter(id__gt=after)[:_SLICE]), lambda each: each.pk):
        yield from found


def _deliveries(channel_id: UUID) -> Slices:
    for notification in _notifications(channel_id):
        for entries in _log(notification.pk):
            for rows in delivery_slices(notification, entries):
                yield [{"notification_id": notification.pk, **row} for row in rows]


def _log(notification_id: UUID) -> Iterator[list[LogEntry]]:
    def read(after: UUID) -> list[LogEntry]:
        return log_after(notification_id, after=after, limit=_SLICE)

    return _read(read, lambda each: each.subscription_id)


def _of(model: Any, channel: Channel, *order: str) -> Iterable[Any]:
    return model.objects.filter(channel=channel).order_by(*(order or ("id",)))  # type: ignore[no-any-return]


def _category(each: Category) -> Row:
    return {
        "key": each.key,
        "name": each.name,
        "description": each.description,
        "default": each.chosen_by_default,
        "position": each.position,
        "created_at": each.created_at,
        "archived_at": each.archived_at,
    }


def _template(each: Template) -> Row:
    return _named("template_id", each, content=json.loads(each.content_json))


def _schedule(each: Schedule) -> Row:
    return _named(
        "schedule_id",
        each,
        enabled=each.is_enabled,
        notification=each.send,
        recurrence=each.recurrence,
        next_at=each.next_at,
        last_notification_id=each.last_notification_id,
        disabled_code=each.disabled_code,
    )


def _named(id_name: str, each: Segment | Template | Schedule, **own: Any) -> Row:
    times = {"created_at": each.created_at, "updated_at": each.updated_at}
    return {id_name: each.pk, "name": each.name, **own, **times}


def _notification(each: Notification) -> Row:
    content = {name: getattr(each.content, name) for name in CONTENT}
    given = {name: value for name, value in content.items() if value != DEFAULTS.get(name)}
    named = Target.objects.of(each.pk) if each.has_targets else ()
    return {
        "notification_id": each.pk,
        "content": given,
        **{name: getattr(each, name) for name in _NOTIFICATION},
        "targets": [
            {"external_id": target.external_id, "subscription_id": target.subscription_id}
            for target in named
        ],
    }


def _vapid_keys(channel: Channel) -> list[Row]:
    keys = VapidKey.objects.filter(channel=channel).order_by("created_at", "id")
    private = vapid_private_keys(key.pk for key in keys)
    return [
        {
            "public_key": key.public_key,
            "private_key": private[key.pk].private_key,
            "current": key.retired_at is None,
        }
        for key in keys
    ]
