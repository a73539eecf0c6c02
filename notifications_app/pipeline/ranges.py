"""Divides a large plan into ranges of subscription ids, which planners plan side by side.

A range is a part like any other: it has its own row, lease and cursor, and is planned at its turn.
Ranges have no id in common, so their windows insert recipients without looking for those of others.
"""

from typing import Final

from django.db import transaction

from channels_app.selectors import channel_totals
from notifications_app.models import Driver
from notifications_app.pipeline import wakeup
from notifications_app.pipeline.lease import PlanLease
from notifications_app.pipeline.plan_queue import lock_plans
from pushsvc.common.store import sql
from subscriptions_app.audiences.narrowing import narrowest
from subscriptions_app.audiences.windows import LAST_ID, active_part

MOST_RANGES: Final = 4
LEAST_SUBSCRIBERS: Final = 50_000  # of a range


def divide(lease: PlanLease) -> None:
    """Divides what is left of a plan, whose first window is written, if it reads all of a large
    channel. Does nothing if another planner has the plan or its notification is halted."""
    if not _may_be_divided(lease):
        return
    subscribers = getattr(channel_totals(lease.channel_id), f"{lease.platform}_subscribers")
    number = min(MOST_RANGES, subscribers // LEAST_SUBSCRIBERS)
    if number < 2 or _is_narrow(lease):
        return
    with sql.brief_transaction():
        if not lock_plans([lease]):
            return
        parameters = {
            "plan": lease.plan_id,
            "channel": lease.channel_id,
            "platform": lease.platform,
            "number": number,
            "size": subscribers // number,
        }
        sql.execute(DIVIDE, parameters)
        transaction.on_commit(lambda: wakeup.wake("plan", number - 1))


def _may_be_divided(lease: PlanLease) -> bool:
    """Not a part, because others may reach the same devices. Not with a rate, because workers would
    be slower than one planner, nor with caps, because a person may have devices in two ranges."""
    is_plain = lease.driver == Driver.SCAN and lease.bucket_from is None and lease.limits is None
    return is_plain and not lease.is_shared and not lease.part and not lease.rate_per_minute


def _is_narrow(lease: PlanLease) -> bool:
    """Whether windows read fewer devices than the channel's."""
    rule = lease.rule
    return rule is not None and bool(narrowest(lease.channel_id, [lease.platform], rule))


# The ends are found by counting in the index of active subscriptions. In SQL, because the ORM has
# neither INSERT … SELECT nor recursion. Ranges are not new, so a planner claims one at a time.
DIVIDE: Final = f"""
WITH RECURSIVE bound (number, id) AS (
  SELECT 0, cursor FROM notifications_app_plan WHERE id = %(plan)s
  UNION ALL
  SELECT number + 1, (
    SELECT subscription.id
    FROM {active_part("%(channel)s", "%(platform)s", first="bound.id")}
    ORDER BY channel_id, platform, id OFFSET %(size)s LIMIT 1)
  FROM bound WHERE number < %(number)s - 1 AND bound.id IS NOT NULL
), part AS MATERIALIZED (
  SELECT number, id AS cursor, lead(id, 1, '{LAST_ID}') OVER (ORDER BY number) AS until
  FROM bound WHERE id IS NOT NULL
), own AS (
  UPDATE notifications_app_plan plan SET until = part.until FROM part
  WHERE plan.id = %(plan)s AND part.number = 0
)
INSERT INTO notifications_app_plan
  (notification_id, channel_id, platform, part, driver, release_at, due_at, deadline_at, rule,
   has_rate, cursor, until, sliced_at)
SELECT notification_id, channel_id, platform, part.number, driver, release_at, due_at, deadline_at,
  rule, has_rate, part.cursor, part.until, clock_timestamp()
FROM notifications_app_plan plan JOIN part ON part.number > 0
WHERE plan.id = %(plan)s ORDER BY part.number
"""  # noqa: S608 - text of our own
