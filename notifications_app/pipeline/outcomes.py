"""The only writer of what became of a recipient.

`record` is one transaction and safe to repeat: counts add only what its own UPDATE changed. Locks
are taken in one order everywhere: plan, batch, deliveries, notification with its minutes,
subscriptions, counters, hourly rows.
"""

import logging
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from typing import NamedTuple, NoReturn
from uuid import UUID

from django.conf import settings
from django.db import DatabaseError, InterfaceError, OperationalError

from channels_app.counters import counter_add
from notifications_app.pipeline.batches import Lease, LeaseLost, postpone_bounces
from notifications_app.pipeline.transitions import (
    CREDENTIALS_REFUSED,
    INTERNAL_ERROR,
    Verdict,
    bounce,
)
from notifications_app.states import DeliveryStatus
from pushsvc.common.platforms import Platform
from pushsvc.common.store import sql
from subscriptions_app.services import GoneSubscription, subscriptions_expire

logger = logging.getLogger(__name__)

_MOST_REFUSED = 20


class RowsRefused(Exception):
    """The database refuses every change of these recipients' rows, even the bounce that stands for
    an outcome which it cannot store. All else was written."""


class _Changed(NamedTuple):
    """A delivery row as an UPDATE left it; `attempts`: how many it added."""

    subscription_id: UUID
    status: int
    code: str
    attempts: int


def record(lease: Lease, verdicts: Sequence[Verdict]) -> bool:
    """Writes verdicts and renews the lease; True if that ended the batch.

    Raises LeaseLost, with nothing written. A verdict that the database refuses (text that it
    cannot store, a constraint) costs nobody else: it is written as `internal_error`. Raises
    RowsRefused, the others written, where that is refused too.
    """
    done = False

    def write(part: Sequence[Verdict]) -> None:
        nonlocal done
        with sql.brief_transaction():
            done = _record(lease, part)

    unwritable = sql.write_apart(verdicts, write)
    if not unwritable:
        return done
    bounces = [bounce(v.recipient, INTERNAL_ERROR, attempts=v.attempts) for v, _ in unwritable]
    refused = {
        verdict.subscription_id: error
        for verdict, error in sql.write_apart(bounces, write, most=_MOST_REFUSED)
    }
    for verdict, error in unwritable:
        if verdict.subscription_id not in refused:
            extra = {"subscription": verdict.subscription_id, "error": _said(error)}
            logger.error("outcome.unwritable", extra=extra)
    if refused:
        _raise_refused(list(refused.items()))
    return done


def bounce_overdue(batch_id: int, code: str) -> None:
    """Bounces all that wait in an idle batch. Does nothing if a worker holds it.

    Raises RowsRefused, the others bounced, where the database refuses some; the batch is not
    `overdue` again for a while then.
    """

    def write(part: Sequence[UUID]) -> None:
        with sql.brief_transaction():
            _bounce(batch_id, code, part)

    waiting = [row[0] for row in sql.rows(_WAITING, {"batch": batch_id})]
    refused = sql.write_apart(waiting, write, most=_MOST_REFUSED)
    if refused:
        postpone_bounces(batch_id)
        _raise_refused(refused)


def begin_alone(lease: Lease, subscription_id: UUID) -> bool:
    """Notes, before the call, that this recipient is tried by itself. False if the lease is
    lost. Raises RowsRefused where nothing could be written of what the call would bring."""
    try:
        return sql.execute(_BEGIN_ALONE, _fence(lease) | {"subscription": subscription_id}) == 1
    except (OperationalError, InterfaceError):
        raise
    except DatabaseError as error:
        _raise_refused([(subscription_id, error)])


def finish_if_complete(notification_id: UUID) -> str | None:
    """The terminal state that the notification takes now, if all of its work is done.

    The caller's transaction holds the notification's row lock, so that of two that end the last
    work at once the second sees what the first wrote. The batches are the truth: counts that
    differ from their sums are corrected, and logged, because they never should.
    """
    ended = sql.rows(_FINISH, {"notification": notification_id})
    if not ended:
        return None
    status, channel_id, corrected = ended[0]
    if corrected:
        logger.error("counts.corrected", extra={"notification": notification_id})
    if status == "sent":
        counter_add(channel_id, notifications_sent=1)
    logger.info("notification.ended", extra={"notification": notification_id, "status": status})
    return str(status)


def finish_forgotten(limit: int = 100) -> None:
    """Ends notifications whose work is all done and that nobody ended: none, unless a fault."""
    for (notification_id,) in sql.rows(_FORGOTTEN, {"limit": limit}):
        with sql.brief_transaction():
            sql.rows(_LOCK_NOTIFICATION, {"notification": notification_id})
            finish_if_complete(notification_id)


def _raise_refused(refused: Sequence[tuple[UUID, Exception]]) -> NoReturn:
    ids = [str(id_) for id_, _ in refused[:_MOST_REFUSED]]
    error = refused[-1][1]
    logger.error("outcome.refused", extra={"subscriptions": ids, "error": _said(error)})
    raise RowsRefused from error


def _said(error: Exception) -> str:
    """The database's words, without the lines after the first: they may quote the row."""
    return str(error).partition("\n")[0]


def _bounce(batch_id: int, code: str, ids: Sequence[UUID]) -> None:
    idle = sql.rows(_LOCK_IDLE, {"batch": batch_id})
    if not idle:
        return
    lease = Lease.of(idle[0])
    parameters = {"batch": batch_id, "code": code, "ids": list(ids)}
    changed = [_Changed(*row) for row in sql.rows(_BOUNCE_WAITING, parameters)]
    _count(lease, changed, suspects=set(), gone=[])


def _record(lease: Lease, verdicts: Sequence[Verdict]) -> bool:
    if not sql.rows(_LOCK_LEASED, _fence(lease)):
        raise LeaseLost
    ordered = sorted(verdicts, key=lambda verdict: verdict.subscription_id)
    changed = [_Changed(*row) for row in sql.rows(_UPDATE_DELIVERIES, _columns(lease, ordered))]
    written = {row.subscription_id for row in changed}
    gone = [
        GoneSubscription(v.subscription_id, v.expires_as_of, v.code)
        for v in ordered
        if v.expires_as_of is not None and v.subscription_id in written
    ]
    suspects = {v.subscription_id for v in ordered if v.is_suspect}
    proven = [v.subscription_id for v in ordered if v.proves and v.subscription_id in written]
    return _count(lease, changed, suspects=suspects, gone=gone, proven=proven)


def _fence(lease: Lease) -> dict[str, int]:
    return {"batch": lease.batch_id, "attempt": lease.attempt}


def _columns(lease: Lease, verdicts: Sequence[Verdict]) -> dict[str, object]:
    return {
        "notification": lease.notification_id,
        "batch": lease.batch_id,
        "ids": [v.subscription_id for v in verdicts],
        "statuses": [int(v.status) for v in verdicts],
        "codes": [v.code for v in verdicts],
        "details": [v.detail[:200] for v in verdicts],
        "due": [v.due_at for v in verdicts],
        "attempts": [v.attempts for v in verdicts],
        "seen_attempts": [v.recipient.attempts for v in verdicts],
    }


def _count(
    lease: Lease,
    changed: Sequence[_Changed],
    *,
    suspects: set[UUID],
    gone: Sequence[GoneSubscription],
    proven: Sequence[UUID] = (),
) -> bool:
    """Adds up what one UPDATE of deliveries changed, from the batch to the hourly rows."""
    by_status = Counter(row.status for row in changed)
    totals = {
        "delivered": by_status[DeliveryStatus.DELIVERED],
        "bounced": by_status[DeliveryStatus.BOUNCED],
    }
    done = _count_batch(lease, changed, totals, suspects)
    if done or any(totals.values()):
        sql.execute(_COUNT_NOTIFICATION, totals | {"notification": lease.notification_id})
        _count_minute(lease, changed)
    if gone or proven:
        subscriptions_expire(channel_id=lease.channel_id, gone=gone, proven=proven)
    if done:
        finish_if_complete(lease.notification_id)
    if any(totals.values()):
        counter_add(lease.channel_id, **totals)
    deferred = sum(row.status == DeliveryStatus.WAITING and row.attempts > 0 for row in changed)
    hourly_add(lease.channel_id, lease.platform, **totals, deferred=deferred)
    return done


def _count_batch(
    lease: Lease, changed: Sequence[_Changed], totals: dict[str, int], suspects: set[UUID]
) -> bool:
    """Renews the lease, too; True if that ended the batch."""
    parameters = totals | {
        "batch": lease.batch_id,
        "refused": sum(
            row.status == DeliveryStatus.BOUNCED and row.code == CREDENTIALS_REFUSED
            for row in changed
        ),
        "suspects": sum(row.subscription_id in suspects for row in changed),
        "lease": timedelta(seconds=settings.LEASE_SECONDS),
    }
    ((done,),) = sql.rows(_COUNT_BATCH, parameters)
    return bool(done)


def _count_minute(lease: Lease, changed: Sequence[_Changed]) -> None:
    """How the recipients ended, under the notification's lock, so that nobody waits for a row."""
    ended = Counter(row.code for row in changed if row.status != DeliveryStatus.WAITING)
    parameters = {
        "notification": lease.notification_id,
        "platform": lease.platform,
        "codes": list(ended),
        "counts": list(ended.values()),
    }
    if ended:
        sql.execute(_COUNT_MINUTE, parameters)


def hourly_add(channel_id: UUID, platform: Platform, **deltas: int) -> None:
    """Adds to the row of this hour; nothing if all are zero."""
    if not any(deltas.values()):
        return
    amounts = dict.fromkeys(("recipients", "delivered", "bounced", "deferred"), 0) | deltas
    sql.execute(_COUNT_HOUR, amounts | {"channel": channel_id, "platform": platform})


_LOCK_LEASED = """
SELECT id FROM notifications_app_batch
WHERE id = %(batch)s AND attempt = %(attempt)s AND status = 'leased'
FOR NO KEY UPDATE
"""

_LOCK_IDLE = """
SELECT id, attempt, lapses, plan_id, notification_id, channel_id, platform, push_service,
  clock_timestamp()
FROM notifications_app_batch
WHERE id = %(batch)s AND status IN ('ready', 'parked')
FOR NO KEY UPDATE
"""

# `seen_attempts`: a deferral that is repeated, its first commit unheard of, counts once.
_UPDATE_DELIVERIES = """
UPDATE notifications_app_delivery delivery
SET status = verdict.status, code = verdict.code, detail = verdict.detail,
    attempts = delivery.attempts + verdict.attempts, solo_attempts = 0, due_at = verdict.due_at,
    first_attempt_at = CASE WHEN verdict.attempts > 0
      THEN coalesce(delivery.first_attempt_at, statement_timestamp())
      ELSE delivery.first_attempt_at END,
    finished_at = CASE WHEN verdict.status <> 0 THEN statement_timestamp() END
FROM unnest(%(ids)s::uuid[], %(statuses)s::smallint[], %(codes)s::text[], %(details)s::text[],
            %(due)s::timestamptz[], %(attempts)s::smallint[], %(seen_attempts)s::smallint[])
  AS verdict (subscription_id, status, code, detail, due_at, attempts, seen_attempts)
WHERE delivery.notification_id = %(notification)s
  AND delivery.subscription_id = verdict.subscription_id
  AND delivery.batch_id = %(batch)s AND delivery.status = 0
  AND delivery.attempts = verdict.seen_attempts
RETURNING delivery.subscription_id, delivery.status, delivery.code, verdict.attempts
"""

_WAITING = """
SELECT subscription_id FROM notifications_app_delivery WHERE batch_id = %(batch)s AND status = 0
"""

_BOUNCE_WAITING = """
UPDATE notifications_app_delivery
SET status = 2, code = %(code)s, due_at = NULL, finished_at = statement_timestamp()
WHERE batch_id = %(batch)s AND status = 0 AND subscription_id = ANY(%(ids)s)
RETURNING subscription_id, status, code, 0
"""

_BEGIN_ALONE = """
UPDATE notifications_app_delivery delivery SET solo_attempts = solo_attempts + 1
FROM notifications_app_batch batch
WHERE batch.id = %(batch)s AND batch.attempt = %(attempt)s AND batch.status = 'leased'
  AND delivery.notification_id = batch.notification_id AND delivery.batch_id = batch.id
  AND delivery.subscription_id = %(subscription)s AND delivery.status = 0
"""

_COUNT_BATCH = """
WITH summed AS (
  SELECT id, delivered_count + bounced_count + %(delivered)s + %(bounced)s = recipient_count AS done
  FROM notifications_app_batch WHERE id = %(batch)s)
UPDATE notifications_app_batch batch
SET delivered_count = delivered_count + %(delivered)s,
    bounced_count = bounced_count + %(bounced)s,
    refused_count = refused_count + %(refused)s,
    suspect_count = suspect_count + %(suspects)s,
    status = CASE WHEN summed.done THEN 'done' ELSE status END,
    finished_at = CASE WHEN summed.done THEN statement_timestamp() END,
    lease_until = CASE WHEN status = 'leased' AND NOT summed.done
      THEN clock_timestamp() + %(lease)s END
FROM summed WHERE batch.id = summed.id
RETURNING summed.done
"""

_COUNT_NOTIFICATION = """
UPDATE notifications_app_notification
SET delivered_count = delivered_count + %(delivered)s, bounced_count = bounced_count + %(bounced)s
WHERE id = %(notification)s
"""

_COUNT_MINUTE = """
INSERT INTO notifications_app_outcomeminute AS stat
  (notification_id, minute, platform, code, count)
SELECT %(notification)s, date_trunc('minute', statement_timestamp(), 'UTC'), %(platform)s, *
FROM unnest(%(codes)s::text[], %(counts)s::bigint[]) AS ended (code, count)
ON CONFLICT (notification_id, minute, platform, code) DO UPDATE
SET count = stat.count + excluded.count
"""

_COUNT_HOUR = """
INSERT INTO notifications_app_hourlystat AS stat
  (channel_id, platform, hour, recipients, delivered, bounced, deferred, clicked)
VALUES (%(channel)s, %(platform)s, date_trunc('hour', statement_timestamp(), 'UTC'),
        %(recipients)s, %(delivered)s, %(bounced)s, %(deferred)s, 0)
ON CONFLICT (channel_id, platform, hour) DO UPDATE
SET recipients = stat.recipients + excluded.recipients,
    delivered = stat.delivered + excluded.delivered,
    bounced = stat.bounced + excluded.bounced,
    deferred = stat.deferred + excluded.deferred
"""

_FINISH = """
WITH sums AS (
  SELECT coalesce(sum(recipient_count), 0) AS recipients,
         coalesce(sum(delivered_count), 0) AS delivered,
         coalesce(sum(bounced_count), 0) AS bounced,
         coalesce(sum(refused_count), 0) AS refused
  FROM notifications_app_batch WHERE notification_id = %(notification)s
), before AS (
  SELECT id, recipient_count, delivered_count, bounced_count
  FROM notifications_app_notification
  WHERE id = %(notification)s AND status = 'processing'
    AND NOT EXISTS (SELECT FROM notifications_app_plan
                    WHERE notification_id = %(notification)s AND status = 'planning')
    AND NOT EXISTS (SELECT FROM notifications_app_batch
                    WHERE notification_id = %(notification)s AND status <> 'done')
)
UPDATE notifications_app_notification notification
SET status = CASE WHEN sums.recipients > 0 AND sums.refused = sums.recipients
              THEN 'failed' ELSE 'sent' END,
    finished_at = statement_timestamp(),
    recipient_count = sums.recipients,
    delivered_count = sums.delivered,
    bounced_count = sums.bounced
FROM sums, before
WHERE notification.id = before.id
RETURNING notification.status, notification.channel_id,
  (before.recipient_count, before.delivered_count, before.bounced_count)
    <> (sums.recipients, sums.delivered, sums.bounced)
"""

_FORGOTTEN = """
SELECT id FROM notifications_app_notification notification
WHERE status = 'processing'
  AND NOT EXISTS (SELECT FROM notifications_app_plan
                  WHERE notification_id = notification.id AND status = 'planning')
  AND NOT EXISTS (SELECT FROM notifications_app_batch
                  WHERE notification_id = notification.id AND status <> 'done')
ORDER BY id LIMIT %(limit)s
"""

_LOCK_NOTIFICATION = """
SELECT id FROM notifications_app_notification WHERE id = %(notification)s FOR NO KEY UPDATE
"""
