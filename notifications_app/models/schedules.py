"""Schedules: sends that repeat, and what became of each of their occurrences."""

from datetime import timedelta
from typing import Any, Final

from django.db import models
from django.db.models import Q
from typing_extensions import override

from channels_app import audit
from notifications_app.content.values import AUDITED_FIELDS
from notifications_app.models.repeated import RepeatedSend
from notifications_app.querysets import ScheduleQuerySet
from notifications_app.recurrence import Recurrence

MAX_ONCE_DAYS: Final = 365
AHEAD: Final = timedelta(seconds=30)  # of its time, an occurrence becomes a notification


class Schedule(RepeatedSend):
    """A send that is repeated. `next_at` is null if no occurrence follows."""

    recurrence: Any = models.JSONField()
    once_per_days = models.PositiveSmallIntegerField(
        null=True, blank=True, help_text="Nobody gets it twice within so many days. Null: they may."
    )
    next_at = models.DateTimeField(null=True, blank=True)
    last_notification_id = models.UUIDField(null=True, blank=True)

    objects = ScheduleQuerySet.as_manager()

    class Meta:
        indexes = [
            models.Index(fields=["channel", "-created_at", "-id"], name="schedule_list"),
            models.Index(
                fields=["next_at"],
                condition=Q(is_enabled=True, next_at__isnull=False),
                name="schedule_due",
            ),
            models.Index(
                fields=["channel"],
                condition=Q(is_enabled=False) & ~Q(disabled_code=""),
                name="schedule_disabled",
            ),
        ]

    @property
    def once(self) -> dict[str, Any] | None:
        """For Notification.once."""
        if self.once_per_days is None:
            return None
        return {"schedule_id": str(self.pk), "days": self.once_per_days}

    @property
    def recurs(self) -> Recurrence:
        return Recurrence.loaded(self.recurrence)


class OccurrenceCode(models.TextChoices):
    """What became of an occurrence. One that was refused has the code of the error instead."""

    SENT = "sent", "sent"
    SKIPPED = "skipped", "skipped by staff"
    SKIPPED_LATE = "skipped_late", "missed"


class Occurrence(models.Model):
    """A moment of a schedule: it was sent, skipped or refused. There is one row for each moment, so
    there is at most one notification."""

    pk = models.CompositePrimaryKey("schedule_id", "occurs_at")
    schedule = models.ForeignKey(
        Schedule, on_delete=models.CASCADE, related_name="occurrences", db_index=False
    )
    occurs_at = models.DateTimeField()
    notification_id = models.UUIDField(null=True)
    code = models.CharField(max_length=64)

    class Meta:
        indexes = [
            models.Index(
                fields=["notification_id"],
                condition=Q(notification_id__isnull=False),
                name="occurrence_notification",
            ),
        ]

    @override
    def __str__(self) -> str:
        return f"{self.schedule_id} {self.occurs_at}"


audit.SHOWN["notifications_app.schedule"] = (
    "name",
    "is_enabled",
    "recurrence",
    "once_per_days",
    "disabled_code",
    *AUDITED_FIELDS,
    "target_platforms",
    "segment_id",
    "category",
    "rule",
    "template_id",
)
