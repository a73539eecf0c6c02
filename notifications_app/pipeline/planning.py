"""Turns due notifications into delivery rows and batches.

A notification starts by one conditional update, which also copies the segment's rule. The database
writes the rows itself, for a window of subscription ids at a time. Each window is one transaction:
it locks the plan, checks the attempt and moves the cursor. So a planner may die at any point, and
the next one continues at the cursor.
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
from django.db.models import F
from django.db.models.functions import Now

from channels_app.counters import counter_add
from notifications_app.models import Notification, Plan
from notifications_app.pipeline import wakeup
from notifications_app.pipeline.outcomes import finish_if_complete, hourly_add
from notifications_app.states import STATES
from pushsvc.common import worker
from pushsvc.common.platforms import Platform
from pushsvc.common.store import sql
from subscriptions_app.segments.compiler import EVERYBODY, Condition, compiled
from subscriptions_app.segments.rules import NOBODY
from subscriptions_app.selectors import rule_part, window_part

_PLAN_LEASE = timedelta(seconds=60)
_FAILED_PLAN_WAIT = timedelta(seconds=5)
_GRID_SECONDS = 0.1
_STARTS = 1_000


@dataclass(frozen=True)
class PlanLease:
    """A claimed plan. `attempt` fences: only the newest one may plan."""

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
        """The same for every window, whoever plans it and when."""
        if self.rule is None:
            return EVERYBODY
        return compiled(json.loads(self.rule), now=self.started_at)


@dataclass(frozen=True)
class Window:
    """`scanned` subscriptions were read, up to `last_id`; `recipients` of them match the rule."""

    scanned: int
    last_id: UUID | None
    recipients: int
    batches: int


def work(*, seconds: float) -> bool:
    """Starts what is due and plans slices. False when nothing is left to plan, True when the time
    is over or the worker is to stop."""
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
    """Starts notifications whose time has come; each is started by one planner only. Returns how
    many."""
    parameters = {
        "limit": limit,
        "ttl_zero": settings.TTL_ZERO_SECONDS,
        "nobody": json.dumps(NOBODY),
    }
    started = sql.rows(_START, STATES | parameters)
    return len({row[0] for row in started})


def claim_plan() -> PlanLease | None:
    """Leases the plan that has waited longest for its next slice."""
    claimed = sql.rows(_CLAIM_PLAN, STATES | {"lease": _PLAN_LEASE})
    return PlanLease.of(claimed[0]) if claimed else None


def run_slice(lease: PlanLease, *, until: float = math.inf) -> None:
    """Plans one window, and more until the slice is over, at latest at the monotonic second
    `until`. Then gives the plan back, so that other plans get their turn."""
    until = min(until, time.monotonic() + settings.PLAN_SLICE_SECONDS)
    try:
        while plan_window(lease) and time.monotonic() < until and not worker.is_stopping():
            pass
    except Exception:
        _release(lease, wait=_FAILED_PLAN_WAIT)
        raise
    _release(lease, wait=timedelta())


def plan_window(lease: PlanLease) -> bool:
    """Plans the next window of subscriptions; True if there may be more.

    A subscription that is active throughout is planned exactly once: ids are read in order, and
    the transaction that writes the rows also moves the cursor.
    """
    with sql.brief_transaction():
        plan = Plan.objects.leased_by(lease).unhalted().locked()
        if plan is None:
            return False
        window = _write_window(lease, cursor=plan.cursor, only=plan.only_subscription_id)
        is_last = window.scanned < settings.PLAN_WINDOW
        _count_window(plan, window, is_last=is_last)
    if window.batches:
        wakeup.wake(lease.platform, window.batches)
    return not is_last


def anything_to_plan() -> bool:
    """Whether a notification is due or a plan has windows left."""
    due = Notification.objects.due().values_list("channel")
    return due.union(Plan.objects.plannable().values_list("channel"), all=True).exists()


def starts_within(seconds: float) -> list[float]:
    """In how many seconds notifications are due that are due then at the latest, rounded up to
    _GRID_SECONDS. Looks at the next _STARTS only."""
    ahead = timedelta(seconds=seconds)
    coming = Notification.objects.due_within(ahead).order_by("scheduled_at")
    waits = coming.annotate(wait=F("scheduled_at") - Now()).values_list("wait", flat=True)
    grid = {math.ceil(wait.total_seconds() / _GRID_SECONDS) for wait in waits[:_STARTS]}
    return [step * _GRID_SECONDS for step in sorted(grid)]


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
    return Window(*sql.rows(_WINDOW.format(scanned=window_part(audience)), parameters)[0])


def _count_window(plan: Plan, window: Window, *, is_last: bool) -> None:
    own = Plan.objects.filter(pk=plan.pk)
    cursor, recipients = window.last_id or plan.cursor, window.recipients
    if is_last:
        own.end(cursor=cursor, recipients=recipients)
    else:
        own.advance(cursor=cursor, recipients=recipients, lease=_PLAN_LEASE)
    if recipients:
        Notification.objects.filter(pk=plan.notification_id).count_recipients(recipients)
    if is_last:
        finish_if_complete(plan.notification_id)
    if recipients:
        counter_add(plan.channel_id, recipients=recipients)
        hourly_add(plan.channel_id, Platform(plan.platform), recipients=recipients)


def _release(lease: PlanLease, *, wait: timedelta) -> None:
    """Ends the lease, over a new connection if this one broke. While the database is away, the
    lease ends by itself."""
    for _ in range(2):
        try:
            Plan.objects.leased_by(lease).release(wait=wait)
            return
        except (OperationalError, InterfaceError):
            connection.close()


# In SQL, because the ORM cannot insert what an update returns. One statement, so a notification
# that is processing always has its plans. A segment that is missing has no recipients; its
# notification never goes to the whole channel.
_START = """
WITH due AS (
  SELECT id FROM notifications_app_notification
  WHERE status = %(notification_pending)s AND scheduled_at <= statement_timestamp()
    AND paused_at IS NULL
  ORDER BY scheduled_at, id LIMIT %(limit)s
  FOR NO KEY UPDATE SKIP LOCKED
), started AS (
  UPDATE notifications_app_notification notification
  SET status = %(notification_processing)s, started_at = statement_timestamp(),
      deadline_at = least(expires_at, statement_timestamp()
        + make_interval(secs => CASE WHEN ttl = 0 THEN %(ttl_zero)s ELSE ttl END))
  FROM due WHERE notification.id = due.id
  RETURNING notification.id, notification.channel_id, notification.segment_id,
    notification.only_subscription_id, notification.target_platforms
)
INSERT INTO notifications_app_plan
  (notification_id, channel_id, platform, only_subscription_id, rule)
SELECT started.id, started.channel_id, targets.platform, started.only_subscription_id,
  CASE WHEN segment_id IS NOT NULL THEN coalesce({rule}, %(nobody)s::jsonb) END
FROM started
CROSS JOIN jsonb_array_elements_text(target_platforms) AS targets (platform)
RETURNING notification_id
""".format(rule=rule_part("started.segment_id", "started.channel_id"))  # noqa: S608 - names of our own

# In SQL, because an update of the ORM does not return rows. SKIP LOCKED: planners that claim at the
# same time get different plans.
_CLAIM_PLAN = """
UPDATE notifications_app_plan plan
SET attempt = attempt + 1, sliced_at = clock_timestamp(),
    lease_until = clock_timestamp() + %(lease)s
WHERE id = (
  SELECT id FROM notifications_app_plan
  WHERE status = %(plan_planning)s AND due_at <= statement_timestamp() AND halted_at IS NULL
    AND (lease_until IS NULL OR lease_until < statement_timestamp())
  ORDER BY sliced_at NULLS FIRST, id LIMIT 1
  FOR NO KEY UPDATE SKIP LOCKED)
RETURNING id, attempt, notification_id, channel_id, platform, rule,
  (SELECT started_at FROM notifications_app_notification
   WHERE id = plan.notification_id)
"""

# In SQL, because the ORM has no INSERT … SELECT. A window counts the subscriptions that are read,
# so a window without recipients costs no more than others. MATERIALIZED: it is read once. Ids of
# batches are drawn before the batches are written, because each delivery row contains one.
_WINDOW = """
WITH scanned AS MATERIALIZED (
  {scanned}
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
