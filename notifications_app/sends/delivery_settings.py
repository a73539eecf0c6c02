"""Changes what a channel's sends use unless they say otherwise."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final
from uuid import UUID

from django.db import transaction

from channels_app import audit
from channels_app.models import Channel
from channels_app.selectors import recent_forget
from notifications_app.models import Notification
from notifications_app.pipeline.timed_starts import zones_of
from notifications_app.states import STATES
from notifications_app.timing import Timing
from pushsvc.common.platforms import Platform
from pushsvc.common.store import sql

# As docs/caps.md. A contact has a moment of each send that a cap counts.
MOST_CAPS: Final = 2
MAX_CAP_LIMIT: Final = 50
MAX_CAP_HOURS: Final = 720


@transaction.atomic
def delivery_settings_replace(
    *,
    channel_id: UUID,
    timezone: str,
    rate_per_minute: int | None,
    category_required: bool,
    quiet_hours: Mapping[str, str] | None,
    inbox_days: int = 0,
    caps: Sequence[Mapping[str, int]] = (),
) -> Channel:
    """Replaces all delivery settings. `timezone`: a name in tzdata's spelling. `rate_per_minute`:
    for sends that name no rate and start from now on. `quiet_hours`: as in a send. `inbox_days`: as
    in the model. `caps`: `limit` and `hours` of each. Pending notifications get the time zone, the
    quiet hours and the caps as well, unless they have their own or ignore them. Other processes may
    use the old settings for another second. Safe to repeat."""
    channel = Channel.objects.select_for_update(no_key=True).get(pk=channel_id)
    before = audit.fields_of(channel)
    values = {
        "timezone": timezone,
        "rate_per_minute": rate_per_minute,
        "category_required": category_required,
        "quiet_hours": quiet_hours,
        "inbox_days": inbox_days,
        "caps": list(caps) or None,
    }
    for name, value in values.items():
        setattr(channel, name, value)
    channel.save(update_fields=list(values))
    _rewrite_pending(channel)
    audit.record(channel, audit.Action.UPDATE, before, audit.fields_of(channel))
    transaction.on_commit(recent_forget)
    return channel


def _rewrite_pending(channel: Channel) -> None:
    """Writes what comes from the channel into its pending notifications. Locks them in the order of
    their ids. The first releases of those by local time change with it."""
    parameters: dict[str, Any] = {
        "channel": channel.pk,
        "after": UUID(int=0),
        "timezone": channel.timezone,
        "quiet": json.dumps(channel.quiet_hours) if channel.quiet_hours else None,
        "caps": json.dumps(channel.caps) if channel.caps else None,
        "none": json.dumps(Timing(timezone=channel.timezone).stored()),
        "step": _STEP,
    }
    zones: dict[str, Mapping[Platform, Sequence[str]]] = {}
    while rewritten := sql.rows(_REWRITE, STATES | parameters):
        parameters["after"] = max(id_ for id_, _ in rewritten)
        changed = [id_ for id_, is_changed in rewritten if is_changed]
        for notification in Notification.objects.filter(pk__in=changed):
            _reschedule(notification, zones)


def _reschedule(
    notification: Notification, zones: dict[str, Mapping[Platform, Sequence[str]]]
) -> None:
    """`zones`: those of the channel's devices that were read already, by the names of platforms."""
    timing = notification.timed
    if timing is None or timing.after is None:
        return
    key = str(notification.pk if notification.has_targets else notification.target_platforms)
    if key not in zones:
        zones[key] = zones_of(notification)
    names = {name for each in zones[key].values() for name in each}
    first = min(timing.release(name) for name in names)
    if first != notification.scheduled_at:
        Notification.objects.filter(pk=notification.pk).update(scheduled_at=first)


_STEP: Final = 500
# In SQL, because the ORM can neither join an update with values nor return rows. A notification
# without a timing sends at once, and has the channel's quiet hours; tests have none. Caps that are
# empty are ignored by the send.
_REWRITE: Final = """
WITH locked AS MATERIALIZED (
  SELECT id, timing FROM notifications_app_notification
  WHERE channel_id = %(channel)s AND status = %(notification_pending)s AND id > %(after)s
    AND only_subscription_id IS NULL
  ORDER BY id LIMIT %(step)s FOR NO KEY UPDATE
), rewritten AS (
  SELECT id, timing AS was, coalesce(timing, %(none)s::jsonb)
    || jsonb_build_object('timezone', %(timezone)s::text)
    || CASE WHEN coalesce(timing->>'quiet_from', 'channel') = 'channel'
       THEN jsonb_build_object('quiet', %(quiet)s::jsonb) ELSE '{}'::jsonb END AS timing
  FROM locked
)
UPDATE notifications_app_notification AS notification
SET timing = CASE WHEN rewritten.timing->>'quiet_from' = 'channel'
    AND rewritten.timing->>'local_at' IS NULL AND rewritten.timing->>'quiet' IS NULL
  THEN NULL ELSE rewritten.timing END,
  caps = CASE WHEN notification.caps = '[]' THEN notification.caps ELSE %(caps)s::jsonb END
FROM rewritten WHERE notification.id = rewritten.id
RETURNING notification.id,
  notification.timing->>'local_at' IS NOT NULL AND notification.timing <> rewritten.was
"""
