"""States of a notification, a plan, a batch and a delivery. docs/states.md draws them."""

from typing import Final

from django.db import models


class NotificationStatus(models.TextChoices):
    PENDING = "pending"
    PROCESSING = "processing"
    SENT = "sent"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_terminal(self) -> bool:
        return not NOTIFICATION_TRANSITIONS[self]


NOTIFICATION_TRANSITIONS: dict[NotificationStatus, frozenset[NotificationStatus]] = {
    NotificationStatus.PENDING: frozenset(
        {NotificationStatus.PROCESSING, NotificationStatus.CANCELLED}
    ),
    NotificationStatus.PROCESSING: frozenset({NotificationStatus.SENT, NotificationStatus.FAILED}),
    NotificationStatus.SENT: frozenset(),
    NotificationStatus.FAILED: frozenset(),
    NotificationStatus.CANCELLED: frozenset(),
}


class PlanStatus(models.TextChoices):
    PLANNING = "planning"  # windows of subscriptions still to be read
    DELIVERING = "delivering"  # every recipient has its row
    SETTLING = "settling"  # every recipient has its outcome; held expiries are still to be judged
    DONE = "done"


class BatchStatus(models.TextChoices):
    READY = "ready"  # to be claimed from `due_at`
    LEASED = "leased"  # a worker's until `lease_until`
    PARKED = "parked"  # waits for credentials that the push service accepts
    DONE = "done"


# A batch that broke so often, in a row, is served one recipient at a time.
CAREFUL_AFTER_LAPSES: Final = 3


class DeliveryStatus(models.IntegerChoices):
    """Small integers: there is a row for every recipient of every notification."""

    WAITING = 0
    DELIVERED = 1
    BOUNCED = 2
