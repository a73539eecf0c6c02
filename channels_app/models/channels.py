"""Channels, their keys and credentials."""

from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from django.conf import settings
from django.db import models
from django.db.models.functions import Now
from typing_extensions import override

from channels_app.models.accounts import Account
from pushsvc.common.ids import uuid7
from pushsvc.common.links import CLICK_DEFAULT, CLICKS
from pushsvc.common.platforms import Platform
from pushsvc.common.texts import later

MAX_INBOX_DAYS: Final = 30
GRACE: Final = timedelta(days=1)  # in which the deletion of a channel can be undone


class Identity(models.TextChoices):
    """Which proof a channel requires that a device belongs to a person."""

    PROOF = "proof", later("Proof: only a token that the owner's backend signed")
    TRUST = "trust", later("Trust: anyone can receive anybody's messages")
    OFF = "off", later("Off: devices belong to nobody")


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
    timezone = models.CharField(
        max_length=64,
        default="UTC",
        help_text="An IANA name: the zone of devices whose own time zone is unknown.",
    )
    rate_per_minute = models.PositiveIntegerField(
        null=True, blank=True, help_text="Of a send that names no rate. Null: none."
    )
    inbox_days = models.PositiveSmallIntegerField(
        default=0,
        db_default=0,
        help_text="How long devices can list what they were sent. 0: not at all.",
    )
    deletion_asked_at = models.DateTimeField(
        null=True, blank=True, help_text="The channel is deleted GRACE later."
    )
    quiet_hours = models.JSONField(
        null=True,
        blank=True,
        help_text="From and to when, by the recipient's clock, sends wait unless they ignore it.",
    )
    caps = models.JSONField(
        null=True,
        blank=True,
        help_text="How many sends may contact a person: `limit` in `hours`. Null: any number.",
    )

    @override
    def __str__(self) -> str:
        return self.name

    @property
    def is_to_be_deleted(self) -> bool:
        return self.deletion_asked_at is not None

    @property
    def deleted_at(self) -> datetime | None:
        """When housekeeping begins to delete it, which can be undone until then."""
        asked_at = self.deletion_asked_at
        return None if asked_at is None else asked_at + GRACE

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
