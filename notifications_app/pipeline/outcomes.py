"""The only writer of what became of a recipient.

`record` is one transaction and safe to repeat, because it counts only what its own UPDATE changed.
All code locks rows in one order: plan, batch, deliveries, notification with its minutes,
subscriptions, counters, hourly rows.
"""

import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, NamedTuple, NoReturn
from uuid import UUID

from django.conf import settings
from django.db import DatabaseError, InterfaceError, OperationalError

from channels_app.counters import counter_add
from notifications_app.models import Batch, Delivery, Notification, Plan
from notifications_app.pipeline.lease import Lease, LeaseLost
from notifications_app.pipeline.transitions import (
    CREDENTIALS_REFUSED,
    INTERNAL_ERROR,
    Transition,
    bounce,
)
from notifications_app.states import STATES, BatchStatus, DeliveryStatus, NotificationStatus
from pushsvc.common.platforms import Platform
from pushsvc.common.store import sql
from subscriptions_app.services import GoneSubscription, subscriptions_expire

logger = logging.getLogger(__name__)

_MOST_REFUSED = 20


class RowsRefused(Exception):
    """The database refuses every change of these recipients' rows, even the bounce that is written
    in place of an outcome that it cannot store. Everything else was written."""


class _Changed(NamedTuple):
    """A delivery row as an UPDATE left it. `attempts`: how many it added."""

    subscription_id: UUID
    status: int
    code: str
    attempts: int


@dataclass(frozen=True)
class _Changes:
    """What one UPDATE of a batch's deliveries changed. `ended`: how many ended, by status and
    code."""

    ended: Counter[tuple[int, str]]
    deferred: int = 0
    suspects: int = 0

    def of_status(self, status: DeliveryStatus) -> int:
        return sum(count for (each, _), count in self.ended.items() if each == status)


def record(lease: Lease, transitions: Sequence[Transition]) -> bool:
    """Writes transitions and renews the lease. Ends the batch if nothing is left of it. Returns
    whether the notification is paused or stopped, so that no further call may begin.

    Raises LeaseLost, with nothing written. If the database refuses a transition (a text that it
    cannot store, a constraint), the recipient is written as `internal_error`, and the others are
    written as they are. Raises RowsRefused, with the others written, if it refuses that, too.
    """

    is_halted = False

    def write(part: Sequence[Transition]) -> None:
        nonlocal is_halted
        with sql.brief_transaction():
            is_halted = _record(lease, part)

    unwritable = sql.write_apart(transitions, write)
    if not unwritable:
        return is_halted
    bounces = [
        bounce(each.delivery, INTERNAL_ERROR, attempts=each.attempts) for each, _ in unwritable
    ]
    refused = {
        transition.subscription_id: error
        for transition, error in sql.write_apart(bounces, write, most=_MOST_REFUSED)
    }
    for transition, error in unwritable:
        if transition.subscription_id not in refused:
            extra = {"subscription": transition.subscription_id, "error": _first_line(error)}
            logger.error("outcome.unwritable", extra=extra)
    if refused:
        _raise_refused(list(refused.items()))
    return is_halted


def bounce_overdue(batch_id: int, code: str) -> None:
    """Bounces all waiting recipients of an idle batch. Does nothing if a worker holds it.

    Raises RowsRefused, with the others bounced, if the database refuses some. Then the batch is not
    `overdue` again for a while.
    """

    def write(part: Sequence[UUID]) -> None:
        with sql.brief_transaction():
            _bounce(batch_id, code, part)

    waiting = Delivery.objects.waiting().filter(batch_id=batch_id)
    refused = sql.write_apart(
        list(waiting.values_list("subscription_id", flat=True)), write, most=_MOST_REFUSED
    )
    if refused:
        Batch.objects.idle().filter(pk=batch_id).postpone_bounces()
        _raise_refused(refused)


def begin_alone(lease: Lease, subscription_id: UUID) -> None:
    """Notes, before the call, that this recipient is called by itself. Raises LeaseLost, and
    RowsRefused if the outcome of the call could not be written either."""
    own = Delivery.objects.waiting().filter(
        notification_id=lease.notification_id,
        subscription_id=subscription_id,
        batch_id=lease.batch_id,
    )
    try:
        if not own.begin_alone(Batch.objects.leased_by(lease)):
            raise LeaseLost
    except (OperationalError, InterfaceError):
        raise
    except DatabaseError as error:
        _raise_refused([(subscription_id, error)])


def finish_if_complete(notification_id: UUID) -> str | None:
    """The terminal state that the notification takes now, if all its work is done.

    The caller's transaction holds the notification's row lock. So if two transactions end the last
    work at once, the second sees what the first wrote. The batches are authoritative: if the
    notification's counts differ from their sums, they are corrected and an error is logged.
    """
    ended = sql.rows(_FINISH, STATES | {"notification": notification_id})
    if not ended:
        return None
    status, channel_id, corrected = ended[0]
    if corrected:
        logger.error("counts.corrected", extra={"notification": notification_id})
    if status == NotificationStatus.SENT:
        counter_add(channel_id, notifications_sent=1)
    logger.info("notification.ended", extra={"notification": notification_id, "status": status})
    return str(status)


def finish_forgotten(limit: int = 100) -> None:
    """Ends notifications whose work is all done. There are none, unless something failed."""
    complete = Notification.objects.complete(plans=Plan.objects.all(), batches=Batch.objects.all())
    for notification_id in complete.order_by("pk").values_list("pk", flat=True)[:limit]:
        with sql.brief_transaction():
            Notification.objects.filter(pk=notification_id).locked()
            finish_if_complete(notification_id)


def hourly_add(channel_id: UUID, platform: Platform, **deltas: int) -> None:
    """Adds to the row of this hour. Does nothing if all deltas are zero."""
    if not any(deltas.values()):
        return
    amounts = dict.fromkeys(("recipients", "delivered", "bounced", "deferred"), 0) | deltas
    sql.execute(_COUNT_HOUR, amounts | {"channel": channel_id, "platform": platform})


def _raise_refused(refused: Sequence[tuple[UUID, Exception]]) -> NoReturn:
    ids = [str(id_) for id_, _ in refused[:_MOST_REFUSED]]
    error = refused[-1][1]
    logger.error("outcome.refused", extra={"subscriptions": ids, "error": _first_line(error)})
    raise RowsRefused from error


def _first_line(error: Exception) -> str:
    """Of the database's message; the lines after it may quote the row."""
    return str(error).partition("\n")[0]


def _bounce(batch_id: int, code: str, ids: Sequence[UUID]) -> None:
    batch = Batch.objects.idle().filter(pk=batch_id).locked()
    if batch is None:
        return
    waiting = Delivery.objects.waiting().filter(batch_id=batch_id, subscription_id__in=ids)
    bounced = waiting.bounce(code)
    _count(batch, _Changes(Counter({(DeliveryStatus.BOUNCED, code): bounced})))


def _record(lease: Lease, transitions: Sequence[Transition]) -> bool:
    batch: Any = Batch.objects.leased_by(lease).with_halt().locked()
    if batch is None:
        raise LeaseLost
    ordered = sorted(transitions, key=lambda each: each.subscription_id)
    parameters = STATES | _columns(lease, ordered)
    changed = [_Changed(*row) for row in sql.rows(_UPDATE_DELIVERIES, parameters)]
    written = {row.subscription_id for row in changed}
    ours = [each for each in ordered if each.subscription_id in written]
    gone = [
        GoneSubscription(each.subscription_id, each.expires_as_of, each.code)
        for each in ours
        if each.expires_as_of is not None
    ]
    proven = [each.subscription_id for each in ours if each.proves]
    _count(batch, _changes(changed, ours), gone=gone, proven=proven)
    return bool(batch.is_halted)


def _changes(changed: Sequence[_Changed], written: Sequence[Transition]) -> _Changes:
    waiting = [row for row in changed if row.status == DeliveryStatus.WAITING]
    ended = [row for row in changed if row.status != DeliveryStatus.WAITING]
    return _Changes(
        ended=Counter((row.status, row.code) for row in ended),
        deferred=sum(row.attempts > 0 for row in waiting),
        suspects=sum(each.is_suspect for each in written),
    )


def _columns(lease: Lease, transitions: Sequence[Transition]) -> dict[str, object]:
    return {
        "notification": lease.notification_id,
        "batch": lease.batch_id,
        "ids": [each.subscription_id for each in transitions],
        "statuses": [int(each.status) for each in transitions],
        "codes": [each.code for each in transitions],
        "details": [each.detail[:200] for each in transitions],
        "due": [each.due_at for each in transitions],
        "attempts": [each.attempts for each in transitions],
        "seen_attempts": [each.delivery.attempts for each in transitions],
    }


def _count(
    batch: Batch,
    changes: _Changes,
    *,
    gone: Sequence[GoneSubscription] = (),
    proven: Sequence[UUID] = (),
) -> None:
    """Adds what one UPDATE of deliveries changed to every count, from the batch, which is locked,
    to the hourly row."""
    delivered = changes.of_status(DeliveryStatus.DELIVERED)
    bounced = changes.of_status(DeliveryStatus.BOUNCED)
    is_done = _count_batch(batch, changes, delivered=delivered, bounced=bounced)
    notification = Notification.objects.filter(pk=batch.notification_id)
    if is_done or delivered or bounced:
        notification.count_outcomes(delivered=delivered, bounced=bounced)
        _count_minute(batch, changes)
    if gone or proven:
        subscriptions_expire(channel_id=batch.channel_id, gone=gone, proven=proven)
    if is_done:
        finish_if_complete(batch.notification_id)
    if delivered or bounced:
        counter_add(batch.channel_id, delivered=delivered, bounced=bounced)
    hourly_add(
        batch.channel_id,
        Platform(batch.platform),
        delivered=delivered,
        bounced=bounced,
        deferred=changes.deferred,
    )


def _count_batch(batch: Batch, changes: _Changes, *, delivered: int, bounced: int) -> bool:
    """Renews the lease, too; True if that ended the batch."""
    ended = batch.delivered_count + delivered + batch.bounced_count + bounced
    is_done = ended == batch.recipient_count
    is_leased = batch.status == BatchStatus.LEASED
    Batch.objects.filter(pk=batch.pk).count_outcomes(
        is_done=is_done,
        lease=timedelta(seconds=settings.LEASE_SECONDS) if is_leased else None,
        delivered_count=delivered,
        bounced_count=bounced,
        refused_count=changes.ended[DeliveryStatus.BOUNCED, CREDENTIALS_REFUSED],
        suspect_count=changes.suspects,
    )
    return is_done


def _count_minute(batch: Batch, changes: _Changes) -> None:
    """How the recipients ended. The notification's lock is held, so nobody waits for these rows."""
    if not changes.ended:
        return
    by_code: Counter[str] = Counter()
    for (_, code), count in changes.ended.items():
        by_code[code] += count
    parameters = {
        "notification": batch.notification_id,
        "platform": batch.platform,
        "codes": list(by_code),
        "counts": list(by_code.values()),
    }
    sql.execute(_COUNT_MINUTE, parameters)


# In SQL, because the ORM can neither join an update with values nor return rows from it. A row is
# changed only if its attempts are those that were read: a deferral is counted once, even if it is
# repeated because the answer to its commit was lost.
_UPDATE_DELIVERIES = """
UPDATE notifications_app_delivery delivery
SET status = transition.status, code = transition.code, detail = transition.detail,
    attempts = delivery.attempts + transition.attempts, solo_attempts = 0,
    due_at = transition.due_at,
    first_attempt_at = CASE WHEN transition.attempts > 0
      THEN coalesce(delivery.first_attempt_at, statement_timestamp())
      ELSE delivery.first_attempt_at END,
    finished_at = CASE WHEN transition.status <> %(delivery_waiting)s
      THEN statement_timestamp() END
FROM unnest(%(ids)s::uuid[], %(statuses)s::smallint[], %(codes)s::text[], %(details)s::text[],
            %(due)s::timestamptz[], %(attempts)s::smallint[], %(seen_attempts)s::smallint[])
  AS transition (subscription_id, status, code, detail, due_at, attempts, seen_attempts)
WHERE delivery.notification_id = %(notification)s
  AND delivery.subscription_id = transition.subscription_id
  AND delivery.batch_id = %(batch)s AND delivery.status = %(delivery_waiting)s
  AND delivery.attempts = transition.seen_attempts
RETURNING delivery.subscription_id, delivery.status, delivery.code, transition.attempts
"""

# Both in SQL, because the ORM cannot add to a row that an INSERT finds; it only replaces values.
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

# In SQL, because an update of the ORM neither joins nor returns rows. One statement judges, sums up
# and ends, so nothing comes between.
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
  WHERE id = %(notification)s AND status = %(notification_processing)s
    AND NOT EXISTS (SELECT FROM notifications_app_plan
                    WHERE notification_id = %(notification)s AND status = %(plan_planning)s)
    AND NOT EXISTS (SELECT FROM notifications_app_batch
                    WHERE notification_id = %(notification)s AND status <> %(batch_done)s)
)
UPDATE notifications_app_notification notification
SET status = CASE WHEN sums.recipients > 0 AND sums.refused = sums.recipients
              THEN %(notification_failed)s ELSE %(notification_sent)s END,
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
