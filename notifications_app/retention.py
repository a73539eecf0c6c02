"""Deletes old rows and merges shares of counts, in small steps to avoid long transactions."""

import time
from collections.abc import Callable
from datetime import timedelta

import structlog
from django.conf import settings
from django.db import OperationalError

from channels_app.counters import channel_hours_merge, prompt_hours_merge
from channels_app.models import Channel
from channels_app.selectors import nearly_full_channels
from channels_app.sign_in.mails import mails_purge
from channels_app.sign_in.sessions import failures_purge, sessions_purge
from channels_app.webhooks import messages_purge
from notifications_app.images.services import images_purge, removals_purge
from notifications_app.models import IdempotencyRecord
from notifications_app.pipeline.contacts import contacts_purge, once_purge
from notifications_app.pipeline.followers import automation_contacts_purge, entries_purge
from notifications_app.pipeline.shares import hours_merge, minutes_merge
from pushsvc.common.ids import uuid7_at
from pushsvc.common.store import sql
from subscriptions_app.devices.services import expired_purge
from subscriptions_app.people.purge import people_purge
from subscriptions_app.tags.services import deleted_tags_purge

logger = structlog.stdlib.get_logger(__name__)

_STEP = 2_000
_STEPS = 50
_MORE_SECONDS = 10.0  # of each minute, because ticks and plans share the process
_MERGED_AT_ONCE = 20  # notifications
_IMAGES = 20  # of which each is looked for in all stored sends of its channel
_MOST_NEARLY_FULL = 10


def purge() -> None:
    """Deletes rows that are past their retention, and merges the shares of past minutes and
    hours: at most 100,000 rows of each kind, and again of those that have more, until the run has
    taken _MORE_SECONDS. A kind whose statement PostgreSQL cancels keeps no other."""
    until = time.monotonic() + _MORE_SECONDS
    kinds: dict[str, Callable[[], int]] = {
        "deliveries": _purge_deliveries,
        "targets": _purge_targets,
        "send_rates": _purge_send_rates,
        "contacts": lambda: contacts_purge(_STEP),
        "once": lambda: once_purge(_STEP),
        "automation_contacts": lambda: automation_contacts_purge(_STEP),
        "automation_entries": lambda: entries_purge(_STEP),
        "subscriptions": lambda: expired_purge(_STEP),
        "people": lambda: people_purge(_STEP),
        "deleted_tags": lambda: deleted_tags_purge(_STEP),
        "idempotency_records": lambda: IdempotencyRecord.objects.purge(_STEP),
        "outcome_minutes": lambda: minutes_merge(_MERGED_AT_ONCE),
        "hours": lambda: hours_merge(_STEP),
        "channel_hours": lambda: channel_hours_merge(_STEP),
        "prompt_hours": lambda: prompt_hours_merge(_STEP),
        "webhook_messages": lambda: messages_purge(_STEP),
        "images": lambda: images_purge(_IMAGES),
        "image_removals": removals_purge,
        "mails": lambda: mails_purge(_STEP),
        "sessions": lambda: sessions_purge(_STEP),
        "sign_in_failures": lambda: failures_purge(_STEP),
    }
    purged = dict.fromkeys(kinds, 0)
    left = list(kinds)
    while left:
        more = {name: _purged(name, kinds[name]) for name in left}
        for name, (count, _) in more.items():
            purged[name] += count
        left = [name for name, (_, is_more) in more.items() if is_more]
        if time.monotonic() >= until:
            break
    if any(purged.values()):
        logger.info("retention.purged", **purged)


def warn_of_full_channels() -> None:
    """Warns of channels that are nearly full. Once per run and not for each refused subscription,
    because anyone could fill the log."""
    for channel in nearly_full_channels(Channel.objects.all(), limit=_MOST_NEARLY_FULL):
        logger.warning(
            "subscriptions.scarce",
            channel=channel.channel_id,
            stored=channel.stored,
            most=channel.most,
        )


def _purge_deliveries() -> int:
    """Deletes batches whose notification ended long enough ago, with their deliveries: the oldest
    that have _STEP recipients together. Most batches of direct sends have one. Returns how many
    deliveries there were."""
    age = timedelta(days=settings.DELIVERY_RETENTION_DAYS)
    return int(sql.rows(_PURGE_BATCHES, {"age": age, "limit": _STEP})[0][0])


def _purge_targets() -> int:
    """Deletes old targets. Separate from deliveries, because a notification may have targets but no
    recipients, and because its corrections reach only whom its targets name: these stay as long as
    the deliveries of the last correction."""
    age = timedelta(days=settings.DELIVERY_RETENTION_DAYS)
    # Ids sort by time, so rows that may be old enough are one range of the primary key.
    oldest = uuid7_at(sql.now() - age)
    return sql.execute(_PURGE_TARGETS, {"age": age, "before": oldest, "limit": _STEP})


def _purge_send_rates() -> int:
    """Deletes those of notifications that are not being sent."""
    return sql.execute(_PURGE_SEND_RATES, {"limit": _STEP})


def _purged(kind: str, step: Callable[[], int]) -> tuple[int, bool]:
    """How many rows of the kind, and whether there may be more."""
    try:
        return _in_steps(step)
    except OperationalError as error:
        if not sql.is_cancelled(error):
            raise
        logger.exception("retention.failed", kind=kind)
        return 0, False


def _in_steps(step: Callable[[], int]) -> tuple[int, bool]:
    total = 0
    for _ in range(_STEPS):
        deleted = step()
        if not deleted:
            return total, False
        total += deleted
    return total, True


# In SQL, because a DELETE of the ORM has neither joins nor a limit.
_PURGE_TARGETS = """
WITH old AS (
  SELECT target.notification_id, target.position FROM notifications_app_target target
  JOIN notifications_app_notification notification ON notification.id = target.notification_id
  WHERE target.notification_id < %(before)s
    AND notification.finished_at < statement_timestamp() - %(age)s
    AND NOT EXISTS (
      SELECT FROM notifications_app_notification correction
      WHERE correction.root_id = notification.id
        AND (correction.finished_at < statement_timestamp() - %(age)s) IS NOT TRUE)
  ORDER BY target.notification_id, target.position LIMIT %(limit)s
  FOR UPDATE OF target SKIP LOCKED
)
DELETE FROM notifications_app_target AS target USING old
WHERE target.notification_id = old.notification_id AND target.position = old.position
"""

_PURGE_SEND_RATES = """
DELETE FROM notifications_app_sendrate WHERE notification_id = ANY(ARRAY(
  SELECT notification_id FROM notifications_app_sendrate rate
  WHERE NOT EXISTS (SELECT FROM notifications_app_notification
                    WHERE id = rate.notification_id AND status = 'processing')
  LIMIT %(limit)s
  FOR UPDATE SKIP LOCKED))
"""

# In SQL, because the ORM deletes from one table at a time. A batch is deleted in the statement that
# deletes its deliveries, so a batch that exists has its deliveries.
_PURGE_BATCHES = """
WITH oldest AS (
  SELECT batch.id, batch.recipient_count, sum(batch.recipient_count)
    OVER (ORDER BY batch.finished_at ROWS UNBOUNDED PRECEDING) AS recipients
  FROM notifications_app_batch batch
  JOIN notifications_app_notification notification ON notification.id = batch.notification_id
  WHERE batch.status = 'done' AND batch.finished_at < statement_timestamp() - %(age)s
    AND notification.finished_at < statement_timestamp() - %(age)s
  ORDER BY batch.finished_at LIMIT %(limit)s
), old AS (
  SELECT * FROM notifications_app_batch WHERE id = ANY(ARRAY(
    SELECT id FROM oldest WHERE recipients - recipient_count < %(limit)s))
  FOR UPDATE SKIP LOCKED
), deliveries AS (
  DELETE FROM notifications_app_delivery WHERE batch_id IN (SELECT id FROM old) RETURNING 1
), batches AS (
  DELETE FROM notifications_app_batch WHERE id IN (SELECT id FROM old)
), kept AS (
  INSERT INTO notifications_app_variantcount AS stat
    (notification_id, variant, recipients, delivered, bounced)
  SELECT notification_id, variant, sum(recipient_count), sum(delivered_count), sum(bounced_count)
  FROM old WHERE variant IS NOT NULL GROUP BY notification_id, variant
  ORDER BY notification_id, variant
  ON CONFLICT (notification_id, variant) DO UPDATE
  SET recipients = stat.recipients + excluded.recipients,
      delivered = stat.delivered + excluded.delivered,
      bounced = stat.bounced + excluded.bounced
)
SELECT count(*) FROM deliveries
"""
