"""Reads a notification's deliveries for the export."""

from collections.abc import Iterator, Sequence
from typing import Any, Final
from uuid import UUID

from notifications_app.models import Notification
from notifications_app.selectors import LogEntry, log_after
from subscriptions_app.models import Subscription

FIELDS: Final = (
    "subscription_id",
    "external_id",
    "platform",
    "outcome",
    "code",
    "detail",
    "attempts",
    "action",
    "finished_at",
    "received_at",
    "clicked_at",
    "dismissed_at",
)
_MOST_READ: Final = 5_000
_SLICE: Final = 500


def log_page(
    notification_id: UUID, *, after: UUID, limit: int, outcome: str | None
) -> tuple[list[LogEntry], UUID | None]:
    """The next entries of the notification's log, and the id after which others may follow. It
    reads a bounded number of recipients, however few have the outcome."""
    most = limit if outcome is None else _MOST_READ
    found = log_after(notification_id, after=after, limit=most + 1)
    meant = [each for each in found[:most] if outcome in {None, each.outcome}]
    if len(meant) > limit:
        return meant[:limit], meant[limit - 1].subscription_id
    return meant, found[most - 1].subscription_id if len(found) > most else None


def delivery_slices(
    notification: Notification, entries: Sequence[LogEntry]
) -> Iterator[list[dict[str, Any]]]:
    """The rows of these entries of the notification's log, in their order."""
    actions = [each["id"] for each in notification.content.actions]
    for at in range(0, len(entries), _SLICE):
        part = entries[at : at + _SLICE]
        people = _people([each.subscription_id for each in part])
        yield [_row(each, people.get(each.subscription_id), actions) for each in part]


def _row(entry: LogEntry, external_id: str | None, actions: Sequence[str]) -> dict[str, Any]:
    clicked = entry.clicked_action
    known = entry._asdict() | {
        "external_id": external_id,
        "code": entry.code or None,
        "detail": entry.detail or None,
        "action": None if clicked is None else actions[clicked],
    }
    return {name: known[name] for name in FIELDS}


def _people(subscription_ids: Sequence[UUID]) -> dict[UUID, str]:
    """The external ids of the people whose these devices are now."""
    found = Subscription.objects.filter(pk__in=subscription_ids, person__isnull=False)
    return dict(found.values_list("pk", "person__external_id"))
