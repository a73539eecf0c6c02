"""The only writer of transitions.

`record` is one transaction, or several if the database refuses rows. It is safe to repeat, because
it counts only rows that its UPDATE changed. It locks batches, then deliveries; `counting` locks the
rest, in the order of docs/architecture.md.
"""

import time
from collections import Counter
from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any
from uuid import UUID

import structlog
from django.db import (
    DatabaseError,
    InterfaceError,
    OperationalError,
    ProgrammingError,
    transaction,
)
from django.db.models.functions import Now

from notifications_app.models import Batch, Delivery, Notification
from notifications_app.pipeline import metering
from notifications_app.pipeline.batches import bounce_code
from notifications_app.pipeline.counting import BatchChanges, count, end_complete
from notifications_app.pipeline.lease import Lease, LeaseLost, Renewal
from notifications_app.pipeline.transitions import (
    CREDENTIALS_REFUSED,
    INTERNAL_ERROR,
    QUIET_HOURS,
    Transition,
    bounce,
)
from notifications_app.states import STATES, DeliveryStatus
from pushsvc.common.store import sql
from subscriptions_app.devices.services import GoneSubscription

logger = structlog.stdlib.get_logger(__name__)

_MOST_REFUSED = 20


class RowsRefused(Exception):
    """The database refuses to change some recipients' rows. Everything else was written."""


def record(leases: Sequence[Lease], transitions: Sequence[Transition]) -> Renewal:
    """Writes transitions for the leased batches, which must be of one channel and platform. Renews
    the leases. Ends each batch that has no waiting recipients left. Safe to repeat.

    Writes nothing for a batch that this worker no longer has, and everything for the others. Raises
    LeaseLost if it has no batch any more. If the database refuses a transition (a text that it
    cannot store, a constraint), the recipient is written as `internal_error`, and the others are
    written as they are. If it refuses that too, the batch is in the renewal's
    `with_refused_rows`.
    """
    flush = _Flush(leases)
    unwritable = sql.write_apart(transitions, flush.write)
    if not unwritable:
        return flush.renewal
    bounces = [
        bounce(each.delivery, INTERNAL_ERROR, attempts=each.attempts) for each, _ in unwritable
    ]
    refused = sql.write_apart(bounces, flush.write, most=_MOST_REFUSED)
    refused_rows = {transition.delivery for transition, _ in refused}
    for transition, error in unwritable:
        if transition.delivery not in refused_rows:
            subscription_id = transition.subscription_id
            logger.error(
                "outcome.unwritable", subscription=subscription_id, error=_first_line(error)
            )
    if not refused:
        return flush.renewal
    _log_refused([(transition.subscription_id, error) for transition, error in refused])
    batch_ids = {transition.delivery.batch_id for transition, _ in refused}
    return replace(flush.renewal, with_refused_rows=batch_ids)


class _Flush:
    """Normally one transaction. Several if the database refuses rows, which are then written
    separately."""

    def __init__(self, leases: Sequence[Lease]) -> None:
        self._lease = leases[0]  # any: they share channel, platform, push service and clock
        self._open = {lease.batch_id: lease for lease in leases}
        self.renewal = Renewal()

    def write(self, transitions: Sequence[Transition]) -> None:
        began = time.monotonic()
        try:
            with sql.brief_transaction():
                batches = _locked(self._open.values())
                if not batches and not self.renewal.done:
                    raise LeaseLost
                _note_sharing(batches.values())
                done, written = _record(batches, transitions)
        except ProgrammingError as error:
            if not sql.is_about_tables(error):  # such as the refusal of a row by a trigger
                raise
            raise OperationalError(_first_line(error)) from error.__cause__
        metering.flushed(self._lease, written, seconds=time.monotonic() - began)
        self.renewal = Renewal(
            done=self.renewal.done | done,
            lost=self.renewal.lost | (self._open.keys() - batches.keys()),
            is_halted=any(batch.is_halted for batch in batches.values()),
            is_written=True,
        )
        self._open = {pk: self._open[pk] for pk in batches.keys() - done}


def bounce_overdue(batch_id: int, code: str) -> None:
    """Bounces all waiting recipients of a batch of `batches.overdue` with its code. Of a batch that
    was parked for too long, those that wait for the end of their quiet hours go on waiting. Does
    nothing if the batch is not overdue any more, or overdue for another reason.

    If the database refuses some rows, bounces the others and raises RowsRefused. Then the batch is
    not overdue again for a while.
    """

    def write(part: Sequence[UUID]) -> None:
        with sql.brief_transaction():
            _bounce(batch_id, code, part)

    waiting = Delivery.objects.waiting().filter(batch_id=batch_id)
    if code == CREDENTIALS_REFUSED:
        waiting = waiting.exclude(code=QUIET_HOURS, due_at__gt=Now())
    refused = sql.write_apart(
        list(waiting.values_list("subscription_id", flat=True)), write, most=_MOST_REFUSED
    )
    if refused:
        Batch.objects.idle().filter(pk=batch_id).postpone_bounces()
        _log_refused(refused)
        raise RowsRefused
    if code == CREDENTIALS_REFUSED:
        own, left = Batch.objects.parked().filter(pk=batch_id), Delivery.objects.waiting()
        own.hand_back(left, finished_pass=False, wait=timedelta())


def begin_alone(lease: Lease, subscription_id: UUID) -> None:
    """Records a solo attempt before its call. Raises LeaseLost, or RowsRefused if the database
    refuses to change the row: it would also refuse the outcome."""
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
        _log_refused([(subscription_id, error)])
        raise RowsRefused from error


def finish_forgotten(limit: int = 100) -> None:
    """Ends complete notifications. Normally there are none, because whoever ends the last batch or
    plan ends the notification."""
    end_complete(Notification.objects.all(), limit)


def _log_refused(refused: Sequence[tuple[UUID, Exception]]) -> None:
    ids = [str(id_) for id_, _ in refused[:_MOST_REFUSED]]
    logger.error("outcome.refused", subscriptions=ids, error=_first_line(refused[-1][1]))


def _first_line(error: Exception) -> str:
    """The first line of the database's message. Further lines may quote the row."""
    return str(error).partition("\n")[0]


def _bounce(batch_id: int, code: str, ids: Sequence[UUID]) -> None:
    batch = Batch.objects.idle().filter(pk=batch_id).select_related("plan").locked()
    # Checked again, because another tick may have made a parked batch ready meanwhile.
    if batch is None or bounce_code(batch_id) != code:
        return
    waiting = Delivery.objects.waiting().filter(batch_id=batch_id, subscription_id__in=ids)
    bounced = waiting.bounce(code)
    ended = Counter({(DeliveryStatus.BOUNCED.value, code): bounced})
    count([BatchChanges(batch, ended, is_test=batch.plan.is_test)])
    transaction.on_commit(partial(metering.bounced, batch, bounced))


def _locked(leases: Collection[Lease]) -> dict[int, Any]:
    """The batches that these leases still hold, by id, locked in the order of their ids."""
    ids, numbers = ([getattr(each, name) for each in leases] for name in ("batch_id", "number"))
    parameters = {"ids": ids, "numbers": numbers}
    found = {}
    for row in sql.rows(LOCK, parameters, is_prepared=sql.are_few(leases)):
        *own, is_halted, is_test, is_begun, open_parts = row
        batch: Any = sql.read_row(Batch, _LOCKED_FIELDS, own)
        batch.is_halted, batch.is_test, batch.is_begun = is_halted, is_test, is_begun
        batch.open_parts = open_parts
        found[batch.pk] = batch
    return found


def _note_sharing(batches: Collection[Any]) -> None:
    """Sets `is_shared` of the locked batches: whether their notification has others that are open,
    or parts that are being planned."""
    own = Counter(batch.notification_id for batch in batches)
    for batch in batches:
        batch.is_shared = batch.open_parts > own[batch.notification_id]


def _record(
    batches: Mapping[int, Batch], transitions: Sequence[Transition]
) -> tuple[Set[int], Sequence[Transition]]:
    """Writes the transitions of these locked batches, and skips others. Returns ids of the batches
    that it ended, and the transitions that it wrote."""
    if not batches:
        return frozenset(), ()
    own = [each for each in transitions if each.delivery.batch_id in batches]
    ordered = sorted(own, key=_key)
    columns = _columns(batches, ordered)
    changed = sql.rows(UPDATE_DELIVERIES, columns, is_prepared=sql.are_few(ordered))
    ours = [ordered[place - 1] for (place,) in sorted(changed)]
    gone = [
        GoneSubscription(each.subscription_id, each.expires_as_of, each.code)
        for each in ours
        if each.expires_as_of is not None
    ]
    # The flush may contain two notifications for one device: one accepted, the other gone.
    proven = {each.subscription_id for each in ours if each.proves} - {each.id for each in gone}
    done = count(_changes(batches, ours), gone=gone, proven=sorted(proven))
    return done, ours


def _changes(batches: Mapping[int, Any], written: Sequence[Transition]) -> list[BatchChanges]:
    """The changes of every batch. Batches without a change are included, because their leases are
    renewed too."""
    ended: dict[int, Counter[tuple[int, str]]] = {pk: Counter() for pk in batches}
    deferred: Counter[int] = Counter()
    for each in written:
        if each.status == DeliveryStatus.WAITING:
            deferred[each.delivery.batch_id] += each.attempts > 0
        else:
            ended[each.delivery.batch_id][each.status, each.code] += 1
    suspects = Counter(each.delivery.batch_id for each in written if each.is_suspect)
    return [
        BatchChanges(
            batch,
            ended[pk],
            deferred[pk],
            suspects[pk],
            is_test=batch.is_test,
            is_shared=batch.is_shared,
            is_begun=batch.is_begun,
        )
        for pk, batch in batches.items()
    ]


def _key(transition: Transition) -> tuple[int, int]:
    """Sorts as the database does. Python compares numbers ten times as fast as UUIDs."""
    return transition.delivery.batch_id, transition.delivery.subscription_id.int


def _columns(batches: Mapping[int, Batch], transitions: Sequence[Transition]) -> dict[str, object]:
    batch_ids = [each.delivery.batch_id for each in transitions]
    notification_ids = {pk: batch.notification_id.hex for pk, batch in batches.items()}
    return {
        "notifications": sql.array(notification_ids[pk] for pk in batch_ids),
        "batches": sql.array(map(str, batch_ids)),
        "ids": sql.array(each.subscription_id.hex for each in transitions),
        "statuses": sql.array(str(int(each.status)) for each in transitions),
        # NULL for most: psycopg quotes empty texts one by one.
        "codes": [each.code or None for each in transitions],
        "details": [each.detail[:200] or None for each in transitions],
        "due": [each.due_at for each in transitions],
        "attempts": sql.array(str(each.attempts) for each in transitions),
        "seen_attempts": sql.array(str(each.delivery.attempts) for each in transitions),
    }


_LOCKED_NAMES = {"id", "notification", "channel", "platform", "push_service"}
_LOCKED_NAMES |= {"recipient_count", "delivered_count", "bounced_count"}
_LOCKED_FIELDS = [each for each in Batch._meta.concrete_fields if each.name in _LOCKED_NAMES]

# In SQL, because the ORM needs as long to compile the statement as the database to run it.
LOCK = sql.with_constants(
    f"""
SELECT {", ".join(f"batch.{each.column}" for each in _LOCKED_FIELDS)},
  notification.paused_at IS NOT NULL OR notification.stopped_at IS NOT NULL AS is_halted,
  notification.only_subscription_id IS NOT NULL AS is_test,
  notification.first_hand_over_at IS NOT NULL AS is_begun,
  (SELECT count(*) FROM (
    SELECT FROM notifications_app_batch
    WHERE notification_id = batch.notification_id AND finished_at IS NULL
    LIMIT cardinality(%(ids)s::bigint[]) + 1) AS open)
  + (SELECT count(*) FROM notifications_app_plan
     WHERE notification_id = batch.notification_id AND status = %(plan_planning)s) AS open_parts
FROM notifications_app_batch batch
JOIN unnest(%(ids)s::bigint[], %(numbers)s::int[]) AS lease (batch_id, number)
  ON lease.batch_id = batch.id AND lease.number = batch.lease_number
JOIN notifications_app_notification notification ON notification.id = batch.notification_id
WHERE batch.status = %(batch_leased)s
ORDER BY batch.id
FOR NO KEY UPDATE OF batch
""",  # noqa: S608 - names of our own
    STATES,
)

# In SQL, because the ORM can neither join an update with values nor return rows from it. A row is
# changed only if its attempts are those that were read. So a deferral is counted once, even if it
# is repeated because the response to its commit was lost. Batches come from a subquery, and CASE
# keeps the status out of their scan: PostgreSQL would otherwise expect one waiting row instead of a
# thousand, and compare each with each transition, which takes ten to thirty times as long. CASE
# also keeps the batch out of the join: beside a million rows, PostgreSQL merges by it alone.
UPDATE_DELIVERIES = sql.with_constants(
    """
UPDATE notifications_app_delivery delivery
SET status = transition.status, code = coalesce(transition.code, ''),
    detail = coalesce(transition.detail, ''),
    attempts = delivery.attempts + transition.attempts, solo_attempts = 0,
    due_at = transition.due_at,
    first_attempt_at = CASE WHEN transition.attempts < 0 THEN NULL
      WHEN transition.attempts > 0
        AND transition.status = %(delivery_waiting)s
      THEN coalesce(delivery.first_attempt_at, statement_timestamp())
      ELSE delivery.first_attempt_at END,
    finished_at = CASE WHEN transition.status <> %(delivery_waiting)s
      THEN statement_timestamp() END
FROM unnest(%(notifications)s::uuid[], %(batches)s::bigint[], %(ids)s::uuid[],
            %(statuses)s::smallint[], %(codes)s::text[], %(details)s::text[],
            %(due)s::timestamptz[], %(attempts)s::smallint[], %(seen_attempts)s::smallint[])
  WITH ORDINALITY
  AS transition (notification_id, batch_id, subscription_id, status, code, detail, due_at, attempts,
                 seen_attempts, place)
WHERE delivery.batch_id = ANY(ARRAY(SELECT unnest(%(batches)s::bigint[])))
  AND CASE WHEN transition.place > 0
      THEN delivery.status = %(delivery_waiting)s AND delivery.batch_id = transition.batch_id END
  AND delivery.notification_id = transition.notification_id
  AND delivery.subscription_id = transition.subscription_id
  AND delivery.attempts = transition.seen_attempts
RETURNING transition.place
""",
    STATES,
)
