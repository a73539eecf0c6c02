"""Automations: sends that follow an event of a device or a person, and who waits for them."""

from datetime import timedelta
from typing import Any, Final, Self

from django.db import models
from django.db.models import OuterRef, Q, QuerySet
from django.db.models.functions import Now
from django.db.models.lookups import IsNull
from typing_extensions import override

from channels_app import audit
from channels_app.feeds import EventKind
from notifications_app.content.values import AUDITED_FIELDS
from notifications_app.models.repeated import RepeatedSend
from notifications_app.querysets import any_key

MAX_DELAY_MINUTES: Final = 30 * 24 * 60


class AutomationEvent(models.TextChoices):
    """What an automation follows: facts of channels_app/feeds.py, with the same names, and what
    did not happen."""

    CREATED = EventKind.CREATED.value, "A subscription becomes active"
    TAGGED = EventKind.TAGGED.value, "A device gets a tag"
    CLICKED = EventKind.CLICKED.value, "A notification is clicked"
    UNCLICKED = "notifications.unclicked", "A notification is not clicked in time"


class Recipient(models.TextChoices):
    DEVICE = "device", "The device"
    PERSON = "person", "All devices of its person"


class AutomationQuerySet(models.QuerySet["Automation"]):
    def due(self) -> Self:
        """Enabled automations that may fire and have entries that are due, or must look for some.
        None of channels that are being deleted."""
        return self.filter(
            Q(_has_due()) | Q(event=AutomationEvent.UNCLICKED),
            is_enabled=True,
            fire_at__lte=Now(),
            channel__deletion_asked_at__isnull=True,
        )

    def with_due_entries(self) -> Self:
        return self.filter(_has_due())


class Automation(RepeatedSend):
    """A send to each device or person to whom something happened. Each is contacted once, or again
    `once_per_days` later."""

    event = models.CharField(max_length=32, choices=AutomationEvent.choices)
    about: Any = models.JSONField(
        default=dict, blank=True, help_text="Of the event: the other fields of the trigger."
    )
    delay_minutes = models.PositiveIntegerField(help_text="From the event to the send.")
    recipient = models.CharField(
        max_length=6, choices=Recipient.choices, default=Recipient.DEVICE, help_text="Who gets it."
    )
    once_per_days = models.PositiveSmallIntegerField(
        null=True, blank=True, help_text="A key is contacted again after so many days. Null: never."
    )
    fire_at = models.DateTimeField(db_default=Now(), help_text="It is not fired before.")
    read_until = models.DateTimeField(
        null=True,
        help_text="Of `unclicked`: what ended before was read, and then up to the next id.",
    )
    read_notification_id = models.UUIDField(
        null=True, help_text="The notification that was read last, if it ended then."
    )
    read_after = models.UUIDField(null=True, help_text="Its recipient that was read last, if more.")

    objects = AutomationQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(event__in=AutomationEvent.values), name="automation_event"
            ),
            models.CheckConstraint(
                condition=Q(recipient__in=Recipient.values), name="automation_recipient"
            ),
        ]
        indexes = [
            models.Index(fields=["channel", "-created_at", "-id"], name="automation_list"),
            # For facts: most channels have none.
            models.Index(
                fields=["channel", "event"],
                condition=Q(is_enabled=True),
                name="automation_listening",
            ),
            models.Index(
                fields=["fire_at"], condition=Q(is_enabled=True), name="automation_firing"
            ),
            models.Index(
                fields=["channel"],
                condition=Q(is_enabled=False) & ~Q(disabled_code=""),
                name="automation_disabled",
            ),
        ]

    @property
    def trigger(self) -> dict[str, Any]:
        """As in the API."""
        return {"event": self.event, **self.about}

    @property
    def apart(self) -> timedelta | None:
        """How long after a contact there may be another. None: never."""
        return None if self.once_per_days is None else timedelta(days=self.once_per_days)


class AutomationEntry(models.Model):
    """A device that waits for an automation. Inserted by `feed_add`. No foreign keys: the
    statement that inserts the device writes it."""

    id = models.BigAutoField(primary_key=True)
    automation = models.ForeignKey(
        Automation,
        on_delete=models.DO_NOTHING,
        db_constraint=False,
        db_index=False,
        related_name="+",
    )
    subscription_id = models.UUIDField()
    due_at = models.DateTimeField()

    class Meta:
        indexes = [
            models.Index(fields=["automation", "due_at", "id"], name="automationentry_due"),
            models.Index(fields=["subscription_id", "automation"], name="automationentry_device"),
        ]

    @override
    def __str__(self) -> str:
        return f"{self.automation_id} {self.subscription_id}"


class AutomationContact(models.Model):
    """When an automation last contacted a person, or a device without one. No foreign keys, as for
    Contact."""

    pk = models.CompositePrimaryKey("automation_id", "key")
    automation = models.ForeignKey(
        Automation,
        on_delete=models.DO_NOTHING,
        db_constraint=False,
        db_index=False,
        related_name="+",
    )
    key = models.UUIDField()
    at = models.DateTimeField()
    expires_on = models.DateField(
        help_text="From this day on (UTC), it may be deleted, or it is looked at again."
    )

    class Meta:
        indexes = [
            models.Index(fields=["key"], name="automationcontact_key"),
            models.Index(fields=["expires_on"], name="automationcontact_expired"),
        ]

    @override
    def __str__(self) -> str:
        return f"{self.automation_id} {self.key}"


SKIPPED: Final = ("repeated", "condition", "gone", "platform", "stopped", "late")


class AutomationDay(models.Model):
    """What an automation did from `begins_at` until `ends_at`, a day of the channel's time zone or
    a part of one. All its targets are those of one notification. Counts are of entries."""

    pk = models.CompositePrimaryKey("automation_id", "begins_at")
    automation = models.ForeignKey(
        Automation, on_delete=models.CASCADE, related_name="days", db_index=False
    )
    begins_at = models.DateTimeField()
    ends_at = models.DateTimeField()
    notification_id = models.UUIDField(null=True, help_text="Null: nobody was to be sent anything.")
    fired = models.BigIntegerField(default=0)
    repeated = models.BigIntegerField(default=0)
    condition = models.BigIntegerField(default=0)
    gone = models.BigIntegerField(default=0)
    platform = models.BigIntegerField(default=0)
    stopped = models.BigIntegerField(default=0)
    late = models.BigIntegerField(default=0)

    class Meta:
        indexes = [
            models.Index(
                fields=["notification_id"],
                condition=Q(notification_id__isnull=False),
                name="automationday_notification",
            ),
        ]

    @override
    def __str__(self) -> str:
        return f"{self.automation_id} {self.begins_at}"

    @property
    def skipped(self) -> dict[str, int]:
        return {name: getattr(self, name) for name in SKIPPED}


def _has_due() -> IsNull:
    # Ordered, so that PostgreSQL reads the automation's part of an index. Otherwise it might read
    # all entries for an automation that has none, expecting to find one soon.
    due = AutomationEntry.objects.filter(automation=OuterRef("pk"), due_at__lte=Now())
    return IsNull(any_key(due.order_by("due_at")), False)


def automation_of(notification_id: Any) -> "QuerySet[Automation]":
    """The automation that made the notification, if one did."""
    return Automation.objects.filter(days__notification_id=notification_id)


audit.SHOWN["notifications_app.automation"] = (
    "name",
    "is_enabled",
    "trigger",
    "delay_minutes",
    "recipient",
    "once_per_days",
    "disabled_code",
    *AUDITED_FIELDS,
    "target_platforms",
    "segment_id",
    "category",
    "rule",
    "template_id",
)
