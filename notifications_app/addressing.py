"""From a batch's recipients to what a transport needs: targets and credentials, as plain values."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from channels_app.selectors import vapid_private_keys
from notifications_app.delivery import web
from notifications_app.delivery.types import Message
from notifications_app.models import Notification
from notifications_app.tracking import make_token
from pushsvc.common.crypto import SecretUnreadable
from subscriptions_app.selectors import DeliveryTarget, delivery_targets

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Addressed:
    """`targets` by subscription id: those that still can be reached; `registered_at`: when each of
    them last said so. `credential_version` is what a refusal of the credentials would be about; 0
    where the platform cannot be paused."""

    targets: Mapping[UUID, web.Target]
    registered_at: Mapping[UUID, datetime]
    credentials: web.Credentials
    credential_version: int = 0


def address(notification_id: UUID, subscription_ids: Sequence[UUID]) -> Addressed:
    """Reads the devices as they are now; one that is missing or inactive has no target."""
    active = [device for device in delivery_targets(subscription_ids) if device.active]
    targets = {device.id: _web_target(notification_id, device) for device in active}
    return Addressed(
        targets,
        {device.id: device.registered_at for device in active},
        _vapid_keys({target.vapid_key_id for target in targets.values()}),
    )


def message_of(notification: Notification, *, expires_at: float) -> Message:
    """The notification as transports know it; its deadline on this process's clock."""
    return Message(
        notification_id=notification.id,
        title=notification.title,
        body=notification.body,
        icon=notification.icon,
        url=notification.url,
        image=notification.image,
        data=notification.data,
        ttl=notification.ttl,
        expires_at=expires_at,
        urgency=notification.urgency,
        topic=notification.topic,
    )


def _vapid_keys(ids: set[UUID]) -> web.Credentials:
    """Without a key of CREDENTIAL_KEYS there are none: its recipients are deferred, so that an
    operator who restores it in time loses nothing."""
    try:
        keys = vapid_private_keys(ids)
    except SecretUnreadable:
        logger.error(
            "credentials.unreadable", extra={"remedy": "restore the key in CREDENTIAL_KEYS"}
        )
        return web.Credentials({})
    return web.Credentials({id_: web.VapidKey(*key) for id_, key in keys.items()})


def _web_target(notification_id: UUID, device: DeliveryTarget) -> web.Target:
    if device.vapid_key_id is None:
        raise ValueError("a web subscription always has a VAPID key")
    return web.Target(
        subscription_id=device.id,
        endpoint=device.address,
        p256dh=device.p256dh,
        auth=device.auth,
        vapid_key_id=device.vapid_key_id,
        token=make_token(notification_id, device.id),
    )
