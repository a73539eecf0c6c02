"""The states of a notification, a plan, a batch and a delivery, and the changes between them.

docs/states.md has diagrams. `querysets.become` allows only these changes. SQL takes the states from
STATES.
"""

from collections.abc import Mapping
from typing import Any, Final

from django.db import models

from pushsvc.common.texts import later


class NotificationStatus(models.TextChoices):
    PENDING = "pending", later("Pending")
    PROCESSING = "processing", later("Processing")
    SENT = "sent", later("Sent")
    FAILED = "failed", later("Failed")
    CANCELLED = "cancelled", later("Cancelled")


class PlanStatus(models.TextChoices):
    PLANNING = "planning"  # windows of subscriptions are still to be read
    DELIVERING = "delivering"  # every recipient has its row
    SETTLING = "settling"  # every recipient has its outcome; held expiries are to be decided
    DONE = "done"


class BatchStatus(models.TextChoices):
    READY = "ready"  # may be claimed from `due_at` on
    LEASED = "leased"  # belongs to a worker until `lease_until`
    PARKED = "parked"  # waits until the channel's credentials are accepted or replaced
    DONE = "done"


class DeliveryStatus(models.IntegerChoices):
    """Small integers, because there is a row for every recipient of every notification."""

    WAITING = 0
    DELIVERED = 1
    BOUNCED = 2


State = NotificationStatus | PlanStatus | BatchStatus | DeliveryStatus

_NEXT: Final[Mapping[type[State], Mapping[State, frozenset[State]]]] = {
    NotificationStatus: {
        NotificationStatus.PENDING: frozenset(
            {NotificationStatus.PROCESSING, NotificationStatus.CANCELLED}
        ),
        NotificationStatus.PROCESSING: frozenset(
            {NotificationStatus.SENT, NotificationStatus.FAILED, NotificationStatus.CANCELLED}
        ),
    },
    PlanStatus: {
        PlanStatus.PLANNING: frozenset({PlanStatus.DELIVERING}),
        PlanStatus.DELIVERING: frozenset({PlanStatus.SETTLING, PlanStatus.DONE}),
        PlanStatus.SETTLING: frozenset({PlanStatus.DONE}),
    },
    BatchStatus: {
        BatchStatus.READY: frozenset({BatchStatus.LEASED, BatchStatus.DONE}),
        BatchStatus.LEASED: frozenset({BatchStatus.READY, BatchStatus.PARKED, BatchStatus.DONE}),
        BatchStatus.PARKED: frozenset({BatchStatus.READY, BatchStatus.LEASED, BatchStatus.DONE}),
    },
    DeliveryStatus: {
        DeliveryStatus.WAITING: frozenset({DeliveryStatus.DELIVERED, DeliveryStatus.BOUNCED}),
    },
}


def next_states(state: State) -> frozenset[State]:
    """The states that a row in this state may become; empty if the state is final."""
    return _NEXT[type(state)].get(state, frozenset())


def previous_states(state: State) -> list[State]:
    """The states from which a row may become this one."""
    return [before for before, after in _NEXT[type(state)].items() if state in after]


# The codes of bounces that figures tell apart from the others, because no push service refused the
# message. The columns that count them have the same names.
APART: Final = ("stopped", "opted_out", "expired")

UNFINISHED: Final = (NotificationStatus.PENDING, NotificationStatus.PROCESSING)
IDLE: Final = (BatchStatus.READY, BatchStatus.PARKED)  # waiting, without a lease

# Parameters of statements in SQL: `%(batch_ready)s`, `%(delivery_waiting)s` and so on.
STATES: Final[dict[str, Any]] = {
    f"{row}_{state.name.lower()}": state.value
    for row, states in (
        ("notification", NotificationStatus),
        ("plan", PlanStatus),
        ("batch", BatchStatus),
        ("delivery", DeliveryStatus),
    )
    for state in states
}

# After this many lease losses in a row, recipients are called one by one.
CAREFUL_AFTER_LEASE_LOSSES: Final = 3
