"""The rate of a send: how many of its recipients workers take up in a minute, over all platforms.

A claim of a batch of such a send locks the row of SendRate, and moves its time on by what the
batch's recipients take at the rate. Claims may be AHEAD of that time, so that workers never wait
for a tick. So in any minute workers take up at most the rate, one batch and what AHEAD adds.
"""

import math
import time
from collections.abc import Collection
from datetime import timedelta
from typing import Final
from uuid import UUID

from django.conf import settings

from notifications_app.states import STATES
from pushsvc.common.store import sql

AHEAD: Final = timedelta(seconds=2)
_BATCHES_A_MINUTE: Final = 6
_WAIT_SECONDS: Final = 0.3  # short beside AHEAD
_FEW: Final = 10  # recipients. Smaller batches cost much and spread little

_not_due: dict[int, float] = {}  # by plan, until when on the monotonic clock


def batch_size(per_minute: int | None) -> int:
    """The most recipients of a batch. `per_minute`: the rate of the send; None or 0 if it has
    none."""
    if not per_minute:
        return settings.BATCH_SIZE
    share = math.ceil(per_minute / _BATCHES_A_MINUTE)
    return min(settings.BATCH_SIZE, max(share, min(per_minute, _FEW)))


def begin(notification_ids: Collection[UUID]) -> None:
    """Lets the plans of these notifications follow their rates. Safe to repeat. The caller has
    locked plans, and nothing that comes later in the order of locks."""
    sql.execute(_BEGIN, {"ids": sorted(notification_ids)})


def change(notification_id: UUID, was: int | None, per_minute: int) -> None:
    """Lets the plans of the notification follow a new rate. If it is higher, recipients that were
    taken up already take as long as at the new rate. `was`: the rate until now, if it had one."""
    begin([notification_id])
    factor = (was or 0) / per_minute
    sql.execute(_CHANGE, {"notification": notification_id, "factor": factor})


def least_seconds(recipients: int, per_minute: int) -> int:
    """In how many seconds workers can take up so many recipients at the earliest."""
    after_first = max(0, recipients - batch_size(per_minute))
    return max(0, math.floor(60 * after_first / per_minute - AHEAD.total_seconds()))


def lock_due(plan_id: int, platform: str) -> bool:
    """Locks the rate of the plan's notification until the transaction ends. False if another claim
    has it or if it is not time yet. Then notes all plans of the platform for which it is not time,
    so that many cost no more statements than one."""
    if plan_id in _not_due:
        return False
    if sql.rows(LOCK_DUE, {"plan": plan_id, "ahead": AHEAD}):
        return True
    others = [
        each for (each,) in sql.rows(NOT_DUE, STATES | {"platform": platform, "ahead": AHEAD})
    ]
    _not_due.update(dict.fromkeys([plan_id, *others], time.monotonic() + _WAIT_SECONDS))
    return False


def not_due() -> list[int]:
    """The plans that `lock_due` found not to be due lately. So claims need not look at them
    again."""
    now = time.monotonic()
    for plan_id in [each for each, until in _not_due.items() if until <= now]:
        del _not_due[plan_id]
    return list(_not_due)


def charge(notification_id: UUID, recipients: int) -> None:
    """Counts recipients that were taken up, or gives back those that were not called (negative)."""
    sql.execute(CHARGE, {"notification": notification_id, "number": recipients})


_BEGIN: Final = """
INSERT INTO notifications_app_sendrate (notification_id)
SELECT unnest(%(ids)s::uuid[]) AS id ORDER BY id
ON CONFLICT DO NOTHING
"""

_CHANGE: Final = """
UPDATE notifications_app_sendrate
SET next_at = clock_timestamp() + (next_at - clock_timestamp()) * least(1, %(factor)s)
WHERE notification_id = %(notification)s AND next_at > clock_timestamp()
"""

# The condition of a statement that finds work, for a plan named `plan`.
IS_DUE_PART: Final = """(plan.has_rate IS NOT TRUE OR EXISTS (
        SELECT FROM notifications_app_sendrate rate
        WHERE rate.notification_id = plan.notification_id
          AND rate.next_at <= statement_timestamp() + %(ahead)s))"""

LOCK_DUE: Final = """
SELECT true FROM notifications_app_sendrate
WHERE notification_id = (SELECT notification_id FROM notifications_app_plan WHERE id = %(plan)s)
  AND next_at <= statement_timestamp() + %(ahead)s
FOR NO KEY UPDATE SKIP LOCKED
"""

NOT_DUE: Final = f"""
SELECT plan.id FROM notifications_app_plan plan
WHERE plan.platform = %(platform)s AND plan.status <> %(plan_done)s
  AND plan.recipient_count > 0 AND NOT {IS_DUE_PART}
"""  # noqa: S608 - text of our own

CHARGE: Final = """
UPDATE notifications_app_sendrate rate
SET next_at = CASE WHEN %(number)s > 0
    THEN greatest(rate.next_at, clock_timestamp()) ELSE rate.next_at END
  + make_interval(secs => 60.0 * %(number)s / notification.rate_per_minute)
FROM notifications_app_notification notification
WHERE rate.notification_id = %(notification)s AND notification.id = rate.notification_id
  AND notification.rate_per_minute > 0
"""
