"""The work of a notification: plans, batches and deliveries."""

from typing import Any, Final
from uuid import UUID

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Greatest, Now
from typing_extensions import override

from channels_app.models import Channel
from notifications_app.models.notification import Notification
from notifications_app.querysets import BatchQuerySet, DeliveryQuerySet, PlanQuerySet
from notifications_app.states import (
    CAREFUL_AFTER_LEASE_LOSSES,
    BatchStatus,
    DeliveryStatus,
    PlanStatus,
)
from pushsvc.common.platforms import PLATFORM_CHOICES, PLATFORM_VALUES
from subscriptions_app.models import MAX_TIMEZONE


class Driver(models.TextChoices):
    """The source in which the windows of a plan find devices."""

    SCAN = "scan", "The channel's active subscriptions"
    IDS = "ids", "The notification's targets"
    ZONES = "zones", "Devices of its time zones"
    MOVERS = "movers", "Devices whose time zone has changed since the start"
    SLICE = "slice", "Targets that an automation added"


SLICE_TARGETS: Final = 5_000  # most of a part with the driver `slice`
# The driver of a part is unknown to planners of a version without it, which then scan. With this
# `only_subscription_id` they find nobody.
NO_SUBSCRIPTION: Final = UUID(int=0)


class Plan(models.Model):
    """One part of a notification's audience on one platform, with its release, its deadline and
    the planner's position. A device that several parts reach is a recipient of the first part that
    finds it."""

    id = models.BigAutoField(primary_key=True)
    notification = models.ForeignKey(
        Notification, on_delete=models.CASCADE, related_name="plans", db_index=False
    )
    channel = models.ForeignKey(Channel, on_delete=models.PROTECT, related_name="+")
    platform = models.CharField(max_length=7, choices=PLATFORM_CHOICES)
    part = models.SmallIntegerField(
        default=0, db_default=0, help_text="Counts the parts of a platform, from 0."
    )
    release_at = models.DateTimeField(help_text="No recipient is planned before.")
    deadline_at = models.DateTimeField(help_text="When the time to live ends, pauses included.")
    status = models.CharField(
        max_length=10,
        choices=PlanStatus.choices,
        default=PlanStatus.PLANNING,
        db_default=PlanStatus.PLANNING,
    )
    cursor = models.UUIDField(null=True, help_text="The last subscription id that was planned.")
    until = models.UUIDField(
        null=True, help_text="Of a range of the audience: its last subscription id."
    )
    zones = ArrayField(
        models.CharField(max_length=MAX_TIMEZONE),
        null=True,
        help_text="Only devices with these time zones, as they are stored. Null: with any.",
    )
    zone_at = models.SmallIntegerField(
        default=0,
        db_default=0,
        help_text="Which of the zones the cursor is in, from 1. Of movers, 1: some must wait.",
    )
    bucket_from = models.SmallIntegerField(
        null=True, help_text="Of a part of a test: its first bucket of 10,000. 0: the tested part."
    )
    bucket_to = models.SmallIntegerField(null=True, help_text="The first bucket after its last.")
    rule: Any = models.JSONField(
        null=True,
        help_text="The rule of the segment or the send, as it was at the start. Null: no rule.",
    )
    only_subscription_id = models.UUIDField(
        null=True, help_text="Of a test; null: all that the rule reaches."
    )
    driver = models.CharField(
        max_length=7,
        choices=Driver.choices,
        default=Driver.SCAN,
        db_default=Driver.SCAN,
        help_text="Where its windows find devices.",
    )
    recipient_count = models.PositiveBigIntegerField(default=0, db_default=0)
    opted_out_count = models.BigIntegerField(
        default=0, db_default=0, help_text="Of the audience: left out, because they refuse it."
    )
    capped_count = models.BigIntegerField(
        default=0, db_default=0, help_text="Of the audience: left out, because of a cap."
    )
    repeated_count = models.BigIntegerField(
        default=0, db_default=0, help_text="The same, because the schedule contacted them lately."
    )
    lease_number = models.PositiveIntegerField(
        default=0, db_default=0, help_text="Only the newest lease may write."
    )
    due_at = models.DateTimeField(db_default=Now())
    lease_until = models.DateTimeField(null=True)
    sliced_at = models.DateTimeField(null=True)
    halted_at = models.DateTimeField(
        null=True, help_text="Since when its notification is paused or stopped."
    )
    has_rate = models.BooleanField(
        null=True,
        help_text="Whether claims follow the rate of the send. Null: not planned yet, or none.",
    )

    objects = PlanQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["notification", "platform", "part"], name="plan_part_once"
            ),
            models.CheckConstraint(condition=Q(platform__in=PLATFORM_VALUES), name="plan_platform"),
            models.CheckConstraint(condition=Q(status__in=PlanStatus.values), name="plan_status"),
        ]
        indexes = [
            # A part that waits for its release has no recipients, so no claim reads it.
            models.Index(
                fields=["platform", "id"],
                condition=~Q(status="done") & Q(recipient_count__gt=0),
                name="plan_with_recipients",
            ),
            # The count is never null or negative, but only statements that check this can use the
            # index. With old statistics, others might read all waiting plans for each notification
            # or batch.
            models.Index(
                fields=["due_at"],
                condition=Q(status="planning", recipient_count__gte=0),
                name="plan_due",
            ),
            # For ticks, which end plans. Without done plans, because these are kept.
            models.Index(
                fields=["id"],
                condition=Q(status__in=["delivering", "settling"]),
                name="plan_ending",
            ),
        ]

    @override
    def __str__(self) -> str:
        return f"{self.notification_id} {self.platform}"

    @property
    def follows_test(self) -> bool:
        """Whether it gets the variant that a test finds."""
        return bool(self.bucket_from)

    @property
    def is_test(self) -> bool:
        return self.only_subscription_id not in (None, NO_SUBSCRIPTION)


class SendRate(models.Model):
    """When workers may take up further recipients of a notification with a rate. No foreign key: it
    is a row of its own, so that no claim waits for the locks of planners and flushes."""

    notification_id = models.UUIDField(primary_key=True)
    next_at = models.DateTimeField(db_default=Now())

    @override
    def __str__(self) -> str:
        return f"{self.notification_id} {self.next_at}"


SMALL_BATCH = 500  # most recipients of a batch that is claimed together with others
BREAKING_BATCH = Q(lease_losses__gte=CAREFUL_AFTER_LEASE_LOSSES) & ~Q(status="done")
# The time since which a batch has been due, and its notification not paused.
WANTED_SINCE = Greatest("due_at", "plan__due_at")
# Batches of a send with a rate wait for their turn.
HAS_NO_RATE = Q(plan__has_rate__isnull=True) | Q(plan__has_rate=False)
RECIPIENTS_LEFT = F("recipient_count") - F("delivered_count") - F("bounced_count")


class Batch(models.Model):
    """At most a thousand recipients of one part at one push service."""

    id = models.BigAutoField(primary_key=True)
    plan = models.ForeignKey(Plan, on_delete=models.CASCADE, related_name="batches", db_index=False)
    notification = models.ForeignKey(Notification, on_delete=models.CASCADE, related_name="batches")
    channel = models.ForeignKey(Channel, on_delete=models.PROTECT, related_name="+", db_index=False)
    platform = models.CharField(max_length=7, choices=PLATFORM_CHOICES)
    push_service = models.CharField(max_length=100)
    status = models.CharField(
        max_length=6,
        choices=BatchStatus.choices,
        default=BatchStatus.READY,
        db_default=BatchStatus.READY,
    )
    due_at = models.DateTimeField(db_default=Now())
    claimed_at = models.DateTimeField(null=True)
    lease_until = models.DateTimeField(null=True)
    parked_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    lease_number = models.PositiveIntegerField(
        default=0, db_default=0, help_text="Only the newest lease may write."
    )
    holder = models.UUIDField(
        null=True, help_text="The process that claimed it last: `process_id` of presence."
    )
    lease_losses = models.PositiveSmallIntegerField(
        default=0,
        db_default=0,
        help_text="In a row: leases that ended without the worker, and passes that broke.",
    )
    bounce_again_at = models.DateTimeField(
        null=True, help_text="When to bounce again what the database refused at the deadline."
    )
    recipient_count = models.PositiveIntegerField(default=0, db_default=0)
    delivered_count = models.PositiveIntegerField(default=0, db_default=0)
    bounced_count = models.PositiveIntegerField(default=0, db_default=0)
    refused_count = models.PositiveIntegerField(
        default=0, db_default=0, help_text="Of the bounced: because the credentials were refused."
    )
    suspect_count = models.PositiveIntegerField(
        default=0,
        db_default=0,
        help_text="Of the bounced: their expiry waits for the mass-failure rule.",
    )
    variant = models.SmallIntegerField(
        null=True, help_text="Which of the notification's variants they get, from 0. Null: none."
    )

    objects = BatchQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(platform__in=PLATFORM_VALUES), name="batch_platform"
            ),
            models.CheckConstraint(condition=Q(status__in=BatchStatus.values), name="batch_status"),
            models.CheckConstraint(
                condition=Q(recipient_count__gte=F("delivered_count") + F("bounced_count")),
                name="batch_running_sums",
            ),
            models.CheckConstraint(
                condition=~Q(status="done")
                | Q(recipient_count=F("delivered_count") + F("bounced_count")),
                name="batch_terminal_sums",
            ),
            models.CheckConstraint(
                condition=Q(status="done", finished_at__isnull=False)
                | ~Q(status="done") & Q(finished_at__isnull=True),
                name="batch_finished_when_done",
            ),
            models.CheckConstraint(
                condition=Q(bounced_count__gte=F("refused_count") + F("suspect_count")),
                name="batch_bounce_sums",
            ),
        ]
        indexes = [
            models.Index(
                fields=["plan", "due_at"], condition=Q(status="ready"), name="batch_ready"
            ),
            # Every batch has recipients. Only statements that say so can use this index. Otherwise
            # PostgreSQL might read all of it for each plan, while it believes that nothing waits.
            models.Index(
                fields=["platform", "due_at"],
                condition=Q(status="ready", recipient_count__gt=0),
                name="batch_ready_due",
            ),
            # Contains few batches of large notifications, because nearly all of these are full.
            models.Index(
                fields=["channel", "platform", "push_service", "due_at", "id"],
                condition=Q(status="ready", recipient_count__lte=SMALL_BATCH),
                name="batch_ready_small",
            ),
            # Statements about given batches do not check these times, so they cannot use the two
            # indexes.
            models.Index(
                fields=["lease_until"],
                condition=Q(status="leased", lease_until__isnull=False),
                name="batch_leased",
            ),
            models.Index(
                fields=["parked_at"],
                condition=Q(status="parked", parked_at__isnull=False),
                name="batch_parked",
            ),
            models.Index(fields=["finished_at"], condition=Q(status="done"), name="batch_finished"),
            models.Index(fields=["plan", "-claimed_at"], name="batch_plan_claimed"),
            models.Index(
                fields=["channel", "platform", "-claimed_at"], name="batch_channel_claimed"
            ),
            # Not a condition on the status, because `status = 'ready'` would imply it. While its
            # statistics say that every batch is done, PostgreSQL could read the whole index for
            # each plan.
            models.Index(
                fields=["notification"], condition=Q(finished_at__isnull=True), name="batch_open"
            ),
            models.Index(fields=["notification"], condition=BREAKING_BATCH, name="batch_breaking"),
        ]

    @override
    def __str__(self) -> str:
        return f"{self.notification_id} {self.platform} #{self.id}"


class Delivery(models.Model):
    """One recipient of one notification, planned once. No foreign keys: the outcome is kept if the
    subscription is deleted, and a million rows are written at a time."""

    pk = models.CompositePrimaryKey("notification_id", "subscription_id")
    notification_id = models.UUIDField()
    subscription_id = models.UUIDField()
    batch_id = models.BigIntegerField(db_index=True)
    status = models.SmallIntegerField(
        default=DeliveryStatus.WAITING, db_default=DeliveryStatus.WAITING
    )
    attempts = models.SmallIntegerField(default=0, db_default=0)
    solo_attempts = models.SmallIntegerField(
        default=0, db_default=0, help_text="Calls begun alone and not known to have ended."
    )
    due_at = models.DateTimeField(null=True, help_text="Null: at once.")
    # Only of recipients that are called again, so that a row with an outcome always fits into its
    # page.
    first_attempt_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    received_at = models.DateTimeField(null=True)
    clicked_at = models.DateTimeField(null=True)
    clicked_action = models.SmallIntegerField(
        null=True, help_text="Which of the notification's buttons was clicked, from 0."
    )
    dismissed_at = models.DateTimeField(null=True)
    code = models.CharField(max_length=64, default="", db_default="")
    detail = models.CharField(max_length=200, default="", db_default="")

    objects = DeliveryQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(status__in=DeliveryStatus.values), name="delivery_status"
            ),
        ]

    @override
    def __str__(self) -> str:
        return f"{self.notification_id} → {self.subscription_id}"
