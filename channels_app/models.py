"""Accounts, channels, their keys and credentials, and their totals."""

from datetime import datetime
from typing import Any, NamedTuple

from django.conf import settings
from django.db import models
from django.db.models.functions import Now
from typing_extensions import override

from pushsvc.common.ids import uuid7
from pushsvc.common.links import CLICK_DEFAULT, CLICKS
from pushsvc.common.platforms import Platform


class Account(models.Model):
    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    name = models.CharField(max_length=200, unique=True)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    requires_two_step = models.BooleanField(
        default=False, help_text="Members can do nothing until they set it up."
    )

    @override
    def __str__(self) -> str:
        return self.name


class Role(models.TextChoices):
    """What a member of an account may do. A role includes all roles before it."""

    VIEWER = "viewer", "Viewer: reads everything but secrets"
    SENDER = "sender", "Sender: composes, schedules, tests and cancels notifications"
    EDITOR = "editor", "Editor: creates and changes segments"
    MANAGER = "manager", "Manager: changes channels, keys, credentials; deletes and exports"
    OWNER = "owner", "Owner: chooses the account's members and their roles"

    def includes(self, other: "Role") -> bool:
        """Whether this role may do everything that `other` may."""
        ranks = list(Role)
        return ranks.index(self) >= ranks.index(other)


class Membership(models.Model):
    """A member of staff in an account (see channels_app/console/access.py)."""

    account = models.ForeignKey(Account, on_delete=models.CASCADE, related_name="memberships")
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="memberships"
    )
    role = models.CharField(max_length=7, choices=Role.choices, default=Role.VIEWER)
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["account", "user"], name="membership_once"),
            models.CheckConstraint(
                condition=models.Q(role__in=["viewer", "sender", "editor", "manager", "owner"]),
                name="membership_role",
            ),
        ]

    @override
    def __str__(self) -> str:
        return f"{self.user} in {self.account}: {self.role}"


class CacheEntry(models.Model):
    """The table of Django's database cache, in which django-allauth keeps which codes of two-step
    sign-in were used, and how many were wrong."""

    cache_key = models.CharField(max_length=255, primary_key=True)
    value = models.TextField()
    expires = models.DateTimeField(db_index=True)


class Mail(models.Model):
    """A mail that waits to be sent: to an invited user, or to the users with `address`, for which a
    new password was requested (see channels_app/sign_in/mails.py)."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.CASCADE, related_name="+"
    )
    account = models.ForeignKey(Account, null=True, on_delete=models.CASCADE, related_name="+")
    address = models.CharField(max_length=254, blank=True)
    asked_from = models.CharField(max_length=45, blank=True)
    attempts = models.PositiveSmallIntegerField(default=0)
    due_at = models.DateTimeField(db_default=Now(), db_index=True)


class Identity(models.TextChoices):
    """Which proof a channel requires that a device belongs to a person."""

    PROOF = "proof", "Proof: only a token that the owner's backend signed"
    TRUST = "trust", "Trust: anyone can receive anybody's messages"
    OFF = "off", "Off: devices belong to nobody"


class Channel(models.Model):
    """A container of subscriptions and notifications with its own keys and credentials."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    account = models.ForeignKey(Account, on_delete=models.PROTECT, related_name="channels")
    name = models.CharField(max_length=200)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    web_enabled = models.BooleanField(default=True)
    android_enabled = models.BooleanField(default=False)
    ios_enabled = models.BooleanField(default=False)
    vapid_subject = models.CharField(max_length=255)
    site_url = models.CharField(
        max_length=2000,
        blank=True,
        default="",
        help_text="Opened by a click if the notification has no url and the worker is gone.",
    )
    web_click = models.CharField(
        max_length=8,
        choices=list(CLICKS.items()),
        default=CLICK_DEFAULT,
        help_text="What a click does if the send has no `web.click`.",
    )
    prompt = models.JSONField(
        null=True,
        blank=True,
        help_text="Options of prompt.mjs, as the console sets them, and whether `isOn`.",
    )
    sends_per_second = models.PositiveIntegerField(
        null=True, blank=True, help_text="For all keys together. Null: the installation's default."
    )
    subscribes_per_minute = models.PositiveIntegerField(
        null=True, blank=True, help_text="For each address. Null: the installation's default."
    )
    max_subscriptions = models.PositiveIntegerField(
        null=True,
        blank=True,
        help_text="Includes expired subscriptions. Null: the installation's default.",
    )
    identity = models.CharField(max_length=5, choices=Identity.choices, default=Identity.PROOF)
    category_required = models.BooleanField(
        default=False, help_text="Sends to the channel or to a rule must name a category."
    )

    @override
    def __str__(self) -> str:
        return self.name

    @property
    def most_subscriptions(self) -> int:
        own = self.max_subscriptions
        return settings.SUBSCRIPTIONS_PER_CHANNEL if own is None else own

    @property
    def platforms(self) -> dict[str, bool]:
        return {
            Platform.WEB.value: self.web_enabled,
            Platform.ANDROID.value: self.android_enabled,
            Platform.IOS.value: self.ios_enabled,
        }


class Scope(models.TextChoices):
    SEND = "send"
    READ = "read"
    MANAGE = "manage"
    SUBSCRIBERS = "subscribers"


class ApiKey(models.Model):
    """A key of one channel. Only the SHA-256 of its text is stored (channels_app/keys.py)."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    channel = models.ForeignKey(Channel, on_delete=models.CASCADE, related_name="api_keys")
    public_id = models.CharField(max_length=8, unique=True, editable=False)
    secret_sha256 = models.CharField(max_length=64, editable=False)
    name = models.CharField(max_length=200, blank=True)
    scopes: Any = models.JSONField(default=list)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True, editable=False)

    @override
    def __str__(self) -> str:
        return self.name or f"psk_{self.public_id}_…"


class VapidKey(models.Model):
    """A key pair of a channel (RFC 8292). A retired key still serves its subscriptions."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    channel = models.ForeignKey(Channel, on_delete=models.CASCADE, related_name="vapid_keys")
    public_key = models.CharField(max_length=87, editable=False)
    private_key_encrypted = models.TextField(editable=False)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    retired_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["channel", "public_key"], name="vapid_key_once_per_channel"
            ),
            models.UniqueConstraint(
                fields=["channel"],
                condition=models.Q(retired_at__isnull=True),
                name="vapid_key_one_current",
            ),
        ]

    @override
    def __str__(self) -> str:
        return self.public_key


class IdentityKey(models.Model):
    """A key with which the owner's backend signs to which person a device belongs (RFC 7519).
    Tokens of a retired key are refused. An HS256 key has a secret; an ES256 key has only its public
    key here."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    channel = models.ForeignKey(Channel, on_delete=models.CASCADE, related_name="identity_keys")
    algorithm = models.CharField(max_length=5, choices=[("HS256", "HS256"), ("ES256", "ES256")])
    secret_encrypted = models.TextField(blank=True, default="", editable=False)
    public_key = models.TextField(blank=True, default="", editable=False)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    retired_at = models.DateTimeField(null=True, blank=True)

    @override
    def __str__(self) -> str:
        return f"{self.algorithm} {self.id}"


class Tries(NamedTuple):
    """Of a paused platform: its last retry, whether that was refused (else there was no response),
    and its next retry."""

    last_at: datetime | None
    is_refused: bool
    next_at: datetime


class ProviderCredential(models.Model):
    """A channel's credentials for FCM or APNs. A pause belongs to the version that was refused.

    Who pauses also writes the last check, and an accepted check ends the pause.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    channel = models.ForeignKey(Channel, on_delete=models.CASCADE, related_name="credentials")
    platform = models.CharField(max_length=7, choices=[("android", "android"), ("ios", "ios")])
    version = models.PositiveIntegerField(default=1)
    secret_encrypted = models.TextField(editable=False)
    facts: Any = models.JSONField(
        default=dict, help_text="What may be shown: project, key id, team, topic, environment."
    )
    updated_at = models.DateTimeField(db_default=Now())
    paused_at = models.DateTimeField(null=True, blank=True)
    paused_code = models.CharField(max_length=64, blank=True, default="")
    paused_detail = models.CharField(max_length=200, blank=True, default="")
    # These three have no meaning while `paused_at` is null.
    retry_at = models.DateTimeField(
        db_default=Now(), help_text="The next retry of a paused platform."
    )
    retried_at = models.DateTimeField(
        null=True, blank=True, help_text="The last retry of a paused platform."
    )
    retries = models.PositiveSmallIntegerField(
        default=0, db_default=0, help_text="The number of retries of a paused platform."
    )
    checked_at = models.DateTimeField(null=True, blank=True)
    is_accepted = models.BooleanField(
        null=True, blank=True, help_text="By the last check of this version. Null: no response."
    )
    checked_words = models.CharField(
        max_length=300, blank=True, default="", help_text="The response to the last check."
    )

    class Meta:
        indexes = [
            models.Index(
                fields=["updated_at"],
                condition=models.Q(checked_at__isnull=True),
                name="credential_unchecked",
            ),
            models.Index(
                fields=["paused_at"],
                condition=models.Q(paused_at__isnull=False),
                name="credential_paused",
            ),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["channel", "platform"], name="credential_one_per_platform"
            ),
            models.CheckConstraint(
                condition=models.Q(platform__in=["android", "ios"]), name="credential_platform"
            ),
        ]

    @override
    def __str__(self) -> str:
        return f"{self.platform} v{self.version}"

    @property
    def tries(self) -> Tries | None:
        """Of the paused platform; None if it is not paused."""
        if self.paused_at is None:
            return None
        is_after = self.retried_at is not None and self.retried_at > self.paused_at
        last_at = self.retried_at if is_after else None
        return Tries(last_at, self.is_accepted is False, self.retry_at)


class ChannelCounter(models.Model):
    """A share of a channel's totals. A share may be negative, but the sum never is."""

    pk = models.CompositePrimaryKey("channel_id", "shard")
    channel = models.ForeignKey(Channel, on_delete=models.CASCADE, related_name="counters")
    shard = models.SmallIntegerField()
    web_subscribers = models.BigIntegerField(default=0, db_default=0)
    android_subscribers = models.BigIntegerField(default=0, db_default=0)
    ios_subscribers = models.BigIntegerField(default=0, db_default=0)
    stored_subscriptions = models.BigIntegerField(
        default=0, db_default=0, help_text="Rows, including expired subscriptions."
    )
    notifications_sent = models.BigIntegerField(default=0, db_default=0)
    recipients = models.BigIntegerField(default=0, db_default=0)
    delivered = models.BigIntegerField(default=0, db_default=0)
    bounced = models.BigIntegerField(default=0, db_default=0)
    clicked = models.BigIntegerField(default=0, db_default=0)
    people = models.BigIntegerField(
        default=0, db_default=0, help_text="Persons that have an active device."
    )
    linked_devices = models.BigIntegerField(
        default=0, db_default=0, help_text="Active devices that belong to a person."
    )

    @override
    def __str__(self) -> str:
        return f"{self.channel_id} shard {self.shard}"


class ChannelHour(models.Model):
    """A share of how an hour (UTC) changed a channel's totals, for charts.

    A transaction counts only its net change, so a device that moves to another address is neither
    gained nor lost. The shares of past hours are merged into share 0.
    """

    pk = models.CompositePrimaryKey("channel_id", "hour", "shard")
    channel = models.ForeignKey(Channel, on_delete=models.CASCADE, related_name="+", db_index=False)
    hour = models.DateTimeField()
    shard = models.SmallIntegerField()
    web_gained = models.BigIntegerField(default=0, db_default=0)
    web_lost = models.BigIntegerField(default=0, db_default=0)
    android_gained = models.BigIntegerField(default=0, db_default=0)
    android_lost = models.BigIntegerField(default=0, db_default=0)
    ios_gained = models.BigIntegerField(default=0, db_default=0)
    ios_lost = models.BigIntegerField(default=0, db_default=0)
    notifications_sent = models.BigIntegerField(default=0, db_default=0)

    class Meta:
        indexes = [
            models.Index(fields=["hour"], name="channel_hour"),
            models.Index(
                fields=["hour"], condition=~models.Q(shard=0), name="channel_hour_unmerged"
            ),
        ]

    @override
    def __str__(self) -> str:
        return f"{self.channel_id} {self.hour:%Y-%m-%d %H:00} shard {self.shard}"


class PromptKind(models.TextChoices):
    BELL = "bell"
    SLIDE_IN = "slide-in"
    BUTTON = "button"
    CATEGORIES = "categories"


PROMPT_EVENTS = ("shown", "accepted", "refused", "blocked")  # columns of PromptHour


class PromptHour(models.Model):
    """A share of what visitors of the channel's sites did with one kind of prompt in an hour (UTC).

    Sites report it without a proof. The shares of past hours are merged into share 0.
    """

    pk = models.CompositePrimaryKey("channel_id", "hour", "kind", "shard")
    channel = models.ForeignKey(Channel, on_delete=models.CASCADE, related_name="+", db_index=False)
    hour = models.DateTimeField()
    kind = models.CharField(max_length=10, choices=PromptKind.choices)
    shard = models.SmallIntegerField()
    shown = models.BigIntegerField(default=0, db_default=0)
    accepted = models.BigIntegerField(default=0, db_default=0)
    refused = models.BigIntegerField(default=0, db_default=0)
    blocked = models.BigIntegerField(default=0, db_default=0)

    class Meta:
        indexes = [
            models.Index(
                fields=["hour"], condition=~models.Q(shard=0), name="prompt_hour_unmerged"
            ),
        ]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(kind__in=PromptKind.values), name="prompt_hour_kind"
            ),
        ]

    @override
    def __str__(self) -> str:
        return f"{self.channel_id} {self.hour:%Y-%m-%d %H:00} {self.kind} shard {self.shard}"


class Webhook(models.Model):
    """An address of the owner's backend, to which messages about `events` are sent.

    `disabled_code`: why the service disabled it; empty if the owner did. A webhook that the service
    disabled still gets messages, which fail at once and can be replayed.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    channel = models.ForeignKey(Channel, on_delete=models.CASCADE, related_name="webhooks")
    url = models.CharField(max_length=2000)
    description = models.CharField(max_length=200, blank=True, default="")
    events: Any = models.JSONField(default=list)
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

    @override
    def __str__(self) -> str:
        return self.description or self.origin

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
    (channels_app/feeds.py)."""

    id = models.BigAutoField(primary_key=True)
    channel_id = models.UUIDField()
    kind = models.CharField(max_length=32)
    subject = models.UUIDField()
    second = models.UUIDField(null=True)
    code = models.CharField(max_length=64, db_default="")
    platform = models.CharField(max_length=7, db_default="")
    at = models.DateTimeField(db_default=Now())

    class Meta:
        indexes = [models.Index(fields=["channel_id", "kind", "id"], name="feed_of_kind")]

    @override
    def __str__(self) -> str:
        return f"{self.kind} {self.subject}"
