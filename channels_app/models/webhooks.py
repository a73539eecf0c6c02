"""Webhooks, their messages, the facts that wait for one, and alerts."""

from typing import Any

from django.db import models
from django.db.models.functions import Now
from typing_extensions import override

from channels_app.models.channels import Channel
from pushsvc.common.ids import uuid7
from pushsvc.common.texts import later


class WebhookFormat(models.TextChoices):
    """What a request contains: the signed message, or its text as a chat takes it."""

    STANDARD = "standard", later("Signed messages, for your backend")
    SLACK = "slack", later("Chat: Slack, Mattermost, Rocket.Chat or Google Chat")
    TEAMS = "teams", later("Chat: Microsoft Teams")


class Webhook(models.Model):
    """An address of the owner's backend, to which messages about `events` are sent, or of a chat.

    `disabled_code`: why the service disabled it; empty if the owner did. A webhook that the service
    disabled still gets messages, which fail at once and can be replayed. `is_slow`: its last call
    took long.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    channel = models.ForeignKey(Channel, on_delete=models.CASCADE, related_name="webhooks")
    url = models.CharField(max_length=2000)
    description = models.CharField(max_length=200, blank=True, default="")
    events: Any = models.JSONField(default=list)
    format = models.CharField(
        max_length=8,
        choices=WebhookFormat.choices,
        default=WebhookFormat.STANDARD,
        db_default=WebhookFormat.STANDARD,
    )
    secret_encrypted = models.TextField(editable=False)
    old_secret_encrypted = models.TextField(blank=True, default="", editable=False)
    old_secret_until = models.DateTimeField(null=True, blank=True)
    is_enabled = models.BooleanField(default=True)
    disabled_code = models.CharField(max_length=16, blank=True, default="")
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    served_at = models.DateTimeField(null=True, blank=True, help_text="The last claim.")
    last_delivered_at = models.DateTimeField(null=True, blank=True)
    last_failed_at = models.DateTimeField(null=True, blank=True)
    last_answer = models.CharField(max_length=300, blank=True, default="")
    failing_since = models.DateTimeField(
        null=True, blank=True, help_text="The first failed call since the last delivery."
    )
    held_until = models.DateTimeField(
        null=True, blank=True, help_text="While calls fail: no call before this time."
    )
    is_slow = models.BooleanField(default=False, db_default=False)

    @override
    def __str__(self) -> str:
        return self.description or self.origin

    @property
    def is_chat(self) -> bool:
        return self.format != WebhookFormat.STANDARD

    @property
    def origin(self) -> str:
        """The address without path and query, which may contain secrets."""
        return "/".join(self.url.split("/", 3)[:3])


class WebhookMessage(models.Model):
    """What webhooks are sent about one kind of event: the same bytes to each, in every attempt."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    channel_id = models.UUIDField()
    type = models.CharField(max_length=32)
    body = models.BinaryField()
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        indexes = [models.Index(fields=["channel_id", "id"], name="webhook_message_of_channel")]

    @override
    def __str__(self) -> str:
        return f"msg_{self.id.hex}"


class WebhookState(models.TextChoices):
    WAITING = "waiting"
    DELIVERED = "delivered"
    FAILED = "failed"


class WebhookAttempt(models.Model):
    """One message for one webhook. `attempts`: calls since the message was made or replayed.
    `lease_number`: only the claim with the newest number may write.

    No foreign keys, so that deleting a webhook need not delete these rows: retention does.
    """

    pk = models.CompositePrimaryKey("message_id", "webhook_id")
    message = models.ForeignKey(
        WebhookMessage,
        on_delete=models.DO_NOTHING,
        related_name="attempts",
        db_constraint=False,
        db_index=False,
    )
    webhook = models.ForeignKey(
        Webhook,
        on_delete=models.DO_NOTHING,
        related_name="attempts",
        db_constraint=False,
        db_index=False,
    )
    state = models.CharField(
        max_length=9, choices=WebhookState.choices, default=WebhookState.WAITING
    )
    attempts = models.PositiveSmallIntegerField(default=0, db_default=0)
    due_at = models.DateTimeField(db_default=Now())
    lease_until = models.DateTimeField(null=True, blank=True)
    lease_number = models.PositiveIntegerField(default=0, db_default=0)
    finished_at = models.DateTimeField(null=True, blank=True)
    answer = models.CharField(max_length=300, blank=True, default="", db_default="")

    class Meta:
        indexes = [
            models.Index(
                fields=["webhook", "due_at"],
                condition=models.Q(state="waiting"),
                name="webhook_attempt_waiting",
            ),
            models.Index(
                fields=["webhook", "lease_until"],
                condition=models.Q(state="waiting", lease_until__isnull=False),
                name="webhook_attempt_leased",
            ),
            models.Index(fields=["webhook", "message"], name="webhook_attempt_newest"),
        ]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(state__in=WebhookState.values), name="webhook_attempt_state"
            ),
        ]

    @override
    def __str__(self) -> str:
        return f"{self.message_id} for {self.webhook_id}: {self.state}"


class Feed(models.Model):
    """A fact that waits for its message. Written by the statement that counts it, and only if a
    webhook of the channel wants it. What `subject` and `second` are depends on the kind
    (channels_app/feeds.py). `unreadable_at`: set aside, because no message can be made of it."""

    id = models.BigAutoField(primary_key=True)
    channel_id = models.UUIDField()
    kind = models.CharField(max_length=32)
    subject = models.UUIDField()
    second = models.UUIDField(null=True)
    code = models.CharField(max_length=64, db_default="")
    platform = models.CharField(max_length=7, db_default="")
    at = models.DateTimeField(db_default=Now())
    unreadable_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [
            models.Index(
                fields=["channel_id", "kind", "id"],
                condition=models.Q(unreadable_at__isnull=True),
                name="feed_of_kind",
            ),
            models.Index(
                fields=["unreadable_at"],
                condition=models.Q(unreadable_at__isnull=False),
                name="feed_unreadable",
            ),
        ]

    @override
    def __str__(self) -> str:
        return f"{self.kind} {self.subject}"


class Alert(models.Model):
    """When members and webhooks were last told of a finding about a channel (see
    notifications_app/alerts.py). `subject`: what it is about, if the channel can have several: a
    platform, a push service, the id of a key or of a webhook."""

    channel = models.ForeignKey(Channel, on_delete=models.CASCADE, related_name="+", db_index=False)
    code = models.CharField(max_length=32)
    subject = models.CharField(max_length=255, blank=True)
    told_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["channel", "code", "subject"], name="alert_once")
        ]

    @override
    def __str__(self) -> str:
        return f"{self.code} {self.subject}"
