"""What is decided once a platform's batches are all done: held expiries, and the plan's end.

Some answers say that a device is dead, but may as well say that our own configuration is wrong:
a foreign project, the other environment, another VAPID key. Their recipients bounced at once;
whether their subscriptions expire is decided here, when it is known how many there were.
"""

import logging
from uuid import UUID

from notifications_app.delivery.registry import TRANSPORTS
from pushsvc.common.store import sql
from subscriptions_app.services import GoneSubscription, subscriptions_expire

logger = logging.getLogger(__name__)

_SUSPECT_CODES = sorted(set().union(*(each.suspect_codes for each in TRANSPORTS.values())))
MASS_FAILURE_SHARE = 5  # a fifth of the platform's recipients or more: the devices stay
_STEP = 500


def close_delivered_plans(limit: int = 1000) -> int:
    """Ends plans whose batches are all done; those with held expiries are settled first."""
    return sql.execute(_CLOSE, {"limit": limit})


def settle_next() -> bool:
    """Settles one plan, a bounded step at a time; True if there may be more to do."""
    with sql.brief_transaction():
        settling = sql.rows(_LOCK_SETTLING, {})
        if not settling:
            return False
        plan_id, notification_id, channel_id, platform, recipients, suspects = settling[0]
        if suspects * MASS_FAILURE_SHARE >= recipients:
            logger.warning(
                "expiry.withheld",
                extra={"notification": notification_id, "platform": platform, "devices": suspects},
            )
            held: list[GoneSubscription] = []
        else:
            held = _held(plan_id, notification_id)
            subscriptions_expire(channel_id=channel_id, gone=held)
        if len(held) < _STEP:
            sql.execute(_SETTLED, {"plan": plan_id})
        return True


def _held(plan_id: int, notification_id: UUID) -> list[GoneSubscription]:
    parameters = {
        "plan": plan_id,
        "notification": notification_id,
        "codes": _SUSPECT_CODES,
        "limit": _STEP,
    }
    return [GoneSubscription(*row) for row in sql.rows(_HELD, parameters)]


_CLOSE = """
UPDATE notifications_app_plan plan
SET status = CASE WHEN EXISTS (SELECT FROM notifications_app_batch
                               WHERE plan_id = plan.id AND suspect_count > 0)
             THEN 'settling' ELSE 'done' END
WHERE id IN (
  SELECT delivering.id FROM notifications_app_plan delivering
  WHERE delivering.status = 'delivering' AND NOT EXISTS (
    SELECT FROM notifications_app_batch
    WHERE notification_id = delivering.notification_id AND plan_id = delivering.id
      AND status <> 'done')
  ORDER BY delivering.id LIMIT %(limit)s
  FOR NO KEY UPDATE SKIP LOCKED)
"""

_LOCK_SETTLING = """
SELECT plan.id, plan.notification_id, plan.channel_id, plan.platform, plan.recipient_count,
  (SELECT coalesce(sum(suspect_count), 0)::bigint FROM notifications_app_batch
   WHERE plan_id = plan.id)
FROM notifications_app_plan plan
WHERE plan.status = 'settling'
ORDER BY plan.id LIMIT 1
FOR NO KEY UPDATE SKIP LOCKED
"""

# Only subscriptions that still are active and did not register again since the start, so that each
# step finds fewer.
_HELD = """
SELECT delivery.subscription_id, notification.started_at, delivery.code
FROM notifications_app_delivery delivery
JOIN notifications_app_notification notification ON notification.id = delivery.notification_id
JOIN notifications_app_batch batch ON batch.id = delivery.batch_id
JOIN subscriptions_app_subscription subscription ON subscription.id = delivery.subscription_id
WHERE batch.plan_id = %(plan)s AND batch.suspect_count > 0
  AND delivery.notification_id = %(notification)s
  AND delivery.status = 2 AND delivery.code = ANY(%(codes)s)
  AND subscription.expired_at IS NULL
  AND subscription.registered_at <= notification.started_at
ORDER BY delivery.subscription_id LIMIT %(limit)s
"""

_SETTLED = "UPDATE notifications_app_plan SET status = 'done' WHERE id = %(plan)s"
