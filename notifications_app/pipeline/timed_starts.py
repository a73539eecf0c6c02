"""Starts notifications that are sent in parts: by local time, or because they test variants.

A test has two parts on each platform: those who get one of all variants, and the rest, which waits
for the decision.

By local time there is a part for each moment at which it is their time in some zones. The last part
of each platform is that of the movers, whose zone has changed since the start: they may have left a
zone before its part was planned, for a zone whose part was planned already.
"""

import json
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from datetime import datetime
from typing import Any, Final
from uuid import UUID

import structlog
from django.conf import settings
from django.db import DatabaseError, connection

from notifications_app.models import NO_SUBSCRIPTION, Driver, Notification, Target
from notifications_app.pipeline.plan_queue import (
    BEFORE_ALL,
    CHANNELS_AT_ONCE,
    DUE_OF_CHANNEL,
    NEXT_CHANNEL,
    PLAN_RULE,
    START_PARAMETERS,
    STARTED,
    TIMED,
    TTL,
    RoundRobin,
    note_started,
    started_at_once,
)
from notifications_app.pipeline.splitting import BUCKETS, BUCKETS_OF_PERCENT
from notifications_app.states import STATES
from notifications_app.timing import Timing, releases
from pushsvc.common.platforms import Platform
from pushsvc.common.store import sql
from subscriptions_app.audiences.targets import TargetIds
from subscriptions_app.audiences.zones import zones_present

logger = structlog.stdlib.get_logger(__name__)

_FAILED_WAIT_SECONDS: Final = 5.0
_failed: dict[UUID, float] = {}  # by notification, until when on the monotonic clock

# The zones by their release, by platform.
Releases = Mapping[Platform, Mapping[datetime, Sequence[str]]]


def start_timed(limit: int = 25, *, round_robin: RoundRobin | None = None) -> int:
    """Starts the `limit` timed notifications that have been due longest of each of the next
    channels. Returns how many. One that cannot be started is left alone for a while, and delays no
    other. While more new plans wait than a claim takes, `limit` counts as 1, as in `start_due`."""
    round_robin = round_robin or RoundRobin()
    parameters = {
        "after": round_robin.last_timed,
        "most_channels": CHANNELS_AT_ONCE,
        "limit": 1 if round_robin.is_new_left else limit,
        "failed": _failed_lately(),
    }
    due: defaultdict[UUID, list[UUID]] = defaultdict(list)
    for notification_id, channel_id in sql.rows(NEXT_TIMED, STATES | parameters):
        due[channel_id].append(notification_id)
    is_round = len(due) < CHANNELS_AT_ONCE
    round_robin.last_timed = BEFORE_ALL if is_round else max(due)
    return note_started({started for own in due.values() for started in _started_of(own)})


def zones_of(notification: Notification) -> dict[Platform, list[str]]:
    """The time zones of the devices that the notification may reach, by platform."""
    return zones_present(
        notification.channel_id, notification.target_platforms, named_of(notification)
    )


def named_of(notification: Notification) -> TargetIds | None:
    """The ids of its targets. None if it has none."""
    if not notification.has_targets:
        return None
    targets = list(Target.objects.of(notification.pk))
    return TargetIds(
        [each.external_id for each in targets if each.external_id is not None],
        [each.subscription_id for each in targets if each.subscription_id is not None],
    )


def movers_releases(notification_id: UUID, platform: Platform) -> dict[str, datetime]:
    """When the devices of each zone that there is now get the started notification."""
    notification = Notification.objects.get(pk=notification_id)
    timing = notification.timed
    zones = zones_present(notification.channel_id, [platform], named_of(notification))[platform]
    asked_at = notification.scheduled_at
    return {zone: timing.release(zone, now=asked_at) for zone in zones} if timing else {}


def _started_of(ids: Sequence[UUID]) -> Set[UUID]:
    """Starts these notifications of a channel together; if that fails, each alone. Returns the ids
    of those that it started."""
    try:
        return _start(ids)
    except Exception as error:
        # Also a statement that PostgreSQL ended, because it took too long or waited for itself.
        if not connection.is_usable():
            raise
        if len(ids) > 1:
            return {started for each in ids for started in _started_of([each])}
        _failed[ids[0]] = time.monotonic() + _FAILED_WAIT_SECONDS
        # Without the traceback of an error of the database, which would quote the row.
        logger.error(
            "notification.start_failed",
            notification=ids[0],
            error=type(error).__name__,
            exc_info=not isinstance(error, DatabaseError),
        )
        return frozenset()


def _failed_lately() -> list[UUID]:
    now = time.monotonic()
    for notification_id in [each for each, until in _failed.items() if until <= now]:
        del _failed[notification_id]
    return list(_failed)


@sql.brief_transaction()
def _start(ids: Sequence[UUID]) -> Set[UUID]:
    own = Notification.objects.due().filter(pk__in=ids).order_by("pk")
    locked = list(own.select_for_update(no_key=True, skip_locked=True))
    now, moments_of = sql.now(), _MomentsOf()
    whole: dict[str, list[UUID]] = {START_AT_ONCE: [], START_TESTED: []}
    for notification in locked:
        if notification.test is not None:
            whole[START_TESTED].append(notification.pk)
            continue
        moments = moments_of(notification, now)
        if all(list(each) == [now] for each in moments.values()):
            whole[START_AT_ONCE].append(notification.pk)
        else:
            _start_in_parts(notification, moments, now)
    shared = {"nobody_of_old": NO_SUBSCRIPTION, "ttl_zero": settings.TTL_ZERO_SECONDS}
    for text, chosen in whole.items():
        if chosen:
            sql.execute(text, STATES | START_PARAMETERS | shared | {"ids": chosen})
    return {each.pk for each in locked}


class _MomentsOf:
    """The releases of notifications of one channel. Most have the same, which are found once."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, Timing], Releases] = {}

    def __call__(self, notification: Notification, now: datetime) -> Releases:
        timing = Timing.of(notification.timing)
        audience = str(
            notification.pk if notification.has_targets else notification.target_platforms
        )
        if (audience, timing) not in self._found:
            self._found[audience, timing] = {
                platform: releases(zones, timing, now=now)
                for platform, zones in zones_of(notification).items()
            }
        return self._found[audience, timing]


def _start_in_parts(notification: Notification, moments: Releases, now: datetime) -> None:
    ends_at = notification.expires_at
    late = {
        zone
        for each in moments.values()
        for moment, zones in each.items()
        if ends_at and moment >= ends_at
        for zone in zones
    }
    parts = _parts(moments, ends_at)
    timing = replace(Timing.of(notification.timing), zones_too_late=len(late))
    parameters = {
        "id": notification.pk,
        "ttl_zero": settings.TTL_ZERO_SECONDS,
        "parts": json.dumps(parts, default=datetime.isoformat),
        "latest": max((part["release_at"] for part in parts), default=now),
        "timing": json.dumps(timing.stored()),
        "nobody_of_old": NO_SUBSCRIPTION,
    }
    sql.execute(START_IN_PARTS, STATES | START_PARAMETERS | parameters)


def _parts(moments: Releases, ends_at: datetime | None) -> list[dict[str, Any]]:
    """The parts of each platform, numbered from 1. None is released at the end or later."""
    parts = []
    for platform, by_moment in moments.items():
        of_platform: list[dict[str, Any]] = [
            {"driver": Driver.ZONES, "release_at": moment, "zones": zones}
            for moment, zones in by_moment.items()
            if ends_at is None or moment < ends_at
        ]
        if of_platform:
            last = {"driver": Driver.MOVERS, "release_at": of_platform[-1]["release_at"]}
            of_platform.append(last)
        parts += [
            {"platform": platform, "part": number, **part}
            for number, part in enumerate(of_platform, 1)
        ]
    return parts


# In SQL, because the ORM has neither recursion nor LATERAL. As the start of other notifications
# finds channels, in the index of pending timed ones.
_STARTABLE: Final = f"{TIMED} AND id <> ALL(%(failed)s::uuid[])"
_NEXT: Final = f" AND {_STARTABLE}"
NEXT_TIMED: Final = f"""
WITH RECURSIVE channel (id) AS (
  (SELECT channel_id FROM ({NEXT_CHANNEL.format(after="%(after)s", more=_NEXT)}) AS first)
  UNION ALL
  SELECT ({NEXT_CHANNEL.format(after="channel.id", more=_NEXT)}) FROM channel WHERE id IS NOT NULL
), turn AS MATERIALIZED (
  SELECT channel.id FROM channel
  CROSS JOIN LATERAL ({DUE_OF_CHANNEL.format(channel="channel.id", kind=_STARTABLE)} 1) AS due
  LIMIT %(most_channels)s
)
SELECT own.id, turn.id FROM turn
CROSS JOIN LATERAL (
  {DUE_OF_CHANNEL.format(channel="turn.id", kind=_STARTABLE)} %(limit)s) AS own
"""  # noqa: S608 - text of our own

# If it is time in every zone. Then one part reaches all of them, whatever their zone.
START_AT_ONCE: Final = f"""
WITH {started_at_once("SELECT unnest(%(ids)s::uuid[])")}
SELECT FROM planned
"""  # noqa: S608 - text of our own

_IN_PARTS: Final = STARTED.format(
    chosen="SELECT %(id)s::uuid",
    deadline=f"%(latest)s::timestamptz + {TTL}",
    ttl=TTL,
    more=", timing = %(timing)s::jsonb",
    returned="",
)
START_IN_PARTS: Final = f"""
WITH {_IN_PARTS}
INSERT INTO notifications_app_plan
  (notification_id, channel_id, platform, part, only_subscription_id, driver, zones,
   release_at, due_at, deadline_at, rule)
SELECT started.id, started.channel_id, part.platform, part.part, %(nobody_of_old)s, part.driver,
  part.zones, part.release_at, part.release_at, part.release_at + started.time_to_live, {PLAN_RULE}
FROM started CROSS JOIN jsonb_to_recordset(%(parts)s::jsonb)
  AS part (platform text, part smallint, driver text, zones text[], release_at timestamptz)
ORDER BY part.platform, part.part
"""  # noqa: S608 - text of our own

# A test is decided after its minutes, or if it is put on hold, at the latest after the time to
# live, but not beyond half the time that is left until the end. For quiet hours, its devices are
# judged before each call. Planners of a version without tests find nobody for its parts.
_MINUTES: Final = "make_interval(mins => (test->>'minutes')::int)"
_TESTED: Final = STARTED.format(
    chosen="SELECT unnest(%(ids)s::uuid[])",
    deadline=f"statement_timestamp() + {_MINUTES} + 2 * {TTL}",
    ttl=TTL,
    more=f", decides_at = statement_timestamp() + {_MINUTES}",
    returned=", notification.expires_at, notification.test, notification.decides_at",
)
_SHARE: Final = f"(test->>'share')::int * {BUCKETS_OF_PERCENT}"
START_TESTED: Final = f"""
WITH {_TESTED}
INSERT INTO notifications_app_plan
  (notification_id, channel_id, platform, part, only_subscription_id, driver, bucket_from,
   bucket_to, release_at, due_at, deadline_at, rule)
SELECT started.id, started.channel_id, wanted.platform, part.number, %(nobody_of_old)s,
  %(scan_driver)s, part.bucket_from, part.bucket_to, part.release_at, part.release_at,
  part.release_at + time_to_live, {PLAN_RULE}
FROM started
CROSS JOIN jsonb_array_elements_text(target_platforms) AS wanted (platform)
CROSS JOIN LATERAL (VALUES
  (0, statement_timestamp(), 0, {_SHARE}),
  (1, decides_at + least(time_to_live, (expires_at - decides_at) / 2), {_SHARE}, {BUCKETS})
) AS part (number, release_at, bucket_from, bucket_to)
ORDER BY started.scheduled_at, started.id, part.number
"""  # noqa: S608 - text of our own
