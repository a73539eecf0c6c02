"""Decides which notifications are started and planned next. Channels take turns, and so do new
plans and begun plans.

So a channel with many or large notifications delays another channel's by one turn.
"""

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from itertools import count
from typing import Any, Final
from uuid import UUID

import structlog
from django.conf import settings

from notifications_app.models import Driver, Plan
from notifications_app.pipeline.lease import PlanLease
from notifications_app.pipeline.splitting import WEIGHTS, WINNER
from notifications_app.states import STATES
from pushsvc.common.correlation import named
from pushsvc.common.store import sql
from subscriptions_app.segments.rules import NOBODY
from subscriptions_app.segments.selectors import rule_part

logger = structlog.stdlib.get_logger(__name__)

PLAN_LEASE: Final = timedelta(seconds=20)
BEFORE_ALL: Final = UUID(int=0)
CHANNELS_AT_ONCE: Final = 10  # whose turn it is in one start
_MOST_OF_A_LINE: Final = 100  # ids; Docker splits log lines after 16 KiB


@dataclass
class RoundRobin:
    """How far one planner has gone round the channels. Planners that run at once need not agree.

    `last_started`: the last channel of which notifications were started. `last_timed`: the same of
    timed ones. `is_timed_due`: the last start found such. `is_begun_due`: the last start found
    begun plans. `last_continued`: the last channel of which a begun plan was claimed.
    `last_was_new`: the last claim took new plans. `is_new_left`: the last claim of new plans left
    some.
    """

    last_started: UUID = BEFORE_ALL
    last_timed: UUID = BEFORE_ALL
    is_timed_due: bool = False
    is_begun_due: bool = True
    last_continued: UUID = BEFORE_ALL
    last_was_new: bool = False
    is_new_left: bool = False


def start_due(limit: int = 100, *, round_robin: RoundRobin | None = None) -> int:
    """Starts due notifications, each only once even if several planners run. Returns how many.
    Leaves those that may start in parts to `timed_starts`.

    Starts the `limit` that have been due longest. If there may be more, also starts up to `limit`
    of each of the next channels. While more new plans wait than a claim takes, `limit` counts as 1,
    because a claim reads all waiting plans.
    """
    round_robin = round_robin or RoundRobin()
    most = 1 if round_robin.is_new_left else limit
    statement = _with_numbers(
        START,
        limit=most,
        most_channels=CHANNELS_AT_ONCE,
        ttl_zero=settings.TTL_ZERO_SECONDS,
    )
    found = sql.rows(statement, {"after": round_robin.last_started}, is_prepared=True)
    ((_, last, round_robin.is_timed_due, round_robin.is_begun_due),) = (
        row for row in found if row[0] is None
    )
    round_robin.last_started = last or BEFORE_ALL
    return note_started({row[0] for row in found if row[0] is not None})


def note_started(notification_ids: Set[UUID]) -> int:
    """Logs the notifications. Returns how many."""
    ids = sorted(notification_ids)
    for begin in range(0, len(ids), _MOST_OF_A_LINE):
        some = ids[begin : begin + _MOST_OF_A_LINE]
        logger.info("notifications.started", **named("notification", "notifications", some))
    return len(ids)


def claim_plans(*, most: int, round_robin: RoundRobin | None = None) -> list[PlanLease]:
    """Leases up to `most` new plans, an equal number of each channel, because most may be small.
    Or, if it is the turn of begun plans, one of them."""
    round_robin = round_robin or RoundRobin()
    kinds = (_claim_begun, _claim_new) if round_robin.last_was_new else (_claim_new, _claim_begun)
    for claim in kinds:
        if claim is _claim_begun and not round_robin.is_begun_due:
            continue
        if leases := claim(most, round_robin):
            round_robin.last_was_new = claim is _claim_new
            return _interleaved(leases)
    return []


def lock_plans(leases: Sequence[PlanLease]) -> dict[int, Plan]:
    """The plans that these leases still hold, by id, locked in the order of their ids. Without
    those of paused and stopped notifications."""
    parameters = {
        "ids": [each.plan_id for each in leases],
        "numbers": [each.number for each in leases],
        "notifications": [each.notification_id for each in leases],
    }
    rows = sql.rows(LOCK_PLANS, parameters, is_prepared=sql.are_few(leases))
    return {row[0]: sql.read_row(Plan, _PLAN_FIELDS, row) for row in rows}


def _interleaved(leases: Sequence[PlanLease]) -> list[PlanLease]:
    """Sorts the leases: the first of each channel, then the second of each, and so on. A slice may
    end before all are planned."""
    places: dict[UUID, Iterator[int]] = defaultdict(count)
    ordered = sorted(leases, key=PlanLease.order)
    return sorted(ordered, key=lambda each: next(places[each.channel_id]))


def _claim_new(most: int, round_robin: RoundRobin) -> list[PlanLease]:
    leases, waiting = _claim(_with_numbers(CLAIM_NEW, most=most), {})
    round_robin.is_new_left = waiting > most
    return leases


def _claim_begun(_most: int, round_robin: RoundRobin) -> list[PlanLease]:
    leases, _ = _claim(CLAIM_BEGUN, {"after": round_robin.last_continued})
    for lease in leases:
        round_robin.last_continued = lease.channel_id
    return leases


@cache
def _with_numbers(statement: str, **numbers: int) -> str:
    return sql.with_constants(statement, numbers)


def _claim(statement: str, parameters: dict[str, Any]) -> tuple[list[PlanLease], int]:
    """Returns the leases, and how many plans were waiting."""
    claimed = sql.rows(statement, parameters | {"lease": PLAN_LEASE}, is_prepared=True)
    waiting = claimed[0][-1] if claimed else 0
    return [PlanLease.of(row[:-1]) for row in claimed], waiting


# In SQL, because the ORM cannot insert what an update returns. One statement, so a notification
# that is processing always has its plans. A missing segment has no recipients, so its notification
# never goes to the whole channel. The channels are found one after the other in an index, because
# one channel may have most of the due notifications. After the last channel, the first is next.
# Notifications that are due at the same time have no further order, which would require reading all
# of them.
DUE: Final = """status = %(notification_pending)s AND scheduled_at <= statement_timestamp()
    AND paused_at IS NULL"""
# Ordered by two columns, and compared as rows, so that PostgreSQL uses the index on both.
NEXT_CHANNEL: Final = """SELECT channel_id FROM notifications_app_notification
    WHERE status = %(notification_pending)s AND channel_id > {after}{more}
    ORDER BY channel_id, scheduled_at LIMIT 1"""
DUE_OF_CHANNEL: Final = """SELECT id FROM notifications_app_notification
    WHERE status = %(notification_pending)s AND paused_at IS NULL AND {kind}
      AND (channel_id, scheduled_at) >= ({channel}, '-infinity')
      AND (channel_id, scheduled_at) <= ({channel}, statement_timestamp())
    ORDER BY channel_id, scheduled_at LIMIT """
# The channel's rate counts as it is at the start.
RATE: Final = """CASE WHEN only_subscription_id IS NULL
      THEN coalesce(rate_per_minute, (SELECT channel.rate_per_minute
        FROM channels_app_channel channel WHERE channel.id = notification.channel_id)) END"""
# Which notifications may start in parts. For quiet hours, those to targets do not: before each call
# they are judged anyway.
TIMED: Final = """(timing IS NOT NULL AND (timing->>'local_at' IS NOT NULL
      OR timing->>'quiet' IS NOT NULL AND NOT has_targets) OR test IS NOT NULL)"""
_UNTIMED: Final = """(timing IS NULL OR timing->>'local_at' IS NULL
      AND (timing->>'quiet' IS NULL OR has_targets)) AND test IS NULL"""
# Starts notifications. `deadline`: SQL, when their time to live ends.
STARTED: Final = f"""started AS (
  UPDATE notifications_app_notification notification
  SET status = %(notification_processing)s, started_at = statement_timestamp(),
      deadline_at = least(expires_at, {{deadline}}), rate_per_minute = {RATE}{{more}}
  WHERE id IN ({{chosen}})
  RETURNING notification.id, notification.channel_id, notification.segment_id,
    notification.only_subscription_id, notification.rule, notification.has_targets,
    notification.target_platforms, notification.scheduled_at, {{ttl}} AS time_to_live{{returned}}
)"""  # noqa: S608 - text of our own
TTL: Final = "make_interval(secs => CASE WHEN ttl = 0 THEN %(ttl_zero)s ELSE ttl END)"
# The rule of each plan of a row of `started`.
PLAN_RULE: Final = f"""CASE WHEN segment_id IS NULL THEN started.rule
    ELSE coalesce({rule_part("started.segment_id", "started.channel_id")}, %(nobody)s::jsonb) END"""
# Starts notifications and inserts a plan for each of their platforms.
STARTED_AT_ONCE: Final = f"""{STARTED}, planned AS (
INSERT INTO notifications_app_plan
  (notification_id, channel_id, platform, only_subscription_id, driver, release_at, deadline_at,
   rule)
SELECT started.id, started.channel_id, wanted.platform, started.only_subscription_id,
  CASE WHEN has_targets THEN %(ids_driver)s ELSE %(scan_driver)s END,
  statement_timestamp(), statement_timestamp() + started.time_to_live, {PLAN_RULE}
FROM started
CROSS JOIN jsonb_array_elements_text(target_platforms) AS wanted (platform)
ORDER BY started.scheduled_at, started.id
RETURNING notification_id
)"""  # noqa: S608 - text of our own
START_PARAMETERS: Final = {
    "nobody": json.dumps(NOBODY),
    "scan_driver": Driver.SCAN,
    "ids_driver": Driver.IDS,
}


def started_at_once(chosen: str) -> str:
    """CTEs that start the `chosen` notifications, with a plan for each platform. The last is
    `planned` (notification_id)."""
    return STARTED_AT_ONCE.format(
        chosen=chosen, deadline=f"statement_timestamp() + {TTL}", ttl=TTL, more="", returned=""
    )


_PLANNABLE: Final = """plan.status = %(plan_planning)s AND plan.due_at <= statement_timestamp()
    AND plan.halted_at IS NULL
    AND (plan.lease_until IS NULL OR plan.lease_until < statement_timestamp())"""
# By the index of plans that are due.
_FOUND: Final = f"{_PLANNABLE} AND plan.recipient_count >= 0"

# The row without an id says whether timed notifications and begun plans are due. So these cost
# other sends no statement. The commit does not wait for the disk, because a start that a crash of
# the server undoes is made again.
START: Final = sql.with_constants(
    f"""
WITH RECURSIVE longest AS MATERIALIZED (
  SELECT id FROM notifications_app_notification
  WHERE {DUE} AND {_UNTIMED}
  ORDER BY scheduled_at LIMIT %(limit)s
  FOR NO KEY UPDATE SKIP LOCKED
), channel (id) AS (
  (SELECT channel_id FROM ({NEXT_CHANNEL.format(after="%(after)s", more="")}) AS first
   WHERE (SELECT count(*) FROM longest) = %(limit)s)
  UNION ALL
  SELECT ({NEXT_CHANNEL.format(after="channel.id", more="")}) FROM channel WHERE id IS NOT NULL
), turn AS MATERIALIZED (
  SELECT channel.id FROM channel
  CROSS JOIN LATERAL ({DUE_OF_CHANNEL.format(channel="channel.id", kind=_UNTIMED)} 1) AS due
  LIMIT %(most_channels)s
), share AS (
  SELECT own.id FROM turn CROSS JOIN LATERAL (
    {DUE_OF_CHANNEL.format(channel="turn.id", kind=_UNTIMED)} %(limit)s
    FOR NO KEY UPDATE SKIP LOCKED) AS own
), {started_at_once("SELECT id FROM longest UNION SELECT id FROM share")}
SELECT notification_id, NULL::uuid AS last_channel, NULL::bool AS is_timed, NULL::bool AS is_begun
FROM planned
UNION ALL
SELECT NULL, (SELECT id FROM turn ORDER BY id OFFSET %(most_channels)s - 1 LIMIT 1),
  EXISTS (SELECT FROM notifications_app_notification WHERE {DUE} AND {TIMED}),
  {sql.WAITS_FOR_NO_DISK} IS NOT NULL
    AND EXISTS (SELECT FROM notifications_app_plan plan
                WHERE {_FOUND} AND sliced_at IS NOT NULL)
""",  # noqa: S608 - text of our own
    STATES | START_PARAMETERS,
)

# In SQL, because an update of the ORM does not return rows. SKIP LOCKED: planners that claim at the
# same time get different plans. LATERAL, because a join might compare all waiting plans with one
# another. Both are ordered, so that no more plans are locked than claimed.
_NEW: Final = f"""
  SELECT own.id, waiting.number FROM (
    SELECT id, row_number() OVER (PARTITION BY channel_id ORDER BY id) AS turn,
      count(*) OVER () AS number
    FROM notifications_app_plan plan
    WHERE {_FOUND} AND sliced_at IS NULL
    ORDER BY turn, id) AS waiting
  CROSS JOIN LATERAL (
    SELECT id FROM notifications_app_plan plan
    WHERE plan.id = waiting.id AND {_PLANNABLE} AND sliced_at IS NULL
    FOR NO KEY UPDATE SKIP LOCKED) AS own
  ORDER BY waiting.turn, waiting.id LIMIT %(most)s"""  # noqa: S608 - text of our own
_BEGUN: Final = f"""
  SELECT id, 1 AS number FROM notifications_app_plan plan
  WHERE {_FOUND} AND sliced_at IS NOT NULL
  ORDER BY channel_id <= %(after)s, channel_id, sliced_at, id LIMIT 1
  FOR NO KEY UPDATE SKIP LOCKED"""  # noqa: S608 - text of our own
_CLAIM: Final = """
WITH chosen AS MATERIALIZED ({chosen}
)
UPDATE notifications_app_plan plan
SET lease_number = lease_number + 1, sliced_at = clock_timestamp(),
    lease_until = clock_timestamp() + %(lease)s
FROM notifications_app_notification notification
WHERE notification.id = plan.notification_id
  AND plan.id IN (SELECT id FROM chosen)
RETURNING plan.id, plan.lease_number, plan.notification_id, plan.channel_id, plan.platform,
  plan.rule, plan.driver, plan.zones, notification.has_targets, plan.release_at,
  notification.started_at, notification.category,
  plan.until IS NULL AND EXISTS (
    SELECT FROM notifications_app_plan other
    WHERE other.notification_id = plan.notification_id
      AND other.platform = plan.platform AND other.part <> plan.part), plan.part,
  nullif(notification.rate_per_minute, 0), notification.caps, notification.once,
  notification.request_id, notification.traceparent, {weights},
  plan.bucket_from, plan.bucket_to, {winner},
  (SELECT number FROM chosen WHERE {disk} IS NOT NULL LIMIT 1)
"""
CLAIM_NEW: Final = sql.with_constants(
    _CLAIM.format(chosen=_NEW, weights=WEIGHTS, winner=WINNER, disk=sql.WAITS_FOR_NO_DISK), STATES
)
CLAIM_BEGUN: Final = sql.with_constants(
    _CLAIM.format(chosen=_BEGUN, weights=WEIGHTS, winner=WINNER, disk=sql.WAITS_FOR_NO_DISK), STATES
)

_PLAN_FIELDS: Final = Plan._meta.concrete_fields

# In SQL, because the ORM needs longer to compile it than the database to run it. Also compares the
# notification: after a crash of the server, which can undo the insert of a plan, another one may
# get its id.
LOCK_PLANS: Final = sql.with_constants(
    f"""
SELECT {", ".join(f"plan.{each.column}" for each in _PLAN_FIELDS)}
FROM notifications_app_plan plan
JOIN unnest(%(ids)s::bigint[], %(numbers)s::int[], %(notifications)s::uuid[])
  AS lease (plan_id, number, notification_id)
  ON lease.plan_id = plan.id AND lease.number = plan.lease_number
    AND lease.notification_id = plan.notification_id
WHERE plan.status = %(plan_planning)s AND plan.halted_at IS NULL
ORDER BY plan.id
FOR NO KEY UPDATE OF plan
""",  # noqa: S608 - names of our own
    STATES,
)
