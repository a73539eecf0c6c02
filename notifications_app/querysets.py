"""Named statements on notifications, plans, batches and deliveries.

Each is one conditional statement. An update returns how many rows it changed, so its caller
sees whether the rows were still as expected. SQL that the ORM cannot write is in the modules that
use it.
"""

from collections import defaultdict
from collections.abc import Iterable
from datetime import timedelta
from functools import reduce
from operator import or_
from typing import Any, Protocol, Self, TypeVar

from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import (
    BooleanField,
    Case,
    DurationField,
    Exists,
    ExpressionWrapper,
    F,
    Func,
    Min,
    Model,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    Value,
    When,
)
from django.db.models.functions import Coalesce, Greatest, Least, Now, Power
from django.db.models.lookups import IsNull
from typing_extensions import override

from notifications_app.states import (
    CAREFUL_AFTER_LEASE_LOSSES,
    IDLE,
    BatchStatus,
    DeliveryStatus,
    NotificationStatus,
    PlanStatus,
    State,
    previous_states,
)

Row = TypeVar("Row", bound=Model)

# Counts of a notification that add shares of its minutes: notifications_app/models/running.py.
RUNNING_COUNTS = (
    "delivered_count",
    "bounced_count",
    "stopped_count",
    "opted_out_count",
    "expired_count",
)
MOST_LEASE_LOSSES = 100  # long before the column is full
_LONGEST_BREAK = 5  # as a power of two seconds


class Leased(Protocol):
    """A lease of the row with this id. It ends when the row has another lease number."""

    @property
    def row_id(self) -> int: ...

    @property
    def number(self) -> int: ...


def any_key(rows: QuerySet[Any]) -> Subquery:
    """The key of one of `rows`, which refer to an outer row; null if there are none. Looked up for
    each outer row. With Exists, PostgreSQL may compare each outer row with all of `rows` instead,
    if its statistics say that these are few."""
    return Subquery(rows.values("pk")[:1])


def is_in(field: str, found: QuerySet[Any]) -> Func:
    """As `IN`, but PostgreSQL finds the values first, and once. For `IN` it may search them again
    for each row, while it believes that there are few. A search that locks a limited number of rows
    then finds others each time."""
    return Func(
        F(field),
        ArraySubquery(found),
        template="%(expressions)s)",
        arg_joiner=" = ANY (",
        output_field=BooleanField(),
    )


class StateQuerySet(QuerySet[Row]):
    """Rows that have a state."""

    def become(self, state: State, **values: Any) -> int:
        """Changes the state of rows that may become `state`, and other columns. Returns how
        many."""
        return self.filter(status__in=previous_states(state)).update(status=state, **values)

    def all_locked(self) -> Self:
        """Selects the rows and locks them in the order of their keys, as all writers do. Inserts
        that refer to a row need not wait."""
        return self.order_by("pk").select_for_update(no_key=True, of=("self",))

    def lock_all(self) -> list[Any]:
        """Locks the rows as `all_locked` does; returns their keys."""
        return [row.pk for row in self.all_locked().only("pk")]

    def locked(self) -> Row | None:
        """Locks and returns the only row; None if there is none."""
        return next(iter(self.all_locked()), None)


class NotificationQuerySet(StateQuerySet[Row]):
    @override
    def all_locked(self) -> Self:
        """Without the counts that shares are added to. After a wait for the lock, PostgreSQL would
        read the new row with the old shares. They are read when they are used."""
        return super().all_locked().defer(*RUNNING_COUNTS)

    def due(self) -> Self:
        return self.filter(
            status=NotificationStatus.PENDING, scheduled_at__lte=Now(), paused_at__isnull=True
        )

    def due_within(self, ahead: timedelta) -> Self:
        """Notifications that are not due yet, but will be within `ahead`."""
        coming = Q(scheduled_at__gt=Now(), scheduled_at__lte=Now() + ahead)
        return self.filter(coming, status=NotificationStatus.PENDING, paused_at__isnull=True)

    def paused_for(self, age: timedelta) -> Self:
        return self.filter(status=NotificationStatus.PROCESSING, paused_at__lt=Now() - age)

    def deciding(self) -> Self:
        """Notifications whose test is to be decided by itself now."""
        return self.filter(
            status=NotificationStatus.PROCESSING,
            decides_at__lte=Now(),
            paused_at__isnull=True,
            stopped_at__isnull=True,
        )

    def complete(self, *, plans: QuerySet[Any], batches: QuerySet[Any]) -> Self:
        """Notifications in `processing` without a plan in `planning` and without open batches."""
        own_plans = plans.filter(notification=OuterRef("pk"), status=PlanStatus.PLANNING)
        own_batches = batches.filter(notification=OuterRef("pk"), finished_at__isnull=True)
        return self.filter(
            IsNull(any_key(own_plans), True),
            IsNull(any_key(own_batches), True),
            status=NotificationStatus.PROCESSING,
        )


class PlanQuerySet(StateQuerySet[Row]):
    def leased_by(self, *leases: Leased) -> Self:
        """Plans in `planning` whose newest lease is one of these."""
        return self.filter(_newest_of(leases), status=PlanStatus.PLANNING)

    def plannable(self) -> Self:
        """Plans with windows left and without a lease."""
        unleased = Q(lease_until__isnull=True) | Q(lease_until__lt=Now())
        found = self.filter(status=PlanStatus.PLANNING, due_at__lte=Now(), recipient_count__gte=0)
        return found.unhalted().filter(unleased)

    def unhalted(self) -> Self:
        """Those whose notification is neither paused nor stopped."""
        return self.filter(halted_at__isnull=True)

    def without_keepers(self) -> Self:
        """Those that have recipients or may get some."""
        return self.exclude(driver="slice", part=0)

    def hand_back(self) -> int:
        """Ends the leases. Plans of which no window was written stay new. Otherwise newer plans
        would be planned before them."""
        sliced_at = Case(When(cursor__isnull=True, then=None), default="sliced_at")
        return self.update(lease_until=None, sliced_at=sliced_at)

    def hand_back_failed(self, *, wait: timedelta) -> int:
        """Ends the leases of failed plans, which may be claimed again after `wait`. Without a wait
        `due_at` stays, because reports of late batches read it."""
        due = {"due_at": Now() + wait} if wait else {}
        return self.update(lease_until=None, **due)


class BatchQuerySet(StateQuerySet[Row]):
    def open(self) -> Self:
        """Those that are not done. Uses the condition of the index `batch_open`."""
        return self.filter(finished_at__isnull=True)

    def leased(self) -> Self:
        return self.filter(status=BatchStatus.LEASED)

    def leased_by(self, *leases: Leased) -> Self:
        """Leased batches whose newest lease is one of these."""
        return self.leased().filter(_newest_of(leases))

    def unhalted(self) -> Self:
        """Those whose notification is neither paused nor stopped."""
        return self.filter(plan__halted_at__isnull=True)

    def idle(self) -> Self:
        """Waiting batches without a lease."""
        return self.filter(status__in=IDLE)

    def parked(self) -> Self:
        return self.filter(status=BatchStatus.PARKED)

    def since_parked(self) -> Self:
        """Waiting batches that are parked, or were parked and not handed back since."""
        return self.idle().filter(parked_at__isnull=False)

    def prolong_parking(self) -> int:
        """Moves `parked_at` by the duration of a pause that ends now. Returns how many."""
        parked = self.since_parked().filter(plan__halted_at__isnull=False)
        begun = Greatest(
            "parked_at", Subquery(parked.filter(pk=OuterRef("pk")).values("plan__halted_at"))
        )
        return parked.update(parked_at=F("parked_at") + (Now() - begun))

    def park(self) -> int:
        """Sets the batches aside. Those that were parked before and not handed back since keep the
        time, so that tries of a paused platform prolong no recipient's wait."""
        parked_at = Coalesce("parked_at", Now())
        return self.become(BatchStatus.PARKED, lease_until=None, parked_at=parked_at)

    def hand_back(self, waiting: QuerySet[Any], *, finished_pass: bool, wait: timedelta) -> int:
        """Ends the leases. Each batch is due when the first of its `waiting` deliveries is, but not
        before `wait` is over. A finished pass resets the lease losses to zero."""
        own = waiting.filter(batch_id=OuterRef("pk")).order_by().values("batch_id")
        first_due = Subquery(own.values(first=Min(Coalesce("due_at", Now()))))
        return self.become(
            BatchStatus.READY,
            lease_until=None,
            lease_losses=0 if finished_pass else F("lease_losses"),
            parked_at=None,
            due_at=Greatest(Now() + wait, first_due),
        )

    def hand_back_failed(self, *, careful: bool) -> int:
        """Ends the leases after a broken pass, which counts as a lease loss. The batches wait 1 s,
        twice as long after each further loss, at most 32 s. `careful`: the next pass calls
        recipients one by one."""
        return self.become(
            BatchStatus.READY,
            lease_until=None,
            lease_losses=_one_more_loss(careful=careful),
            due_at=_after_a_break(),
        )

    def postpone_bounces(self) -> int:
        """Postpones bounces of an idle batch with rows that the database refuses to change, by the
        same wait. Counts as a lease loss, after which recipients are called one by one."""
        return self.update(
            lease_losses=_one_more_loss(careful=True),
            due_at=_after_a_break(),
            bounce_again_at=_after_a_break(),
        )


class DeliveryQuerySet(StateQuerySet[Row]):
    def waiting(self) -> Self:
        return self.filter(status=DeliveryStatus.WAITING)

    def due(self) -> Self:
        at_once = Q(due_at__isnull=True)
        return self.waiting().filter(at_once | Q(due_at__lte=Now()))

    def bounce(self, code: str) -> int:
        """Bounces recipients without a call."""
        return self.become(DeliveryStatus.BOUNCED, code=code, due_at=None, finished_at=Now())

    def begin_alone(self, batch: QuerySet[Any]) -> int:
        """Counts a solo attempt, if `batch` still selects a batch."""
        return self.filter(Exists(batch)).update(solo_attempts=F("solo_attempts") + 1)


IDEMPOTENCY_KEPT = timedelta(hours=24)


class ScheduleQuerySet(QuerySet[Row]):
    def due_within(self, ahead: timedelta) -> Self:
        """Enabled schedules with an occurrence that is due, or will be within `ahead`. None of
        channels that are being deleted."""
        due = self.filter(is_enabled=True, next_at__lte=Now() + ahead)
        return due.filter(channel__deletion_asked_at__isnull=True)


class NewsfeedQuerySet(QuerySet[Row]):
    def working(self) -> Self:
        """Enabled newsfeeds. None of channels that are being deleted."""
        return self.filter(is_enabled=True, channel__deletion_asked_at__isnull=True)

    def due(self) -> Self:
        """Those that can be checked now."""
        is_free = Q(lease_until__isnull=True) | Q(lease_until__lt=Now())
        return self.working().filter(is_free, next_at__lte=Now(), found__isnull=True)

    def found_some(self) -> Self:
        """Those with entries that are to be sent."""
        return self.working().filter(found__isnull=False)


class IdempotencyRecordQuerySet(QuerySet[Row]):
    def expired(self) -> Self:
        return self.filter(created_at__lte=Now() - IDEMPOTENCY_KEPT)

    def purge(self, limit: int) -> int:
        """Deletes at most `limit` expired responses; returns how many."""
        # A record that is locked is being replaced, because its key is in use again.
        old = self.expired().select_for_update(skip_locked=True)
        ids = old.order_by("created_at").values("pk")[:limit]
        deleted, _ = self.filter(is_in("pk", ids)).delete()
        return deleted


def _newest_of(leases: Iterable[Leased]) -> Q:
    """Matches rows whose newest lease is one of these. Grouped, because most have the same
    number."""
    ids_by_number = defaultdict(list)
    for lease in leases:
        ids_by_number[lease.number].append(lease.row_id)
    held = (Q(lease_number=number, pk__in=ids) for number, ids in ids_by_number.items())
    return reduce(or_, held, Q(pk__in=[]))


def _one_more_loss(*, careful: bool) -> Least:
    least = CAREFUL_AFTER_LEASE_LOSSES if careful else 0
    return Least(Greatest(F("lease_losses") + 1, Value(least)), Value(MOST_LEASE_LOSSES))


def _after_a_break() -> Any:
    seconds = Power(Value(2), Least(F("lease_losses"), Value(_LONGEST_BREAK)))
    wait = ExpressionWrapper(seconds * Value(timedelta(seconds=1)), output_field=DurationField())
    return Now() + wait
