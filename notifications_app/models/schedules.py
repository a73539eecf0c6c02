"""Schedules: sends that repeat, and what became of each of their occurrences."""

import json
from datetime import timedelta
from typing import Any, Final

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from typing_extensions import override

from channels_app import audit
from channels_app.models import Channel
from notifications_app.content.values import AUDITED_FIELDS
from notifications_app.querysets import ScheduleQuerySet
from notifications_app.recurrence import Recurrence
from pushsvc.common.ids import uuid7

MAX_SCHEDULE_NAME: Final = 100
MAX_ONCE_DAYS: Final = 365
AHEAD: Final = timedelta(seconds=30)  # of its time, an occurrence becomes a notification


class Schedule(models.Model):
    """A send that is repeated. `next_at` is null if no occurrence follows.

    `disabled_code`: why the service disabled it; empty if the owner did.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    channel = models.ForeignKey(
        Channel, on_delete=models.CASCADE, related_name="schedules", db_index=False
    )
    name = models.CharField(max_length=MAX_SCHEDULE_NAME)
    is_enabled = models.BooleanField(default=True)
    send_json = models.TextField(
        help_text="The checked send. Text, because jsonb does not keep the order of `data`."
    )
    segment_id = models.UUIDField(null=True, blank=True, help_text="Of the send.")
    recurrence: Any = models.JSONField()
    once_per_days = models.PositiveSmallIntegerField(
        null=True, blank=True, help_text="Nobody gets it twice within so many days. Null: they may."
    )
    next_at = models.DateTimeField(null=True, blank=True)
    last_notification_id = models.UUIDField(null=True, blank=True)
    disabled_code = models.CharField(max_length=64, blank=True, default="")
    changed_by = models.CharField(
        max_length=150,
        blank=True,
        default="",
        help_text="Who changed it last. Its notifications are sent in this name.",
    )
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    updated_at = models.DateTimeField(db_default=Now(), editable=False)

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

    @override
    def __str__(self) -> str:
        return self.name

    @property
    def send(self) -> dict[str, Any]:
        """The body of the send, as in the API."""
        send: dict[str, Any] = json.loads(self.send_json)
        return send

    @property
    def once(self) -> dict[str, Any] | None:
        """For Notification.once."""
        if self.once_per_days is None:
            return None
        return {"schedule_id": str(self.pk), "days": self.once_per_days}

    @property
    def recurs(self) -> Recurrence:
        return Recurrence.loaded(self.recurrence)

    @property
    def version(self) -> str:
        """A version that changes with each change by the owner."""
        return self.updated_at.isoformat()


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
