"""Reads what a worker needs to serve a batch: the message, who is due, addresses and keys."""

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from django.conf import settings

from notifications_app.delivery.types import Message
from notifications_app.models import Delivery, Notification
from notifications_app.pipeline.lease import Lease
from notifications_app.pipeline.targets import BatchTargets, message_of, read_targets
from notifications_app.pipeline.transitions import DueDelivery, Limits


@dataclass(frozen=True)
class BatchRead:
    """A batch as it was read. `due`: the recipients to serve now, in the order of serving."""

    message: Message
    limits: Limits
    due: Mapping[UUID, DueDelivery]
    targets: BatchTargets


class Halted(Exception):
    """The notification is paused or stopped, so no call may be made."""


def read(lease: Lease) -> BatchRead:
    """Raises Halted, and what `read_targets` raises if the credentials cannot be used."""
    notification = Notification.objects.get(pk=lease.notification_id)
    if notification.is_halted:
        raise Halted
    limits = _limits(notification)
    due = _due_deliveries(lease.batch_id)
    return BatchRead(
        message=message_of(notification, expires_at=lease.local(limits.deadline)),
        limits=limits,
        due={each.subscription_id: each for each in due},
        targets=read_targets(
            lease.platform,
            lease.channel_id,
            lease.notification_id,
            [each.subscription_id for each in due],
        ),
    )


def _due_deliveries(batch_id: int) -> list[DueDelivery]:
    """Those with the fewest attempts first. So a recipient that crashes workers, or that fails
    again and again while few calls may be made, does not hold up the others."""
    due = Delivery.objects.due().filter(batch_id=batch_id)
    ordered = due.order_by("solo_attempts", "attempts", "subscription_id")
    fields = ("subscription_id", "attempts", "first_attempt_at", "solo_attempts")
    return [DueDelivery(*row) for row in ordered.values_list(*fields)]


def _limits(notification: Notification) -> Limits:
    if notification.deadline_at is None:
        raise ValueError("a notification that was not started has no limits")
    return Limits(
        deadline=notification.deadline_at,
        attempts=settings.HAND_OVER_ATTEMPTS if notification.ttl else 1,
        seconds=settings.HAND_OVER_SECONDS + notification.paused_seconds,
    )
