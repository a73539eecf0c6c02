"""What the placeholders of a notification stand for, of one device as it is stored."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from notifications_app.models import Notification
from notifications_app.personal import values_of
from notifications_app.placeholders import Values
from notifications_app.selectors import still_named
from subscriptions_app.models import Subscription


def device_values(
    device: Subscription, *, notification_id: UUID, sent_vars: Mapping[str, Any]
) -> Values:
    """As a worker finds them. Reads the device's person if that is not loaded yet."""
    return values_of(
        platform=device.platform,
        notification_id=str(notification_id),
        attributes=device.attributes,
        sent_vars=sent_vars,
        external_id=device.person.external_id if device.person else "",
        language=spoken_by(device),
        timezone=device.timezone,
    )


def stored_values(
    notification: Notification, subscription_id: UUID, device: Subscription | None
) -> Values:
    """Of a device that the notification was sent to; of a deleted one, those of the send alone."""
    pair = notification.pk, subscription_id
    named = still_named([pair]).get(pair) if notification.has_targets else None
    sent_vars = {**notification.content.vars, **(named.vars if named else {})}
    if device is None:
        return values_of(platform="", notification_id=str(notification.pk), sent_vars=sent_vars)
    return device_values(device, notification_id=notification.pk, sent_vars=sent_vars)


def spoken_by(device: Subscription) -> str:
    """Its language, else its attribute of this name, else ""."""
    return device.language or str(device.attributes.get("language", ""))
