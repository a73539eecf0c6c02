"""Adds changes of recipients to the counts of batches, notifications, channels and hours.

Every function runs in the transaction that changed the recipients, and locks rows in the order of
docs/architecture.md, "Locks".
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Final
from uuid import UUID

import structlog
from django.conf import settings
from django.db import DatabaseError, InterfaceError, transaction

from channels_app.counters import busy_counter_add, counter_add
from channels_app.feeds import EventKind, feed_call
from notifications_app.models import Batch, Notification, Plan
from notifications_app.pipeline.shares import OUTCOME_SUMS
from notifications_app.pipeline.transitions import CREDENTIALS_REFUSED
from notifications_app.querysets import NotificationQuerySet
from notifications_app.states import APART, STATES, DeliveryStatus, NotificationStatus
from pushsvc.common import metrics
from pushsvc.common.correlation import correlation_of
from pushsvc.common.platforms import Platform
from pushsvc.common.store import sql
from subscriptions_app.devices.services import GoneSubscription, subscriptions_expire_or_prove

logger = structlog.stdlib.get_logger(__name__)


@dataclass(frozen=True)
class BatchChanges:
    """The changes of one UPDATE to the deliveries of a locked batch. `ended`: how many recipients
    ended, by status and code. `is_test`: of a test, which no hour counts. `is_shared`: another
    transaction may count recipients of the notification. `is_begun`: a delivery was counted."""

    batch: Batch
    ended: Counter[tuple[int, str]]
    deferred: int = 0
    suspects: int = 0
    is_test: bool = False
    is_shared: bool = True
    is_begun: bool = True

    @property
    def delivered(self) -> int:
        return self._of_status(DeliveryStatus.DELIVERED)

    @property
    def bounced(self) -> int:
        return self._of_status(DeliveryStatus.BOUNCED)

    @property
    def outcomes(self) -> Counter[str]:
        """`delivered`, `bounced`, and the parts of `bounced` that are told apart."""
        apart = {code: self.ended[DeliveryStatus.BOUNCED, code] for code in APART}
        return Counter(delivered=self.delivered, bounced=self.bounced, **apart)

    @property
    def is_last(self) -> bool:
        """Whether no recipient of the batch is left."""
        ended_before = self.batch.delivered_count + self.batch.bounced_count
        return ended_before + self.ended.total() == self.batch.recipient_count

    @property
    def has_own_share(self) -> bool:
        """Whether the connection counts the outcomes in its own share, and not in rows for which
        other flushes would wait. The flush that counts the first delivery writes its time into the
        notification. A test has one recipient."""
        is_first = self.delivered > 0 and not self.is_begun
        return self.is_shared and not is_first and not self.is_test

    def _of_status(self, status: DeliveryStatus) -> int:
        return sum(count for (each, _), count in self.ended.items() if each == status)


def count(
    changes: Sequence[BatchChanges],
    *,
    gone: Sequence[GoneSubscription] = (),
    proven: Sequence[UUID] = (),
) -> Set[int]:
    """Adds the changes to every count, renews leases, expires or proves the subscriptions, and ends
    the notifications that have no recipients left. All batches must be of one channel and platform.
    Returns ids of the batches that the changes ended."""
    channel_id, platform = changes[0].batch.channel_id, Platform(changes[0].batch.platform)
    directly = [each for each in changes if not each.has_own_share]
    _count_batches(changes)
    _count_notifications([each for each in directly if each.ended or each.is_last])
    _count_minutes(changes)
    if gone or proven:
        subscriptions_expire_or_prove(channel_id=channel_id, gone=gone, proven=proven)
    sent = finish_complete({each.batch.notification_id for each in directly if each.is_last})
    check_end_later(
        {each.batch.notification_id for each in changes if each.is_last and each.is_shared}
    )
    totals = {
        "delivered": sum(each.delivered for each in changes),
        "bounced": sum(each.bounced for each in changes),
    }
    has_own_share = len(directly) < len(changes)
    add = busy_counter_add if has_own_share else counter_add
    add(channel_id, **sent[channel_id], **totals)
    hour: Counter[str] = Counter()
    for each in changes:
        if not each.is_test:
            hour.update(each.outcomes, deferred=each.deferred)
    hourly_add({(channel_id, platform): hour}, in_own_share=has_own_share)
    return {each.batch.pk for each in changes if each.is_last}


def check_end_later(notification_ids: Set[UUID]) -> None:
    """After the commit, ends those of the notifications that are complete. For a transaction that
    ends a batch or a plan while others may end the last ones: of them, the one that commits last
    sees what all wrote. If the database refuses, a tick ends the notifications."""

    def check() -> None:
        try:
            end_complete(Notification.objects.filter(pk__in=notification_ids))
        except (DatabaseError, InterfaceError) as error:
            logger.warning("notification.unended", error=type(error).__name__)

    if notification_ids:
        transaction.on_commit(check)


def end_complete(notifications: NotificationQuerySet[Notification], limit: int = 100) -> None:
    """Ends those of the notifications that are complete, each in its own transaction."""
    complete = notifications.complete(plans=Plan.objects.all(), batches=Batch.objects.all())
    for notification_id, channel_id in complete.order_by("pk").values_list("pk", "channel")[:limit]:
        with sql.brief_transaction():
            Notification.objects.filter(pk=notification_id).lock_all()
            counter_add(channel_id, **finish_complete({notification_id})[channel_id])


def finish_complete(notification_ids: Set[UUID]) -> Mapping[UUID, Counter[str]]:
    """Ends those of the notifications that are complete. Returns for every channel how many became
    `sent`, as `counter_add` takes them; the caller adds them to the channel's totals.

    The caller must hold the notifications' row locks, so only one transaction ends a notification.
    If others may have ended a batch or a plan meanwhile, the caller must also `check_end_later`.
    The batches are authoritative: if a notification's counts differ from their sums, they are
    corrected and an error is logged.
    """
    sent: defaultdict[UUID, Counter[str]] = defaultdict(Counter)
    if not notification_ids:
        return sent
    parameters = {"notifications": sorted(notification_ids)}
    ended = sql.rows(FINISH, parameters, is_prepared=sql.are_few(notification_ids))
    for notification_id, channel_id, status, is_corrected, is_test, seconds, *correlation in ended:
        if status == NotificationStatus.SENT:
            sent[channel_id].update(notifications_sent=1, tests_sent=int(is_test))
            if seconds is not None:
                _observe_later(metrics.LAST_HAND_OVER, seconds)
        ids = correlation_of(notification_id, *correlation).fields
        about = logger.bind(notification=notification_id, **ids)
        if is_corrected:
            about.error("counts.corrected")
        about.info("notification.ended", status=status)
    return sent


def notifications_add(sums: Mapping[UUID, Counter[str]]) -> None:
    """Adds to the notifications' counts of `recipients`, `delivered`, `bounced` and APART. Locks
    them until the transaction ends, in the order of their ids."""
    parameters: dict[str, object] = {"ids": list(sums)}
    for name in ("recipients", "delivered", "bounced", *APART):
        parameters[name] = [each[name] for each in sums.values()]
    for (seconds_until_first,) in sql.rows(
        COUNT_NOTIFICATIONS, parameters, is_prepared=sql.are_few(sums)
    ):
        if seconds_until_first is not None:
            _observe_later(metrics.FIRST_HAND_OVER, seconds_until_first)


def hourly_add(
    changes: Mapping[tuple[UUID, Platform], Counter[str]], *, in_own_share: bool = False
) -> None:
    """Adds `recipients`, `delivered`, `bounced`, APART and `deferred` to the rows of this hour, by
    channel and platform. Skips changes that are all zero. `in_own_share`: in the share of this
    connection, for which no other waits."""
    changed = sorted((key, each) for key, each in changes.items() if any(each.values()))
    if not changed:
        return
    parameters: dict[str, object] = {
        "channels": [channel_id for (channel_id, _), _ in changed],
        "platforms": [platform for (_, platform), _ in changed],
        "in_own_share": in_own_share,
    }
    for name in ("recipients", "delivered", "bounced", *APART, "deferred"):
        parameters[name] = [each[name] for _, each in changed]
    sql.execute(COUNT_HOUR, parameters, is_prepared=sql.are_few(changed))


def _observe_later(histogram: metrics.Histogram, seconds: float) -> None:
    transaction.on_commit(partial(histogram.observe, seconds))


def _count_batches(changes: Sequence[BatchChanges]) -> None:
    parameters = {
        "ids": [each.batch.pk for each in changes],
        "delivered": [each.delivered for each in changes],
        "bounced": [each.bounced for each in changes],
        "refused": [each.ended[DeliveryStatus.BOUNCED, CREDENTIALS_REFUSED] for each in changes],
        "suspects": [each.suspects for each in changes],
        "is_last": [each.is_last for each in changes],
        "lease": timedelta(seconds=settings.LEASE_SECONDS),
    }
    sql.execute(COUNT_BATCHES, parameters, is_prepared=sql.are_few(changes))


def _count_notifications(changes: Sequence[BatchChanges]) -> None:
    """Adds the ended recipients to the notifications' counts."""
    sums: dict[UUID, Counter[str]] = defaultdict(Counter)
    for each in changes:
        sums[each.batch.notification_id].update(each.outcomes)
    if sums:
        notifications_add(sums)


def _count_minutes(changes: Sequence[BatchChanges]) -> None:
    """Adds ended recipients by code. No transaction waits for these rows: this one holds the locks
    of the notifications whose share 0 it counts in, and has the other shares for itself."""
    minutes: Counter[tuple[UUID, str, bool]] = Counter()
    for each in changes:
        for (_, code), ended in each.ended.items():
            minutes[each.batch.notification_id, code, each.has_own_share] += ended
    if not minutes:
        return
    parameters = {
        "platform": changes[0].batch.platform,
        "notifications": [notification_id for notification_id, _, _ in minutes],
        "codes": [code for _, code, _ in minutes],
        "own_shares": [has_own_share for _, _, has_own_share in minutes],
        "counts": list(minutes.values()),
    }
    sql.execute(COUNT_MINUTES, parameters, is_prepared=sql.are_few(minutes))


# In SQL, because the ORM cannot join an update with values. A batch without a lease gets none.
COUNT_BATCHES = sql.with_constants(
    """
UPDATE notifications_app_batch batch
SET delivered_count = delivered_count + change.delivered,
    bounced_count = bounced_count + change.bounced,
    refused_count = refused_count + change.refused,
    suspect_count = suspect_count + change.suspects,
    status = CASE WHEN change.is_last THEN %(batch_done)s ELSE status END,
    finished_at = CASE WHEN change.is_last THEN statement_timestamp() END,
    lease_until = CASE WHEN status = %(batch_leased)s AND NOT change.is_last
      THEN clock_timestamp() + %(lease)s END
FROM unnest(%(ids)s::bigint[], %(delivered)s::int[], %(bounced)s::int[], %(refused)s::int[],
            %(suspects)s::int[], %(is_last)s::bool[])
  AS change (id, delivered, bounced, refused, suspects, is_last)
WHERE batch.id = change.id
""",
    STATES,
)

# Whether a row of `notification` was sent as soon as possible. One that was sent in parts, by an
# automation, to targets with quiet hours, with a rate, with a test, or stopped took the time that
# its owner chose.
_IS_AT_ONCE: Final = """(coalesce(rate_per_minute, 0) = 0 AND stopped_at IS NULL AND test IS NULL
    AND (timing IS NULL AND NOT has_targets OR (NOT has_targets OR timing->>'quiet' IS NULL)
      AND NOT EXISTS (SELECT FROM notifications_app_plan
                      WHERE notification_id = notification.id AND part > 0 AND until IS NULL)))"""

# In SQL, because the ORM cannot join an update with values. The rows are first locked in the order
# of ids, because an UPDATE locks them in any order. Returns the seconds from a notification's time
# to its first delivery, without pauses, if this statement counts the first delivery of one that was
# sent at once.
COUNT_NOTIFICATIONS = f"""
WITH locked AS (
  SELECT id FROM notifications_app_notification WHERE id = ANY(%(ids)s::uuid[])
  ORDER BY id FOR NO KEY UPDATE
)
UPDATE notifications_app_notification notification
SET recipient_count = recipient_count + change.recipients,
    delivered_count = delivered_count + change.delivered,
    bounced_count = bounced_count + change.bounced,
    stopped_count = stopped_count + change.stopped,
    opted_out_count = opted_out_count + change.opted_out,
    expired_count = expired_count + change.expired,
    first_hand_over_at = CASE WHEN change.delivered > 0 AND delivered_count = 0
      THEN statement_timestamp() ELSE first_hand_over_at END
FROM locked JOIN unnest(%(ids)s::uuid[], %(recipients)s::int[], %(delivered)s::int[],
                        %(bounced)s::int[], %(stopped)s::int[], %(opted_out)s::int[],
                        %(expired)s::int[])
  AS change (id, recipients, delivered, bounced, stopped, opted_out, expired) USING (id)
WHERE notification.id = locked.id
RETURNING CASE WHEN change.delivered > 0 AND notification.delivered_count = change.delivered
    AND {_IS_AT_ONCE}
  THEN extract(epoch FROM statement_timestamp() - greatest(scheduled_at, created_at))::float8
    - paused_seconds END
"""  # noqa: S608 - text of our own

# Both in SQL, because on a conflict the ORM can only replace values, not add to them. A connection
# has the share of its process id.
COUNT_MINUTES = """
INSERT INTO notifications_app_outcomeminute AS stat
  (notification_id, minute, platform, code, shard, count)
SELECT notification_id, date_trunc('minute', statement_timestamp(), 'UTC'), %(platform)s, code,
  CASE WHEN has_own_share THEN pg_backend_pid() ELSE 0 END, count
FROM unnest(%(notifications)s::uuid[], %(codes)s::text[], %(own_shares)s::bool[],
            %(counts)s::bigint[])
  AS ended (notification_id, code, has_own_share, count)
ON CONFLICT (notification_id, minute, platform, code, shard) DO UPDATE
SET count = stat.count + excluded.count
"""

COUNT_HOUR = """
INSERT INTO notifications_app_hourlystat AS stat
  (channel_id, platform, hour, shard, recipients, delivered, bounced, stopped, opted_out, expired,
   deferred, clicked)
SELECT channel_id, platform, date_trunc('hour', statement_timestamp(), 'UTC'),
  CASE WHEN %(in_own_share)s THEN pg_backend_pid() ELSE 0 END,
  recipients, delivered, bounced, stopped, opted_out, expired, deferred, 0
FROM unnest(%(channels)s::uuid[], %(platforms)s::text[], %(recipients)s::int[],
            %(delivered)s::int[], %(bounced)s::int[], %(stopped)s::int[], %(opted_out)s::int[],
            %(expired)s::int[], %(deferred)s::int[])
  AS change (channel_id, platform, recipients, delivered, bounced, stopped, opted_out, expired,
             deferred)
ON CONFLICT (channel_id, platform, hour, shard) DO UPDATE
SET recipients = stat.recipients + excluded.recipients,
    delivered = stat.delivered + excluded.delivered,
    bounced = stat.bounced + excluded.bounced,
    stopped = stat.stopped + excluded.stopped,
    opted_out = stat.opted_out + excluded.opted_out,
    expired = stat.expired + excluded.expired,
    deferred = stat.deferred + excluded.deferred
"""

_FEED: Final = feed_call(
    EventKind.FINISHED, channel="notification.channel_id", subject="notification.id"
)

# In SQL, because an update of the ORM neither joins nor returns rows. One statement, so that no
# other transaction changes a row between the check, the sums and the update. LATERAL, so that sums
# are read by index. OFFSET, so that plans and batches are looked up for each notification: a join
# might read all open batches. Also returns the seconds since the time of a notification that was
# sent at once, without pauses.
FINISH = sql.with_constants(
    f"""
WITH complete AS (
  SELECT id, recipient_count, delivered_count + unmerged.delivered AS delivered_count,
    bounced_count + unmerged.bounced AS bounced_count,
    unmerged.stopped, unmerged.opted_out, unmerged.expired
  FROM notifications_app_notification notification CROSS JOIN LATERAL (
    SELECT {OUTCOME_SUMS} FROM notifications_app_outcomeminute
    WHERE notification_id = notification.id AND shard <> 0) AS unmerged
  WHERE id = ANY(%(notifications)s::uuid[]) AND status = %(notification_processing)s
    AND NOT EXISTS (SELECT FROM notifications_app_plan
                    WHERE notification_id = notification.id AND status = %(plan_planning)s OFFSET 0)
    AND NOT EXISTS (SELECT FROM notifications_app_batch
                    WHERE notification_id = notification.id AND finished_at IS NULL OFFSET 0)
), ended AS (
UPDATE notifications_app_notification notification
SET status = CASE WHEN sums.recipients > 0 AND sums.refused = sums.recipients
              THEN %(notification_failed)s ELSE %(notification_sent)s END,
    finished_at = statement_timestamp(),
    recipient_count = sums.recipients,
    delivered_count = sums.delivered,
    bounced_count = sums.bounced,
    stopped_count = stopped_count + complete.stopped,
    opted_out_count = opted_out_count + complete.opted_out,
    expired_count = expired_count + complete.expired
FROM complete CROSS JOIN LATERAL (
  SELECT coalesce(sum(recipient_count), 0) AS recipients,
         coalesce(sum(delivered_count), 0) AS delivered,
         coalesce(sum(bounced_count), 0) AS bounced,
         coalesce(sum(refused_count), 0) AS refused
  FROM notifications_app_batch WHERE notification_id = complete.id) AS sums
WHERE notification.id = complete.id
RETURNING notification.id, notification.channel_id, notification.status,
  (complete.recipient_count, complete.delivered_count, complete.bounced_count)
    <> (sums.recipients, sums.delivered, sums.bounced) AS is_corrected,
  notification.only_subscription_id IS NOT NULL AS is_test,
  CASE WHEN {_IS_AT_ONCE}
    THEN extract(epoch FROM statement_timestamp() - greatest(scheduled_at, created_at))::float8
      - paused_seconds END AS seconds,
  notification.request_id, notification.traceparent,
  {_FEED}
)
SELECT id, channel_id, status, is_corrected, is_test, seconds, request_id, traceparent FROM ended
""",  # noqa: S608 - a constant
    STATES,
)
