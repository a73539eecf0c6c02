"""Subscriptions (one browser or phone of a channel) and segments."""

import json
from collections.abc import Mapping
from datetime import timedelta
from hashlib import sha256
from typing import Any, Final, Self
from uuid import UUID

from django.contrib.auth.models import User
from django.contrib.postgres.indexes import GinIndex
from django.db import models
from django.db.models.functions import Now
from typing_extensions import override

from channels_app.models import Channel, VapidKey
from pushsvc.common.ids import uuid7
from pushsvc.common.platforms import PLATFORM_CHOICES, PLATFORM_VALUES, Platform
from pushsvc.common.store import sql

MAX_SEGMENT_NAME: Final = 100
MAX_DEVICE_NAME: Final = 50


_REVISIT = """
UPDATE subscriptions_app_subscription
SET registered_at = clock_timestamp(), p256dh = %(p256dh)s, push_service = %(push_service)s,
  attributes = coalesce(%(attributes)s::jsonb, attributes)
WHERE channel_id = %(channel)s AND platform = %(platform)s AND address_sha256 = %(digest)s
  AND NOT is_set_aside AND expired_at IS NULL AND sha256(convert_to(auth, 'UTF8')) = %(auth)s
  AND (%(vapid_key)s::uuid IS NULL OR vapid_key_id = %(vapid_key)s::uuid)
RETURNING id
"""


class SubscriptionQuerySet(models.QuerySet["Subscription"]):
    def active(self) -> Self:
        return self.filter(expired_at__isnull=True)

    def expired_for(self, days: int) -> Self:
        return self.filter(expired_at__lt=Now() - timedelta(days=days))

    def revisited(
        self,
        channel_id: UUID,
        platform: Platform,
        facts: Mapping[str, Any],
        vapid_key_id: UUID | None,
    ) -> UUID | None:
        """Stores the visit of a device whose active subscription is at the address of `facts` and
        has its `auth`, and the VAPID key if one is given. None if there is no such subscription.

        Raw, because the ORM has no RETURNING for an update. One statement needs no address lock: if
        a registration changes the row meanwhile, PostgreSQL evaluates the condition again. It
        compares hashes of `auth`, so that its time reveals nothing about the stored one.
        """
        parameters = {
            "channel": channel_id,
            "platform": str(platform),
            "digest": facts["address_sha256"],
            "auth": sha256(facts["auth"].encode()).digest(),
            "vapid_key": vapid_key_id,
            "p256dh": facts["p256dh"],
            "push_service": facts["push_service"],
            "attributes": json.dumps(facts["attributes"]) if "attributes" in facts else None,
        }
        found = sql.rows(_REVISIT, parameters)
        return found[0][0] if found else None

    def locked_or_skipped(self) -> Self:
        """Locks the rows for deletion. Leaves out those that others have locked, because their
        device is registering right now."""
        return self.select_for_update(skip_locked=True)


class Subscription(models.Model):
    """Identified by channel, platform and address. Active while `expired_at` is null.

    An expired subscription is kept for a while, so that a device that returns has its id and
    attributes again. In a full channel, a row that is not `is_proven` may be deleted (room.py).

    If a device registers an address without proof that it is the same device, the row that was
    there is set aside: it expires, and becomes active again when its own device returns.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    channel = models.ForeignKey(Channel, on_delete=models.CASCADE, related_name="subscriptions")
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
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    registered_at = models.DateTimeField(
        db_default=Now(), help_text="The last time that the device itself said it is there."
    )
    expired_at = models.DateTimeField(null=True, blank=True)
    expired_code = models.CharField(max_length=64, blank=True, default="")
    is_proven = models.BooleanField(
        default=False,
        db_default=False,
        editable=False,
        help_text="A push service has taken a message for it.",
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
            models.Index(
                fields=["expired_at"],
                condition=models.Q(expired_at__isnull=False),
                name="subscription_expired",
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
        ]

    @override
    def __str__(self) -> str:
        return str(self.id)


class Segment(models.Model):
    """A named rule that selects subscriptions of a channel. It is evaluated at each use."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    channel = models.ForeignKey(Channel, on_delete=models.CASCADE, related_name="segments")
    name = models.CharField(max_length=MAX_SEGMENT_NAME)
    rule: Any = models.JSONField(help_text="As docs/segments.md says; checked by the services.")
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    updated_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["channel", "name"], name="segment_name_once"),
        ]

    @override
    def __str__(self) -> str:
        return self.name


class TestDevice(models.Model):
    """A device on which staff look at notifications before they send them, with a name for people.

    Without a foreign key, because subscriptions are deleted by statements of their own. A test
    device whose subscription is gone says so until somebody removes it.
    """

    __test__ = False  # for pytest

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    channel = models.ForeignKey(Channel, on_delete=models.CASCADE, related_name="test_devices")
    name = models.CharField(max_length=MAX_DEVICE_NAME)
    subscription_id = models.UUIDField()
    added_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    added_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["channel", "name"], name="test_device_name_once"),
            models.UniqueConstraint(
                fields=["channel", "subscription_id"], name="test_device_subscription_once"
            ),
        ]

    @override
    def __str__(self) -> str:
        return self.name
