"""Subscriptions: one browser or phone of a channel."""

from collections.abc import Collection
from datetime import timedelta
from hmac import compare_digest
from typing import Any, Final, Self
from uuid import UUID

from django.contrib.postgres.indexes import GinIndex
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now
from typing_extensions import override

from channels_app.models import Channel, VapidKey
from pushsvc.common.ids import uuid7
from pushsvc.common.platforms import PLATFORM_CHOICES, PLATFORM_VALUES
from subscriptions_app.models.people import Person

MAX_ATTRIBUTES: Final = 10
MAX_LANGUAGE: Final = 35
MAX_TIMEZONE: Final = 64
# At most one send in this time counts as one that did not find the host's name.
NOT_FOUND_APART: Final = timedelta(days=1)


class SubscriptionQuerySet(models.QuerySet["Subscription"]):
    def active(self) -> Self:
        return self.filter(expired_at__isnull=True)

    def countable(self) -> Self:
        """Those for which one more send that did not find the host's name counts."""
        return self.filter(
            Q(not_found_at__isnull=True)
            | Q(not_found_at__lt=F("registered_at"))
            | Q(not_found_at__lt=Now() - NOT_FOUND_APART)
        )

    def expired_for(self, days: int) -> Self:
        return self.filter(expired_at__lt=Now() - timedelta(days=days))

    def locked_at(self, channel_id: UUID, platform: str, digests: Collection[bytes]) -> Self:
        """Selects and locks the rows at these addresses."""
        rows = self.filter(channel_id=channel_id, platform=platform, address_sha256__in=digests)
        return rows.locked_by_id()

    def locked_by_id(self) -> Self:
        """Locks the rows in the order of ids, as all code does."""
        return self.select_for_update(no_key=True, of=("self",)).order_by("id")

    def locked_or_skipped(self) -> Self:
        """Locks the rows for deletion. Skips locked rows, because their devices are registering."""
        return self.select_for_update(skip_locked=True)


class Subscription(models.Model):
    """A device of a channel, identified by channel, platform and address. Active while `expired_at`
    is null.

    An expired subscription is kept for a while, so that a returning device gets its id and
    attributes back. In a full channel, a row that is not `is_proven` may be deleted
    (devices/capacity.py).

    If a device registers an address without proof that it is the same device, the existing row is
    set aside: it expires, and becomes active again when its own device returns.

    `not_found_at` and `not_found_sends` are void if the device has registered since. An accepted
    message clears them.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    channel = models.ForeignKey(
        Channel, on_delete=models.CASCADE, related_name="subscriptions", db_index=False
    )
    platform = models.CharField(max_length=7, choices=PLATFORM_CHOICES)
    address = models.TextField(help_text="The push endpoint (web) or the provider's token.")
    address_sha256 = models.BinaryField(max_length=32, editable=False)
    is_set_aside = models.BooleanField(default=False, db_default=False, editable=False)
    p256dh = models.CharField(max_length=255, blank=True, default="")
    auth = models.CharField(max_length=255, blank=True, default="")
    vapid_key = models.ForeignKey(VapidKey, null=True, on_delete=models.PROTECT, related_name="+")
    push_service = models.CharField(
        max_length=100, help_text="Which service takes messages for it (pushsvc/common/endpoints)."
    )
    attributes: Any = models.JSONField(default=dict)
    person = models.ForeignKey(
        Person, null=True, on_delete=models.RESTRICT, related_name="devices", db_index=False
    )
    linked_at = models.DateTimeField(
        null=True,
        blank=True,
        editable=False,
        help_text="When its person changed last. A trigger writes it.",
    )
    timezone = models.CharField(
        max_length=MAX_TIMEZONE, blank=True, default="", db_default="", help_text="An IANA name."
    )
    timezone_changed_at = models.DateTimeField(null=True, blank=True)
    language = models.CharField(
        max_length=MAX_LANGUAGE, blank=True, default="", db_default="", help_text="BCP 47."
    )
    choices: Any = models.JSONField(
        default=dict,
        db_default=models.Value({}, output_field=models.JSONField()),
        help_text="By category. A choice of the device's person counts before it.",
    )
    proven_choices: Any = models.JSONField(
        default=dict,
        db_default=models.Value({}, output_field=models.JSONField()),
        editable=False,
        help_text="Those of `choices` that were made with `auth`. A person takes them over.",
    )
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    registered_at = models.DateTimeField(
        db_default=Now(), help_text="The last time that the device itself said it is there."
    )
    expired_at = models.DateTimeField(null=True, blank=True)
    expired_code = models.CharField(max_length=64, blank=True, default="")
    takeover_until = models.DateTimeField(
        null=True,
        editable=False,
        help_text="Set by an import. Until then, the first device that registers the address with"
        " its own `auth` gets a subscription that has none. Null when a person has signed in.",
    )
    is_proven = models.BooleanField(
        default=False,
        db_default=False,
        editable=False,
        help_text="A push service has taken a message for it.",
    )
    not_found_at = models.DateTimeField(
        null=True,
        editable=False,
        help_text="The last send that counted as one that did not find the host's name.",
    )
    not_found_sends = models.SmallIntegerField(
        null=True, editable=False, help_text="How many such sends there were since the last visit."
    )

    objects = SubscriptionQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["channel", "platform", "address_sha256", "is_set_aside"],
                name="subscription_place_once",
            ),
            models.CheckConstraint(
                condition=models.Q(is_set_aside=False) | models.Q(expired_at__isnull=False),
                name="subscription_set_aside_expired",
            ),
            models.CheckConstraint(
                condition=models.Q(platform__in=PLATFORM_VALUES), name="subscription_platform"
            ),
            models.CheckConstraint(
                condition=~models.Q(platform="web") | models.Q(vapid_key__isnull=False),
                name="subscription_web_has_vapid_key",
            ),
        ]
        indexes = [
            models.Index(
                fields=["channel", "platform", "id"],
                condition=models.Q(expired_at__isnull=True),
                name="subscription_active",
            ),
            # For sends by local time.
            models.Index(
                fields=["channel", "platform", "timezone", "id"],
                condition=models.Q(expired_at__isnull=True),
                name="subscription_zone",
            ),
            models.Index(
                fields=["channel", "platform", "timezone_changed_at"],
                condition=models.Q(expired_at__isnull=True, timezone_changed_at__isnull=False),
                name="subscription_moved",
            ),
            models.Index(
                fields=["expired_at"],
                condition=models.Q(expired_at__isnull=False),
                name="subscription_expired",
            ),
            models.Index(
                fields=["channel", "id"],
                condition=models.Q(expired_at__isnull=False),
                name="subscription_ended",  # for the export
            ),
            models.Index(
                fields=["channel", "id"],
                condition=models.Q(is_proven=False),
                name="subscription_unproven",
            ),
            GinIndex(
                fields=["attributes"],
                opclasses=["jsonb_path_ops"],  # for @> only, at half the size
                condition=models.Q(expired_at__isnull=True),
                name="subscription_attributes",
            ),
            models.Index(
                fields=["person"],
                condition=models.Q(person__isnull=False),
                name="subscription_person",
            ),
        ]

    @override
    def __str__(self) -> str:
        return str(self.id)

    @property
    def awaits_login(self) -> bool:
        """Whether an import named its person, and nobody has signed in on the device since. Then
        `auth` does not prove the person, because the first device with the address may have set it.
        """
        return self.takeover_until is not None and self.person_id is not None

    def is_proved_by(self, auth: str) -> bool:
        """Whether a request with this `auth` is the device's. Endpoints and tokens are not secret,
        so an address alone proves nothing. Compares in constant time."""
        is_same = compare_digest(self.auth.encode(), auth.encode())
        return is_same and bool(self.auth) and not self.awaits_login
