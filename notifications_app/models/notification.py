"""Notifications, drafts, and the responses to idempotency keys."""

from typing import Any, Final
from uuid import UUID

from django.contrib.auth.models import User
from django.db import models
from django.db.models import Case, F, Q, When
from django.db.models.functions import Now
from typing_extensions import override

from channels_app import audit
from channels_app.models import Channel
from notifications_app.content.fields import URGENCIES
from notifications_app.content.values import (
    AUDITED_FIELDS,
    CONTENT,
    DEFAULTS,
    IGNORE,
    RESPECT,
    AudienceKind,
    Content,
)
from notifications_app.models.running import PositiveRunningCount, RunningCount
from notifications_app.querysets import IdempotencyRecordQuerySet, NotificationQuerySet
from notifications_app.states import UNFINISHED, NotificationStatus
from notifications_app.timing import Timing
from pushsvc.common.correlation import MOST_REQUEST_ID, Correlation, correlation_of
from pushsvc.common.ids import uuid7
from pushsvc.common.platforms import PLATFORM_VALUES
from subscriptions_app.models import MAX_CATEGORY_KEY

MAX_NOTIFICATION_NAME: Final = 100
MAX_LABEL: Final = 50
MOST_LABELS: Final = 5
_WAS_BROADCAST: Final = Q(
    has_targets=False, only_subscription_id__isnull=True, started_at__isnull=False
)


class Notification(models.Model):
    """`recipient_count` = `delivered_count` + `bounced_count` once it is sent or failed."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    channel = models.ForeignKey(
        Channel, on_delete=models.PROTECT, related_name="notifications", db_index=False
    )
    title = models.TextField(blank=True, default="", db_default="")
    body = models.TextField()
    icon = models.TextField(blank=True, default="", db_default="")
    url = models.TextField(blank=True, default="", db_default="")
    image = models.TextField(blank=True, default="", db_default="")
    data: Any = models.JSONField(default=dict, blank=True)
    data_names: Any = models.JSONField(
        null=True,
        blank=True,
        help_text="The names of `data` in the sender's order, which jsonb does not keep.",
    )
    extras: Any = models.JSONField(
        null=True, blank=True, help_text="The fields of the content that have no column."
    )
    vars: Any = models.JSONField(
        null=True, blank=True, help_text="The send's values for its placeholders."
    )
    ttl = models.PositiveIntegerField(help_text="Seconds; 0: deliver immediately or drop.")
    urgency = models.CharField(
        max_length=8, choices=list(URGENCIES.items()), default="normal", db_default="normal"
    )
    topic = models.CharField(max_length=32, blank=True, default="", db_default="")
    target_platforms: Any = models.JSONField()
    segment_id = models.UUIDField(null=True, blank=True)
    category = models.CharField(
        max_length=MAX_CATEGORY_KEY,
        blank=True,
        default="",
        db_default="",
        help_text="Devices that refuse it do not get the notification. Empty: none can refuse it.",
    )
    only_subscription_id = models.UUIDField(
        null=True,
        blank=True,
        help_text="A test: this subscription gets it and no other.",
    )
    rule: Any = models.JSONField(null=True, blank=True, help_text="Of this send alone.")
    root_id = models.UUIDField(
        null=True,
        blank=True,
        help_text="Of a correction: the first notification of its chain, in whose place it is"
        " shown. Its rule names the one that it corrects.",
    )
    has_targets = models.BooleanField(
        default=False, db_default=False, help_text="It is for the rows of Target, and nobody else."
    )
    template_id = models.UUIDField(
        null=True,
        blank=True,
        help_text="Its content was copied from it. The template may be deleted since.",
    )
    status = models.CharField(
        max_length=10,
        choices=NotificationStatus.choices,
        default=NotificationStatus.PENDING,
        db_default=NotificationStatus.PENDING,
    )
    request_id = models.CharField(  # noqa: DJ001 - older rows have none
        max_length=MOST_REQUEST_ID, null=True, editable=False, help_text="Of the send's request."
    )
    traceparent = models.CharField(  # noqa: DJ001 - most have none, and null takes no room
        max_length=55, null=True, editable=False, help_text="The span that made it, if it has one."
    )
    sent_by = models.CharField(
        max_length=150,
        default="",
        db_default="",
        editable=False,
        help_text="The user name of staff, or an API key's public id after `psk_`.",
    )
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    scheduled_at = models.DateTimeField(db_default=Now())
    timing: Any = models.JSONField(
        null=True, blank=True, help_text="Of a send by local time; as notifications_app/timing.py."
    )
    expires_at = models.DateTimeField(
        null=True, blank=True, help_text="No call is made afterwards, whatever `ttl` says."
    )
    name = models.CharField(
        max_length=MAX_NOTIFICATION_NAME,
        blank=True,
        default="",
        db_default="",
        help_text="For staff and reports. No device gets it.",
    )
    labels: Any = models.JSONField(null=True, blank=True, help_text="As `name`. Null: none.")
    rate_per_minute = models.PositiveIntegerField(
        null=True,
        blank=True,
        help_text="Recipients. 0: none. Null: the channel's until the start, then none.",
    )
    caps: Any = models.JSONField(
        null=True,
        blank=True,
        help_text="The channel's, as they were at the send. Null: there are none. []: ignored.",
    )
    once: Any = models.JSONField(
        null=True,
        blank=True,
        help_text="Of a schedule that contacts everyone once in `days`: its `schedule_id`.",
    )
    test: Any = models.JSONField(
        null=True, blank=True, help_text="How its variants are tested, as the send said."
    )
    decides_at = models.DateTimeField(
        null=True,
        editable=False,
        help_text="When the test is decided by itself, from its start on.",
    )
    decision: Any = models.JSONField(
        null=True, editable=False, help_text="Of the test; as in pipeline/deciding.py."
    )
    edited_at = models.DateTimeField(null=True, blank=True)
    started_at = models.DateTimeField(null=True, blank=True)
    deadline_at = models.DateTimeField(null=True, blank=True)
    first_hand_over_at = models.DateTimeField(
        null=True, editable=False, help_text="When its first delivery was counted."
    )
    finished_at = models.DateTimeField(null=True, blank=True)
    paused_at = models.DateTimeField(null=True, blank=True)
    paused_seconds = models.IntegerField(
        default=0,
        db_default=0,
        help_text="How long earlier pauses took; attempts go on for longer.",
    )
    stopped_at = models.DateTimeField(null=True, blank=True)
    recipient_count = models.PositiveBigIntegerField(default=0, db_default=0)
    delivered_count = PositiveRunningCount(default=0, db_default=0)
    bounced_count = PositiveRunningCount(default=0, db_default=0)
    stopped_count = RunningCount(
        default=0, db_default=0, help_text="Of the bounced: the notification was stopped."
    )
    opted_out_count = RunningCount(
        default=0, db_default=0, help_text="Of the bounced: they refused the category meanwhile."
    )
    expired_count = RunningCount(
        default=0, db_default=0, help_text="Of the bounced: the deadline passed."
    )
    received_count = models.PositiveBigIntegerField(default=0, db_default=0)
    clicked_count = models.PositiveBigIntegerField(default=0, db_default=0)
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
            models.Index(
                fields=["scheduled_at"], condition=Q(status="pending"), name="notification_due"
            ),
            # For starting those that start in parts.
            models.Index(
                fields=["channel", "scheduled_at"],
                condition=Q(status="pending") & (Q(timing__isnull=False) | Q(test__isnull=False)),
                name="notification_due_timed",
            ),
            # For starting notifications in turns of the channels.
            models.Index(
                fields=["channel", "scheduled_at"],
                condition=Q(status="pending"),
                name="notification_due_of_channel",
            ),
            models.Index(
                fields=["id"], condition=Q(status="processing"), name="notification_running"
            ),
            models.Index(
                fields=["decides_at"],
                condition=Q(status="processing", decides_at__isnull=False),
                name="notification_deciding",
            ),
            models.Index(
                fields=["segment_id"],
                condition=Q(status__in=["pending", "processing"], segment_id__isnull=False),
                name="notification_segment_open",
            ),
            models.Index(fields=["channel", "-id"], name="notification_newest"),
            # For inboxes. By an expression, because PostgreSQL might otherwise read all sends of
            # the channel by another index, if its statistics know of none.
            models.Index(
                Case(When(_WAS_BROADCAST, then="channel")),
                F("id").desc(),
                condition=_WAS_BROADCAST,
                name="notification_broadcast",
            ),
            # For lists of a period, and of the few with these statuses.
            models.Index(fields=["channel", "scheduled_at"], name="notification_period"),
            models.Index(
                fields=["channel", "-id"],
                condition=Q(status__in=["failed", "cancelled"]),
                name="notification_unsent",
            ),
            models.Index(
                fields=["root_id"],
                condition=Q(root_id__isnull=False),
                name="notification_corrections",
            ),
            # For figures of hand-overs. Not of `first_hand_over_at`, whose update would then write
            # to every index.
            models.Index(
                fields=["channel", "finished_at"],
                condition=Q(status="sent"),
                name="notification_ended",
            ),
        ]

    @override
    def __str__(self) -> str:
        return self.name or self.title or self.body[:60]

    @property
    def undeliverable_count(self) -> int:
        """The bounced recipients without those that ended by a stop, an opt-out or the deadline."""
        apart = self.stopped_count + self.opted_out_count + self.expired_count
        return self.bounced_count - apart

    @property
    def is_test(self) -> bool:
        return self.only_subscription_id is not None

    @property
    def winner(self) -> int | None:
        """The number of the variant that the test found, once it is decided."""
        return (self.decision or {}).get("variant")

    @property
    def is_deciding(self) -> bool:
        """Whether its test runs or is on hold."""
        return self.decides_at is not None and self.is_unfinished and not self.is_stopped

    @property
    def timed(self) -> Timing | None:
        """The local time at which it is sent, if it is."""
        return Timing.of(self.timing) if self.timing else None

    @property
    def cap(self) -> str:
        """What the send said about the channel's caps."""
        return IGNORE if self.caps == [] else RESPECT

    @property
    def audience_kind(self) -> AudienceKind:
        kinds = {
            AudienceKind.SUBSCRIPTION: self.is_test,
            AudienceKind.SEGMENT: self.segment_id is not None,
            AudienceKind.CORRECTION: self.root_id is not None,
            AudienceKind.RULE: self.rule is not None,
            AudienceKind.TARGETS: self.has_targets,
        }
        return next((kind for kind, is_it in kinds.items() if is_it), AudienceKind.CHANNEL)

    @property
    def replaces(self) -> UUID | None:
        """The notification that it corrects."""
        return UUID(self.rule["notification"]) if self.root_id else None

    @property
    def own_rule(self) -> Any:
        """The rule that the send named."""
        return None if self.root_id else self.rule

    def rate(self, of_channel: int | None) -> int | None:
        """The most recipients a minute; None without a rate. `of_channel`: what the channel says,
        which counts until the start."""
        own = self.rate_per_minute
        if own is None and self.status == NotificationStatus.PENDING and not self.is_test:
            own = of_channel
        return own or None

    @property
    def is_unfinished(self) -> bool:
        return self.status in UNFINISHED

    @property
    def edit_version(self) -> str:
        """Changes with each edit, and with the start, which fixes audience and time."""
        moments = (self.started_at, self.edited_at)
        return " ".join(each.isoformat() if each else "-" for each in moments)

    @property
    def pause_version(self) -> str:
        """Changes with each edit and with each pause."""
        return f"{self.edit_version} {self.paused_at.isoformat() if self.paused_at else '-'}"

    @property
    def is_paused(self) -> bool:
        return self.is_unfinished and self.paused_at is not None

    @property
    def is_stopped(self) -> bool:
        return self.stopped_at is not None

    @property
    def is_halted(self) -> bool:
        """Whether it is paused or stopped, so that no call may be made."""
        return self.paused_at is not None or self.is_stopped

    @property
    def content(self) -> Content:
        values = {name: getattr(self, name) for name in _COLUMNS}
        own = {"data": self.ordered_data, "vars": self.vars or {}}
        return Content(**values | own | (self.extras or {}))

    @staticmethod
    def values_of(content: Content) -> dict[str, Any]:
        """The values of the columns for this content. `extras` has what is given of the fields
        without a column, and is None if nothing is, as in most sends."""
        values = {name: getattr(content, name) for name in _COLUMNS}
        extras = {
            name: value
            for name, usual in _WITHOUT_COLUMN
            if (value := getattr(content, name)) != usual
        }
        own = {"data_names": list(content.data) or None, "vars": content.vars or None}
        return values | own | {"extras": extras or None}

    @property
    def correlation(self) -> Correlation:
        return correlation_of(self.pk, self.request_id, self.traceparent)

    @property
    def ordered_data(self) -> dict[str, str]:
        """`data` in the sender's order; in jsonb's order without `data_names` (no data, older
        rows)."""
        return {name: self.data[name] for name in self.data_names or self.data}


# The fields of the content that have a column. `extras` holds the others.
_COLUMNS: Final = tuple(
    each.name for each in Notification._meta.concrete_fields if each.name in CONTENT
)
_WITHOUT_COLUMN: Final = tuple(
    (name, value) for name, value in DEFAULTS.items() if name not in _COLUMNS
)
audit.SHOWN["notifications_app.notification"] = (
    *(name for name in AUDITED_FIELDS if name in _COLUMNS),
    "extras",
    "target_platforms",
    "segment_id",
    "replaces",
    "category",
    "template_id",
    "scheduled_at",
    "timing",
    "expires_at",
    "rate_per_minute",
    "caps",
    "test",
    "decision",
    "name",
    "labels",
    "status",
    "paused_at",
    "stopped_at",
)


class Draft(models.Model):
    """A notification that staff are writing in the console. It is sent only after a
    confirmation."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    channel = models.ForeignKey(Channel, on_delete=models.CASCADE, related_name="drafts")
    owner = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    changed_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    changed_at = models.DateTimeField(db_default=Now())
    version = models.PositiveIntegerField(
        default=1, help_text="Counts the changes, so that nobody overwrites another's unseen."
    )
    sent_version = models.PositiveIntegerField(
        null=True, help_text="The version that was sent last, if the draft was changed after it."
    )
    form: Any = models.JSONField(help_text="The fields of the console's form, as they were typed.")
    # A change of the form ends the wait, so that what was asked for is what is sent.
    asked_by = models.ForeignKey(User, null=True, on_delete=models.PROTECT, related_name="+")
    asked_at = models.DateTimeField(null=True, help_text="While it waits for approval.")
    returned_by = models.ForeignKey(User, null=True, on_delete=models.PROTECT, related_name="+")
    note = models.TextField(
        blank=True, default="", db_default="", help_text="Of who asked, or of who returned it."
    )

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=models.Q(asked_at__isnull=True, asked_by__isnull=True)
                | models.Q(asked_at__isnull=False, asked_by__isnull=False),
                name="draft_asked",
            ),
        ]
        indexes = [
            models.Index(fields=["channel", "-changed_at"], name="draft_list"),
            models.Index(
                fields=["asked_at"],
                condition=models.Q(asked_at__isnull=False),
                name="draft_waiting",
            ),
        ]

    @override
    def __str__(self) -> str:
        texts = (self.form.get(name) for name in ("name", "title", "body"))
        text: str = next(filter(None, texts), "")
        return text[:60] or "Without text"

    @property
    def is_waiting(self) -> bool:
        """Whether it waits for approval."""
        return self.asked_at is not None


class IdempotencyRecord(models.Model):
    """The response to a channel's Idempotency-Key, which is repeated for 24 hours."""

    id = models.BigAutoField(primary_key=True)
    channel = models.ForeignKey(Channel, on_delete=models.CASCADE, related_name="+", db_index=False)
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
