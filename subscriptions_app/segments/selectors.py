"""Reads of segments."""

from uuid import UUID

from django.db.models import QuerySet
from django.utils.translation import gettext

from pushsvc.common.errors import NotFound
from pushsvc.common.store import sql
from subscriptions_app.errors import NotificationNotFound
from subscriptions_app.models import Segment
from subscriptions_app.segments.ledger import FOREIGN_NOTIFICATIONS
from subscriptions_app.segments.rules import Rule, named_notifications


def rule_part(segment_id: str, channel_id: str) -> str:
    """SQL that reads a segment's rule; NULL if the channel has no such segment. The arguments are
    names of columns."""
    return f"""(
        SELECT rule FROM {Segment._meta.db_table} AS segment
        WHERE segment.id = {segment_id} AND segment.channel_id = {channel_id}
    )"""  # noqa: S608 - names of our own


def segment_get(*, channel_id: UUID, segment_id: UUID) -> Segment:
    """Returns the segment. Raises NotFound, also if it belongs to another channel."""
    return _one(Segment.objects.filter(id=segment_id, channel_id=channel_id))


def segment_find(*, channel_id: UUID, segment_id: UUID | None) -> Segment | None:
    """The segment, or None if there is no id or the segment no longer exists."""
    if segment_id is None:
        return None
    return Segment.objects.filter(channel_id=channel_id, id=segment_id).first()


def segments_by_name(*, channel_id: UUID, limit: int) -> list[Segment]:
    return list(Segment.objects.filter(channel_id=channel_id).order_by("name")[:limit])


def segment_locked(*, channel_id: UUID, segment_id: UUID, to_edit: bool = False) -> Segment:
    """Like `segment_get`, and locks the segment against edits and deletion until the transaction
    ends. With `to_edit`, other transactions may hold it (`segment_hold`)."""
    found = Segment.objects.filter(id=segment_id, channel_id=channel_id)
    return _one(found.select_for_update(no_key=to_edit))


def segment_hold(*, channel_id: UUID, segment_id: UUID) -> bool:
    """Whether the segment exists. If so, locks it against deletion, but not against edits, until
    the transaction ends."""
    return bool(sql.rows(_HOLD, {"channel": channel_id, "segment": segment_id}))


def check_notifications(channel_id: UUID, rule: Rule, attr: str = "rule") -> None:
    """Raises NotificationNotFound if the rule names a notification that is not the channel's.
    `attr` is the path to the rule."""
    named = named_notifications(rule)
    if not named:
        return
    parameters = {"channel": channel_id, "ids": list(named)}
    for (foreign,) in sql.rows(FOREIGN_NOTIFICATIONS, parameters):
        raise NotificationNotFound(attr, foreign)


def segment_page(*, channel_id: UUID, limit: int, offset: int) -> list[Segment]:
    """A page of the channel's segments, newest first. Empty if the offset is past the end."""
    segments = Segment.objects.filter(channel_id=channel_id)
    return list(segments.order_by("-created_at", "-id")[offset : offset + limit])


def _one(segments: QuerySet[Segment]) -> Segment:
    found = segments.first()
    if found is None:
        raise NotFound(gettext("There is no such segment."))
    return found


# Raw, because the ORM has no FOR KEY SHARE.
_HOLD = """
SELECT FROM subscriptions_app_segment
WHERE id = %(segment)s AND channel_id = %(channel)s
FOR KEY SHARE
"""
