"""Creates and changes segments."""

from typing import Any, Final
from uuid import UUID

from django.db.models.functions import Now
from django.utils.translation import gettext

from channels_app import audit
from channels_app.models import Channel
from pushsvc.common.errors import FieldError, Invalid, Outdated
from pushsvc.common.store import sql
from subscriptions_app.errors import SegmentNameTaken, TooManySegments
from subscriptions_app.models import MAX_SEGMENT_NAME, Segment
from subscriptions_app.segments import selectors
from subscriptions_app.segments.rules import rule_errors

MAX_SEGMENTS: Final = 1_000  # of a channel


def segment_create(*, channel: Channel, name: str, rule: object) -> Segment:
    """Creates a segment. Raises Invalid with every error of `name` and `rule` (JSON),
    NotificationNotFound, SegmentNameTaken and TooManySegments."""
    fields = _segment_fields(channel.id, name, rule)
    with sql.unless_taken(SegmentNameTaken):
        # Locks the channel, so that no other segment is added before the transaction ends.
        Channel.objects.select_for_update(no_key=True).get(pk=channel.pk)
        _check_room(channel)
        segment = Segment.objects.create(channel=channel, **fields)
        audit.record(segment, audit.Action.CREATE, after=audit.fields_of(segment))
    return segment


def segment_check(*, channel: Channel, name: str, rule: object) -> None:
    """Raises what `segment_create` would raise now. Stores nothing."""
    _segment_fields(channel.id, name, rule)
    if Segment.objects.filter(channel=channel, name=name).exists():
        raise SegmentNameTaken
    _check_room(channel)


def segment_update(
    *, channel_id: UUID, segment_id: UUID, name: str, rule: object, seen: str | None = None
) -> Segment:
    """Changes the segment, also for pending notifications, but not for started ones.

    Safe to repeat. Raises NotFound, Invalid, NotificationNotFound and SegmentNameTaken, and
    Outdated if `seen`, a version, is not the segment's.
    """
    fields = _segment_fields(channel_id, name, rule)
    with sql.unless_taken(SegmentNameTaken):
        segment = selectors.segment_locked(
            channel_id=channel_id, segment_id=segment_id, to_edit=True
        )
        if seen is not None and seen != segment.version:
            raise Outdated(by=audit.last_actor(segment))
        before = audit.fields_of(segment)
        Segment.objects.filter(pk=segment.pk).update(**fields, updated_at=Now())
        segment.refresh_from_db()
        audit.record(segment, audit.Action.UPDATE, before, audit.fields_of(segment))
    return segment


def _check_room(channel: Channel) -> None:
    if Segment.objects.filter(channel=channel).count() >= MAX_SEGMENTS:
        raise TooManySegments(
            gettext("The channel has %(most)s segments. Delete one first.")
            % {"most": f"{MAX_SEGMENTS:,}"}
        )


def _segment_fields(channel_id: UUID, name: str, rule: Any) -> dict[str, Any]:
    errors = []
    if not name.strip() or len(name) > MAX_SEGMENT_NAME or "\x00" in name:
        detail = gettext("Must have 1 to %(most)s characters.") % {"most": MAX_SEGMENT_NAME}
        errors.append(FieldError("name", "malformed", detail))
    errors += rule_errors(rule)
    if errors:
        raise Invalid(errors)
    selectors.check_notifications(channel_id, rule)
    return {"name": name, "rule": rule}
