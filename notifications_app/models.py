"""A notification, how its audience is cut into work, and what became of each recipient."""

from typing import Any

from django.contrib.auth.models import User
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now
from typing_extensions import override

from channels_app.models import Channel
from notifications_app.content import CONTENT_FIELDS, Content
from notifications_app.querysets import (
    BatchQuerySet,
    DeliveryQuerySet,
    IdempotencyRecordQuerySet,
    NotificationQuerySet,
    PlanQuerySet,
)
from notifications_app.states import (
    CAREFUL_AFTER_LEASE_LOSSES,
    UNFINISHED,
    BatchStatus,
    DeliveryStatus,
    NotificationStatus,
    PlanStatus,
)
from pushsvc.common.ids import uuid7
from pushsvc.common.platforms import PLATFORM_CHOICES, PLATFORM_VALUES


class Urgency(models.TextChoices):
    """RFC 8030 section 5.3."""

    VERY_LOW = "very-low"
    LOW = "low"
    NORMAL = "normal"
    HIGH = "high"


class Notification(models.Model):
    """`recipient_count` = `delivered_count` + `bounced_count` once it is sent or failed."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    channel = models.ForeignKey(Channel, on_delete=models.PROTECT, related_name="notifications")
    title = models.TextField(blank=True, default="")
    body = models.TextField()
    icon = models.TextField(blank=True, default="")
    url = models.TextField(blank=True, default="")
    image = models.TextField(blank=True, default="")
    data: Any = models.JSONField(default=dict, blank=True)
    data_names: Any = models.JSONField(
        null=True,
        blank=True,
        help_text="The names of `data` in the sender's order, which jsonb does not keep.",
    )
    ttl = models.PositiveIntegerField(help_text="Seconds; 0: deliver at once or drop.")
    urgency = models.CharField(max_length=8, choices=Urgency.choices, default=Urgency.NORMAL)
    topic = models.CharField(max_length=32, blank=True, default="")
    target_platforms: Any = models.JSONField()
    segment_id = models.UUIDField(null=True, blank=True)
    only_subscription_id = models.UUIDField(
        null=True, blank=True, help_text="A test: this subscription gets it and no other."
    )
    status = models.CharField(
        max_length=10, choices=NotificationStatus.choices, default=NotificationStatus.PENDING
    )
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    scheduled_at = models.DateTimeField(db_default=Now())
    expires_at = models.DateTimeField(
        null=True, blank=True, help_text="No call is made afterwards, whatever `ttl` says."
    )
    edited_at = models.DateTimeField(null=True, blank=True)
    started_at = models.DateTimeField(null=True, blank=True)
    deadline_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)
    paused_at = models.DateTimeField(null=True, blank=True)
    paused_seconds = models.PositiveIntegerField(
        default=0, db_default=0, help_text="By which earlier pauses prolong the attempts."
    )
    stopped_at = models.DateTimeField(null=True, blank=True)
    recipient_count = models.PositiveBigIntegerField(default=0)
    delivered_count = models.PositiveBigIntegerField(default=0)
    bounced_count = models.PositiveBigIntegerField(default=0)
    received_count = models.PositiveBigIntegerField(default=0, db_default=0)
    clicked_count = models.PositiveBigIntegerField(default=0)
    dismissed_count = models.PositiveBigIntegerField(default=0, db_default=0)

    objects = NotificationQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(status__in=NotificationStatus.values), name="notification_status"
            ),
            models.CheckConstraint(
                condition=Q(target_platforms__contained_by=PLATFORM_VALUES),
                name="notification_platforms",
            ),
            models.CheckConstraint(
                condition=~Q(status__in=["sent", "failed"])
                | Q(recipient_count=F("delivered_count") + F("bounced_count")),
                name="notification_terminal_sums",
            ),
            models.CheckConstraint(
                condition=Q(recipient_count__gte=F("delivered_count") + F("bounced_count")),
                name="notification_running_sums",
            ),
        ]
        indexes = [
            models.Index(fields=["channel", "-created_at", "-id"], name="notification_list"),
            models.Index(
                fields=["scheduled_at"], condition=Q(status="pending"), name="notification_due"
            ),
            models.Index(
                fields=["id"], condition=Q(status="processing"), name="notification_running"
            ),
            models.Index(
                fields=["segment_id"],
                condition=Q(status__in=["pending", "processing"], segment_id__isnull=False),
                name="notification_segment_open",
            ),
            models.Index(fields=["channel", "-id"], name="notification_newest"),
        ]

    @override
    def __str__(self) -> str:
        return self.title or self.body[:60]

    @property
    def is_test(self) -> bool:
        return self.only_subscription_id is not None

    @property
    def is_unfinished(self) -> bool:
        return self.status in UNFINISHED

    @property
    def is_paused(self) -> bool:
        return self.is_unfinished and self.paused_at is not None

    @property
    def is_stopped(self) -> bool:
        return self.stopped_at is not None

    @property
    def is_halted(self) -> bool:
        """Whether no call may be made for it."""
        return self.paused_at is not None or self.is_stopped

    @property
    def content(self) -> Content:
        values = {name: getattr(self, name) for name in CONTENT_FIELDS}
        return Content(**values | {"data": self.ordered_data})

    @property
    def ordered_data(self) -> dict[str, str]:
        """`data` in the sender's order. Without `data_names` (older rows) it is jsonb's order."""
        return {name: self.data[name] for name in self.data_names or self.data}


class Draft(models.Model):
    """A notification that staff are writing. Only the console has drafts; nothing sends them."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    channel = models.ForeignKey(Channel, on_delete=models.CASCADE, related_name="drafts")
    owner = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    changed_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    changed_at = models.DateTimeField(db_default=Now())
    version = models.PositiveIntegerField(
        default=1, help_text="Counts the changes, so that nobody overwrites another's unseen."
    )
    form: Any = models.JSONField(help_text="The fields of the console's form, as they were typed.")

    class Meta:
        indexes = [models.Index(fields=["channel", "-changed_at"], name="draft_list")]

    @override
    def __str__(self) -> str:
        text: str = self.form.get("title") or self.form.get("body") or ""
        return text[:60] or "Without text"


class Plan(models.Model):
    """Where the planner stands with one platform of a notification."""

    id = models.BigAutoField(primary_key=True)
    notification = models.ForeignKey(Notification, on_delete=models.CASCADE, related_name="plans")
    channel = models.ForeignKey(Channel, on_delete=models.PROTECT, related_name="+")
    platform = models.CharField(max_length=7, choices=PLATFORM_CHOICES)
    status = models.CharField(
        max_length=10,
        choices=PlanStatus.choices,
        default=PlanStatus.PLANNING,
        db_default=PlanStatus.PLANNING,
    )
    cursor = models.UUIDField(null=True, help_text="The last subscription id that was planned.")
    rule: Any = models.JSONField(
        null=True, help_text="The segment's rule as it was at the start; null: the whole channel."
    )
    only_subscription_id = models.UUIDField(
        null=True, help_text="Of a test; null: all that the rule reaches."
    )
    recipient_count = models.PositiveBigIntegerField(default=0, db_default=0)
    attempt = models.PositiveIntegerField(
        default=0, db_default=0, help_text="Fencing number of the lease."
    )
    due_at = models.DateTimeField(db_default=Now())
    lease_until = models.DateTimeField(null=True)
    sliced_at = models.DateTimeField(null=True)
    halted_at = models.DateTimeField(
        null=True, help_text="Since when its notification is paused or stopped."
    )

    objects = PlanQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["notification", "platform"], name="plan_once_per_platform"
            ),
            models.CheckConstraint(condition=Q(platform__in=PLATFORM_VALUES), name="plan_platform"),
            models.CheckConstraint(condition=Q(status__in=PlanStatus.values), name="plan_status"),
        ]
        indexes = [
            models.Index(fields=["platform", "id"], condition=~Q(status="done"), name="plan_open"),
            models.Index(fields=["id"], condition=Q(status="planning"), name="plan_planning"),
        ]

    @override
    def __str__(self) -> str:
        return f"{self.notification_id} {self.platform}"


BREAKING_BATCH = Q(lease_losses__gte=CAREFUL_AFTER_LEASE_LOSSES) & ~Q(status="done")
RECIPIENTS_LEFT = F("recipient_count") - F("delivered_count") - F("bounced_count")


class Batch(models.Model):
    """About a thousand recipients of one push service: what one worker claims at a time."""

    id = models.BigAutoField(primary_key=True)
    plan = models.ForeignKey(Plan, on_delete=models.CASCADE, related_name="batches")
    notification = models.ForeignKey(Notification, on_delete=models.CASCADE, related_name="batches")
    channel = models.ForeignKey(Channel, on_delete=models.PROTECT, related_name="+")
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
    attempt = models.PositiveIntegerField(
        default=0, db_default=0, help_text="Fencing number of the lease."
    )
    # The column has its first name, so that processes of the version before run on while a new one
    # is rolled out.
    lease_losses = models.PositiveSmallIntegerField(
        default=0,
        db_default=0,
        db_column="lapses",
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
                condition=Q(bounced_count__gte=F("refused_count") + F("suspect_count")),
                name="batch_bounce_sums",
            ),
        ]
        indexes = [
            models.Index(
                fields=["plan", "due_at"], condition=Q(status="ready"), name="batch_ready"
            ),
            models.Index(
                fields=["platform", "due_at"], condition=Q(status="ready"), name="batch_ready_due"
            ),
            models.Index(fields=["lease_until"], condition=Q(status="leased"), name="batch_leased"),
            models.Index(fields=["parked_at"], condition=Q(status="parked"), name="batch_parked"),
            models.Index(fields=["finished_at"], condition=Q(status="done"), name="batch_finished"),
            models.Index(fields=["plan", "-claimed_at"], name="batch_plan_claimed"),
            models.Index(
                fields=["channel", "platform", "-claimed_at"], name="batch_channel_claimed"
            ),
            models.Index(fields=["notification"], condition=~Q(status="done"), name="batch_open"),
            models.Index(fields=["notification"], condition=BREAKING_BATCH, name="batch_breaking"),
        ]

    @override
    def __str__(self) -> str:
        return f"{self.notification_id} {self.platform} #{self.id}"


class Delivery(models.Model):
    """One recipient of one notification, planned once. No foreign keys: a subscription that is
    deleted meanwhile must not take its outcome along, and a million rows are written at a time."""

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
    first_attempt_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    received_at = models.DateTimeField(null=True)
    clicked_at = models.DateTimeField(null=True)
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


class HourlyStat(models.Model):
    """What happened on a channel's platform in an hour (UTC), for charts."""

    pk = models.CompositePrimaryKey("channel_id", "platform", "hour")
    channel = models.ForeignKey(Channel, on_delete=models.CASCADE, related_name="+")
    platform = models.CharField(max_length=7, choices=PLATFORM_CHOICES)
    hour = models.DateTimeField()
    recipients = models.BigIntegerField(default=0, db_default=0)
    delivered = models.BigIntegerField(default=0, db_default=0)
    bounced = models.BigIntegerField(default=0, db_default=0)
    deferred = models.BigIntegerField(default=0, db_default=0)
    clicked = models.BigIntegerField(default=0, db_default=0)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(platform__in=PLATFORM_VALUES), name="hourly_platform"
            ),
        ]
        indexes = [models.Index(fields=["hour"], name="hourly_hour")]

    @override
    def __str__(self) -> str:
        return f"{self.channel_id} {self.platform} {self.hour:%Y-%m-%d %H:00}"


class OutcomeMinute(models.Model):
    """How many of a notification's recipients ended so in a minute (UTC).

    A roll-up of deliveries, written by the same flush and exact; it stays when they are purged.
    `code` is the delivery's: "" for delivered, else why it bounced.
    """

    pk = models.CompositePrimaryKey("notification_id", "minute", "platform", "code")
    notification = models.ForeignKey(
        Notification, on_delete=models.CASCADE, related_name="+", db_index=False
    )
    minute = models.DateTimeField()
    platform = models.CharField(max_length=7, choices=PLATFORM_CHOICES)
    code = models.CharField(max_length=64)
    count = models.BigIntegerField()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(platform__in=PLATFORM_VALUES), name="outcome_platform"
            ),
        ]

    @override
    def __str__(self) -> str:
        outcome = self.code or "delivered"
        return f"{self.notification_id} {self.platform} {self.minute:%H:%M} {outcome}"


class IdempotencyRecord(models.Model):
    """The answer that a channel's Idempotency-Key got, to be given again for 24 hours."""

    id = models.BigAutoField(primary_key=True)
    channel = models.ForeignKey(Channel, on_delete=models.CASCADE, related_name="+")
    key = models.CharField(max_length=255)
    body_sha256 = models.CharField(max_length=64)
    response = models.TextField()
    created_at = models.DateTimeField(db_default=Now())

    objects = IdempotencyRecordQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["channel", "key"], name="idempotency_key_once"),
        ]
        indexes = [models.Index(fields=["created_at"], name="idempotency_age")]

    @override
    def __str__(self) -> str:
        return self.key
