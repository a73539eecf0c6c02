"""What a transport needs of a batch's recipients: targets and credentials, as plain values."""

import logging
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from channels_app.selectors import DecryptedCredentials, credential_for, vapid_private_keys
from notifications_app.delivery.registry import (
    Credentials,
    VapidKey,
    VapidKeys,
    parse_credentials,
)
from notifications_app.delivery.types import BrowserTarget, Message, Target
from notifications_app.models import Notification
from notifications_app.tracking import make_token
from pushsvc.common.platforms import Platform
from pushsvc.common.store.crypto import SecretUnreadable
from subscriptions_app.selectors import DeliveryTarget, delivery_targets

logger = logging.getLogger(__name__)


class CredentialsMissing(Exception):
    """The platform has no credentials, or they were refused and not yet replaced."""


class CredentialsUnreadable(Exception):
    """The stored credentials of this version are none of the platform's."""

    def __init__(self, version: int) -> None:
        super().__init__(version)
        self.version = version


@dataclass(frozen=True)
class BatchTargets:
    """`by_id`: the targets of the active subscriptions. `registered_at`: when each last registered.
    `unproven`: those that never took a message. `credential_version`: the version that a refusal of
    the credentials is about; 0 if the platform cannot be paused."""

    by_id: Mapping[UUID, Target]
    registered_at: Mapping[UUID, datetime]
    unproven: Set[UUID]
    credentials: Credentials | VapidKeys
    credential_version: int = 0


def read_targets(
    platform: Platform, channel_id: UUID, notification_id: UUID, subscription_ids: Sequence[UUID]
) -> BatchTargets:
    """Reads subscriptions and credentials as they are now. A subscription that is missing or
    inactive has no target. Raises CredentialsMissing, CredentialsUnreadable, or SecretUnreadable if
    CREDENTIAL_KEYS lacks a key.
    """
    active = [device for device in delivery_targets(subscription_ids) if device.active]
    registered_at = {device.id: device.registered_at for device in active}
    unproven = {device.id for device in active if not device.is_proven}
    if platform == Platform.WEB:
        browsers = {device.id: _browser(notification_id, device) for device in active}
        keys = _vapid_keys({target.vapid_key_id for target in browsers.values()})
        return BatchTargets(browsers, registered_at, unproven, keys)
    credentials = _usable_credentials(platform, channel_id)
    phones = {device.id: _phone(notification_id, device) for device in active}
    return BatchTargets(phones, registered_at, unproven, credentials, credentials.version)


def message_of(notification: Notification, *, expires_at: float) -> Message:
    """The notification as transports know it. `expires_at`: its deadline on the monotonic clock."""
    return Message(notification.id, notification.content, expires_at)


def _vapid_keys(ids: set[UUID]) -> VapidKeys:
    """None if CREDENTIAL_KEYS lacks a key. The recipients are then deferred, so nothing is lost if
    an operator restores the key in time."""
    try:
        keys = vapid_private_keys(ids)
    except SecretUnreadable:
        logger.error(
            "credentials.unreadable", extra={"remedy": "restore the key in CREDENTIAL_KEYS"}
        )
        return {}
    return {id_: VapidKey(*key) for id_, key in keys.items()}


def stored_credentials(platform: Platform, channel_id: UUID) -> Credentials:
    """The credentials for Android or iOS, paused or not. Raises CredentialsMissing,
    CredentialsUnreadable, or SecretUnreadable if CREDENTIAL_KEYS lacks a key."""
    return _parsed(platform, credential_for(channel_id, platform))


def _usable_credentials(platform: Platform, channel_id: UUID) -> Credentials:
    stored = credential_for(channel_id, platform)
    return _parsed(platform, None if stored is None or stored.is_paused else stored)


def _parsed(platform: Platform, stored: DecryptedCredentials | None) -> Credentials:
    if stored is None:
        raise CredentialsMissing
    try:
        return parse_credentials(platform, stored.secret, stored.version)
    except ValueError:  # its text may contain a part of the secret
        raise CredentialsUnreadable(stored.version) from None


def _browser(notification_id: UUID, device: DeliveryTarget) -> BrowserTarget:
    if device.vapid_key_id is None:
        raise ValueError("a web subscription always has a VAPID key")
    return BrowserTarget(
        subscription_id=device.id,
        address=device.address,
        p256dh=device.p256dh,
        auth=device.auth,
        vapid_key_id=device.vapid_key_id,
        token=make_token(notification_id, device.id),
    )


def _phone(notification_id: UUID, device: DeliveryTarget) -> Target:
    return Target(device.id, device.address, make_token(notification_id, device.id))
