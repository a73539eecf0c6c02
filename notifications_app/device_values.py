"""The values of placeholders for one stored device."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from notifications_app.content.personal import values_of
from notifications_app.content.placeholders import Values
from notifications_app.models import Notification
from notifications_app.selectors import still_named
from subscriptions_app.models import Subscription


def device_values(
    device: Subscription, *, notification_id: UUID, sent_vars: Mapping[str, Any]
) -> Values:
    """The same values as a worker reads. Reads the device's person if it is not loaded yet."""
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
    """The values for a device that the notification was sent to. If the device was deleted, only
    the values of the send."""
    pair = notification.pk, subscription_id
    named = still_named([pair]).get(pair) if notification.has_targets else None
    sent_vars = {**notification.content.vars, **(named.vars if named else {})}
    if device is None:
        return values_of(platform="", notification_id=str(notification.pk), sent_vars=sent_vars)
    return device_values(device, notification_id=notification.pk, sent_vars=sent_vars)


def spoken_by(device: Subscription) -> str:
    """The device's language, or its attribute `language`, or ""."""
    return device.language or str(device.attributes.get("language", ""))
