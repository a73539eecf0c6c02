"""Unfinished work of the whole installation, for /metrics. No query reads finished work."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from django.db.models import Count, Min, Q
from django.db.models.functions import Now

from notifications_app.models import Batch, Notification
from notifications_app.states import BatchStatus, NotificationStatus


@dataclass(frozen=True, slots=True)
class OpenNotifications:
    """Counts by state, and how long the oldest due notification has waited for its start."""

    scheduled: int
    due: int
    processing: int
    start_lateness: timedelta


@dataclass(frozen=True, slots=True)
class OpenBatches:
    """`lateness`: how long ago the first of them became due; negative if none is due."""

    count: int
    lateness: timedelta


def open_notifications() -> OpenNotifications:
    is_due = Q(scheduled_at__lte=Now())
    pending = Notification.objects.filter(status=NotificationStatus.PENDING).aggregate(
        scheduled=Count("pk", filter=~is_due),
        due=Count("pk", filter=is_due),
        lateness=Now() - Min("scheduled_at", filter=is_due),
    )
    return OpenNotifications(
        scheduled=pending["scheduled"],
        due=pending["due"],
        processing=Notification.objects.filter(status=NotificationStatus.PROCESSING).count(),
        start_lateness=pending["lateness"] or timedelta(),
    )


def open_batches() -> Mapping[tuple[str, str], OpenBatches]:
    """By platform and status; a pair without batches is missing."""
    groups = Batch.objects.exclude(status=BatchStatus.DONE).values("platform", "status")
    counted = groups.annotate(count=Count("pk"), lateness=Now() - Min("due_at"))
    return {
        (row["platform"], row["status"]): OpenBatches(row["count"], row["lateness"])
        for row in counted
    }
