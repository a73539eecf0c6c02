"""Turns a due notification into recipient rows and batches.

pending → processing is one conditional update, which also copies the segment's rule. Recipients are
written by the server itself, a window of subscription ids at a time; each window is one transaction
that locks the plan, checks its attempt and moves its cursor, so that a planner may die anywhere and
the next one goes on.
"""

import json
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Self
from uuid import UUID

from django.conf import settings
from django.db import InterfaceError, OperationalError, connection

from channels_app.counters import counter_add
from notifications_app.pipeline import wakeup
from notifications_app.pipeline.outcomes import finish_if_complete, hourly_add
from pushsvc.common import worker
from pushsvc.common.platforms import Platform
from pushsvc.common.store import sql
from subscriptions_app.segments.compiler import EVERYBODY, Condition, compiled
from subscriptions_app.segments.rules import NOBODY

_PLAN_LEASE = timedelta(seconds=60)
_FAILED_PLAN_WAIT = timedelta(seconds=5)


@dataclass(frozen=True)
class PlanLease:
    plan_id: int
    attempt: int
    notification_id: UUID
    channel_id: UUID
    platform: Platform
    rule: str | None
    started_at: datetime

    @classmethod
    def of(cls, row: Sequence[Any]) -> Self:
        """From a row with the columns in this order."""
        lease = cls(*row)
        return replace(lease, platform=Platform(lease.platform))

    @property
    def audience(self) -> Condition:
        """Every window, whoever plans it and when, asks for the same."""
        if self.rule is None:
            return EVERYBODY
        return compiled(json.loads(self.rule), now=self.started_at)


@dataclass(frozen=True)
class Window:
    """`scanned` subscriptions were looked at, up to `last_id`; `recipients` of them are in."""

    scanned: int
    last_id: UUID | None
    recipients: int
    batches: int


def work(*, seconds: float) -> bool:
    """Starts what is due and plans slices; False when there is nothing left to plan, True when
    the time is up or the worker is to stop."""
    until = time.monotonic() + seconds
    while time.monotonic() < until and not worker.is_stopping():
        started = start_due()
        lease = claim_plan()
        if lease is not None:
            run_slice(lease, until=until)
        elif not started:
            return False
    return True


def start_due(limit: int = 100) -> int:
    """Starts notifications whose time has come; each by one planner only. Returns how many."""
    parameters = {
        "limit": limit,
        "ttl_zero": settings.TTL_ZERO_SECONDS,
        "nobody": json.dumps(NOBODY),
    }
    started = sql.rows(_START, parameters)
    return len({row[0] for row in started})


def claim_plan() -> PlanLease | None:
    """Leases the plan that waited longest for its next slice."""
    claimed = sql.rows(_CLAIM_PLAN, {"lease": _PLAN_LEASE})
    return PlanLease.of(claimed[0]) if claimed else None


def run_slice(lease: PlanLease, *, until: float = math.inf) -> None:
    """Plans at least a window, then more for at most a slice and `until` the monotonic clock says
    so; then gives the plan back, so that other plans get their turn."""
    until = min(until, time.monotonic() + settings.PLAN_SLICE_SECONDS)
    try:
        while plan_window(lease) and time.monotonic() < until and not worker.is_stopping():
            pass
    except Exception:
        _release(lease, wait=_FAILED_PLAN_WAIT)
        raise
    _release(lease, wait=timedelta())


def plan_window(lease: PlanLease) -> bool:
    """Plans the next window of subscriptions; True if there may be more of them.

    A subscription that was active throughout is planned exactly once: ids are read in order, and
    the cursor moves in the transaction that writes the rows.
    """
    with sql.brief_transaction():
        locked = sql.rows(_LOCK_PLAN, {"plan": lease.plan_id, "attempt": lease.attempt})
        if not locked:
            return False
        cursor, only = locked[0]
        window = _write_window(lease, cursor=cursor, only=only)
        is_last = window.scanned < settings.PLAN_WINDOW
        _count_window(lease, window, is_last=is_last)
    if window.batches:
        wakeup.ring(lease.platform, window.batches)
    return not is_last


def anything_to_plan() -> bool:
    """Whether a notification is due or a plan has windows left."""
    return bool(sql.rows(_ANYTHING_TO_PLAN, {})[0][0])


def _write_window(lease: PlanLease, *, cursor: UUID | None, only: UUID | None) -> Window:
    audience = lease.audience
    parameters = {
        **audience.parameters,
        "plan": lease.plan_id,
        "notification": lease.notification_id,
        "channel": lease.channel_id,
        "platform": lease.platform,
        "cursor": cursor or UUID(int=0),
        "only": only,
        "window": settings.PLAN_WINDOW,
        "size": settings.BATCH_SIZE,
    }
    return Window(*sql.rows(_WINDOW.format(audience=audience.text), parameters)[0])


def _count_window(lease: PlanLease, window: Window, *, is_last: bool) -> None:
    parameters = {
        "plan": lease.plan_id,
        "notification": lease.notification_id,
        "recipients": window.recipients,
        "last_id": window.last_id,
        "status": "delivering" if is_last else "planning",
        "lease": _PLAN_LEASE,
    }
    sql.execute(_MOVE_CURSOR, parameters)
    if window.recipients:
        sql.execute(_COUNT_RECIPIENTS, parameters)
    if is_last:
        finish_if_complete(lease.notification_id)
    if window.recipients:
        counter_add(lease.channel_id, recipients=window.recipients)
        hourly_add(lease.channel_id, lease.platform, recipients=window.recipients)


def _release(lease: PlanLease, *, wait: timedelta) -> None:
    """Over a new connection where this one broke; while the database is away the lease lapses."""
    for _ in range(2):
        try:
            sql.execute(_RELEASE, {"plan": lease.plan_id, "attempt": lease.attempt, "wait": wait})
            return
        except (OperationalError, InterfaceError):
            connection.close()


# A segment that is missing is nobody, never the whole channel.
_START = """
WITH due AS (
  SELECT id FROM notifications_app_notification
  WHERE status = 'pending' AND scheduled_at <= statement_timestamp()
  ORDER BY scheduled_at, id LIMIT %(limit)s
  FOR NO KEY UPDATE SKIP LOCKED
), started AS (
  UPDATE notifications_app_notification notification
  SET status = 'processing', started_at = statement_timestamp(),
      deadline_at = statement_timestamp()
        + make_interval(secs => CASE WHEN ttl = 0 THEN %(ttl_zero)s ELSE ttl END)
  FROM due WHERE notification.id = due.id
  RETURNING notification.id, notification.channel_id, notification.segment_id,
    notification.only_subscription_id, notification.target_platforms
)
INSERT INTO notifications_app_plan
  (notification_id, channel_id, platform, only_subscription_id, rule)
SELECT started.id, started.channel_id, targets.platform, started.only_subscription_id,
  CASE WHEN segment_id IS NOT NULL THEN coalesce(segment.rule, %(nobody)s::jsonb) END
FROM started
CROSS JOIN jsonb_array_elements_text(target_platforms) AS targets (platform)
LEFT JOIN subscriptions_app_segment segment
  ON segment.id = started.segment_id AND segment.channel_id = started.channel_id
RETURNING notification_id
"""

_CLAIM_PLAN = """
UPDATE notifications_app_plan plan
SET attempt = attempt + 1, sliced_at = clock_timestamp(),
    lease_until = clock_timestamp() + %(lease)s
WHERE id = (
  SELECT id FROM notifications_app_plan
  WHERE status = 'planning' AND due_at <= statement_timestamp()
    AND (lease_until IS NULL OR lease_until < statement_timestamp())
  ORDER BY sliced_at NULLS FIRST, id LIMIT 1
  FOR NO KEY UPDATE SKIP LOCKED)
RETURNING id, attempt, notification_id, channel_id, platform, rule,
  (SELECT started_at FROM notifications_app_notification
   WHERE id = plan.notification_id)
"""

_LOCK_PLAN = """
SELECT cursor, only_subscription_id FROM notifications_app_plan
WHERE id = %(plan)s AND attempt = %(attempt)s AND status = 'planning'
FOR NO KEY UPDATE
"""

# A window is of subscriptions looked at, so that one without recipients costs no more than others.
# Batch ids are drawn before the batches are written, because each recipient names its own.
_WINDOW = """
WITH scanned AS MATERIALIZED (
  SELECT id, push_service, {audience} AS is_recipient
  FROM subscriptions_app_subscription AS subscription
  WHERE channel_id = %(channel)s AND platform = %(platform)s AND expired_at IS NULL
    AND id > %(cursor)s AND (%(only)s::uuid IS NULL OR id = %(only)s)
  ORDER BY id LIMIT %(window)s
), recipients AS (
  SELECT id, push_service FROM scanned WHERE is_recipient
), placed AS (
  SELECT id, push_service,
    (row_number() OVER (PARTITION BY push_service ORDER BY id) - 1) / %(size)s AS slot
  FROM recipients
), slots AS MATERIALIZED (
  SELECT push_service, slot, count(*) AS recipient_count,
    nextval(pg_get_serial_sequence('notifications_app_batch', 'id')) AS batch_id
  FROM placed GROUP BY push_service, slot
), batches AS (
  INSERT INTO notifications_app_batch
    (id, plan_id, notification_id, channel_id, platform, push_service, recipient_count)
  SELECT batch_id, %(plan)s, %(notification)s, %(channel)s, %(platform)s, push_service,
    recipient_count
  FROM slots
), deliveries AS (
  INSERT INTO notifications_app_delivery (notification_id, subscription_id, batch_id)
  SELECT %(notification)s, placed.id, slots.batch_id
  FROM placed JOIN slots USING (push_service, slot)
  ORDER BY placed.id
)
SELECT (SELECT count(*) FROM scanned),
  (SELECT id FROM scanned ORDER BY id DESC LIMIT 1),
  (SELECT count(*) FROM recipients),
  (SELECT count(*) FROM slots)
"""

_MOVE_CURSOR = """
UPDATE notifications_app_plan
SET cursor = coalesce(%(last_id)s, cursor), status = %(status)s,
    recipient_count = recipient_count + %(recipients)s,
    lease_until = CASE WHEN %(status)s = 'planning' THEN clock_timestamp() + %(lease)s END
WHERE id = %(plan)s
"""

_COUNT_RECIPIENTS = """
UPDATE notifications_app_notification SET recipient_count = recipient_count + %(recipients)s
WHERE id = %(notification)s
"""

_RELEASE = """
UPDATE notifications_app_plan
SET lease_until = NULL, due_at = statement_timestamp() + %(wait)s
WHERE id = %(plan)s AND attempt = %(attempt)s AND status = 'planning'
"""

_ANYTHING_TO_PLAN = """
SELECT EXISTS (SELECT FROM notifications_app_notification
               WHERE status = 'pending' AND scheduled_at <= statement_timestamp())
    OR EXISTS (SELECT FROM notifications_app_plan
               WHERE status = 'planning' AND due_at <= statement_timestamp()
                 AND (lease_until IS NULL OR lease_until < statement_timestamp()))
"""
