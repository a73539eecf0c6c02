"""Changes what a notification says, when it is sent and until when, after it was accepted."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models.functions import Now

from channels_app import audit
from channels_app.models import Channel
from notifications_app.content import CONTENT_FIELDS, SendRequest
from notifications_app.errors import NotCombinable, NotEditable, StillSending
from notifications_app.models import Batch, Notification
from notifications_app.send_schema import read_edit
from notifications_app.services import audience_check, content_check, expiry_check
from notifications_app.states import NotificationStatus
from notifications_app.tasks import wake_planner
from pushsvc.common.errors import NotFound
from pushsvc.common.store import sql

# What of a notification that is being sent can be changed while it is paused.
_WHILE_PAUSED: Final = frozenset({*CONTENT_FIELDS, "expires_at"})


def notification_edit(
    *, channel: Channel, notification_id: UUID, changes: Mapping[str, Any]
) -> Notification:
    """Changes fields of a send and returns the notification. `changes` is parsed JSON: a field that
    is missing stays as it is, null takes its default. If all fields are as they were, nothing
    changes. Safe to repeat.

    A pending notification can be changed as a whole, but for whether it goes to a segment. Either
    the change is first and devices get what it says, or the start is and NotEditable is raised.
    One that is processing and paused can be changed in its content and `expires_at`. What is fixed
    then is not checked again, nor is an `expires_at` that stays.
    Raises NotFound, NotEditable, NotCombinable, StillSending, DRF's ValidationError, and what the
    checks of a send raise.
    """
    with sql.brief_transaction():
        row = Notification.objects.filter(id=notification_id, channel_id=channel.id)
        before = row.locked()
        if before is None:
            raise NotFound("There is no such notification.")
        _refuse(before, changes)
        request = read_edit(before, changes)
        _check(channel, before, request, changes)
        values = _values(before, request)
        changed = _changed(before, values)
        if not changed:
            return before
        if before.status != NotificationStatus.PENDING:
            values["deadline_at"] = _deadline(before, request)
        row.update(**values, edited_at=Now())
        after = row.get()
        fields = audit.fields_of(before), audit.fields_of(after)
        audit.record(after, audit.Action.UPDATE, *fields, note=f"Edited: {', '.join(changed)}.")
        if after.edited_at and after.scheduled_at <= after.edited_at:
            transaction.on_commit(wake_planner)
    return after


def _refuse(notification: Notification, changes: Mapping[str, Any]) -> None:
    """Raises for a change that may not be made now."""
    if notification.status == NotificationStatus.PENDING and not notification.is_test:
        has_segment = notification.segment_id is not None
        if "segment_id" in changes and (changes["segment_id"] is not None) != has_segment:
            detail = "A send to a segment stays one, and so does a send to the whole channel."
            raise NotCombinable("segment_id", detail)
        return
    if notification.is_test or not notification.is_paused:
        state = "a test" if notification.is_test else notification.status
        remedy = " Pause it first." if notification.status == "processing" else ""
        raise NotEditable(f"Notification {notification.id} is {state}.{remedy}")
    if fixed := sorted(changes.keys() - _WHILE_PAUSED):
        raise NotEditable(f"It is being sent already, so these are fixed: {', '.join(fixed)}.")
    # A batch that is claimed from now on is handed back, or its worker reads what was changed.
    if Batch.objects.leased().filter(notification=notification).exists():
        raise StillSending


def _check(
    channel: Channel, before: Notification, request: SendRequest, changes: Mapping[str, Any]
) -> None:
    """Raises for what may not be sent, if it can still be changed."""
    if before.status == NotificationStatus.PENDING:
        audience_check(channel=channel, request=request)
    content_check(request)
    if changes.keys() & {"scheduled_at", "expires_at"}:
        expiry_check(request)


def _changed(before: Notification, values: Mapping[str, Any]) -> list[str]:
    """The names of the fields of a send that get another value, without their values: `data` may
    be about a person."""
    stored = {name: getattr(before, name) for name in values}
    stored["data_names"] = list(before.ordered_data)
    changed = {name for name in values if values[name] != stored[name]}
    return sorted({"data" if name == "data_names" else name for name in changed})


def _values(before: Notification, request: SendRequest) -> dict[str, Any]:
    """Of the columns that an edit writes, but for the deadline."""
    content = {name: getattr(request.content, name) for name in CONTENT_FIELDS}
    own = content | {
        "data_names": list(request.content.data),
        "expires_at": request.expires_at,
    }
    return own | _schedule(request) if before.status == NotificationStatus.PENDING else own


def _schedule(request: SendRequest) -> dict[str, Any]:
    return {
        "target_platforms": list(request.target_platforms),
        "segment_id": request.segment_id,
        "scheduled_at": request.scheduled_at or Now(),
    }


def _deadline(notification: Notification, request: SendRequest) -> Any:
    """As the start would set it now, and earlier pauses moved it. The end of this one moves it
    again."""
    if notification.started_at is None:
        raise ValueError("a notification that was not started has no deadline")
    seconds = (request.content.ttl or settings.TTL_ZERO_SECONDS) + notification.paused_seconds
    deadline = notification.started_at + timedelta(seconds=seconds)
    return min(deadline, request.expires_at or deadline)
