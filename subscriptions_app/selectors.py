"""Reads of subscriptions."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from django.db.models import Q

from channels_app.models import VapidKey
from subscriptions_app.models import Subscription


class DeliveryTarget(NamedTuple):
    """Where a message goes. `registered_at` as read here is what a later expiry is judged by:
    a device that registers again afterwards has a later one."""

    id: UUID
    active: bool
    address: str
    p256dh: str
    auth: str
    vapid_key_id: UUID | None
    registered_at: datetime


def delivery_targets(subscription_ids: Sequence[UUID]) -> list[DeliveryTarget]:
    """In no order; an id that no longer exists has no row."""
    found = Subscription.objects.filter(id__in=subscription_ids).annotate(
        active=Q(expired_at__isnull=True)
    )
    return [DeliveryTarget(*row) for row in found.values_list(*DeliveryTarget._fields)]


def vapid_key_id(channel_id: UUID, public_key: str) -> UUID | None:
    """The channel's key pair with this public key, current or retired."""
    keys = VapidKey.objects.filter(channel_id=channel_id, public_key=public_key)
    return keys.values_list("id", flat=True).first()
