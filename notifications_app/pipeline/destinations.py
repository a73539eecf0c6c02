"""Reads what a transport needs for recipients: destinations and credentials, as plain values."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from uuid import UUID

import structlog

from channels_app.selectors import DecryptedCredentials, credential_for, vapid_private_keys
from notifications_app.content.tracking import make_token
from notifications_app.delivery.registry import (
    Credentials,
    VapidKey,
    VapidKeys,
    parse_credentials,
)
from notifications_app.delivery.types import BrowserDestination, Destination
from pushsvc.common.platforms import Platform
from pushsvc.common.store.crypto import SecretUnreadable
from subscriptions_app.devices.selectors import DeliveryDevice, delivery_devices

logger = structlog.stdlib.get_logger(__name__)


class CredentialsMissing(Exception):
    """The platform has no credentials, or it is paused because they were refused."""


class CredentialsUnreadable(Exception):
    """The stored credentials of this version are not valid for the platform."""

    def __init__(self, version: int) -> None:
        super().__init__(version)
        self.version = version


@dataclass(frozen=True)
class Reachable:
    """`devices`: devices with an active subscription, by its id. `credential_version`: the version
    that a refusal pauses; 0 if the platform cannot be paused."""

    devices: Mapping[UUID, DeliveryDevice]
    credentials: Credentials | VapidKeys
    credential_version: int = 0


def read_destinations(
    platform: Platform,
    channel_id: UUID,
    subscription_ids: Collection[UUID],
    *,
    needed: Collection[str],
    even_paused: bool = False,
) -> Reachable:
    """Reads the current subscriptions and credentials. `needed`: the fields of subscriptions that
    texts need. `even_paused`: whether to use credentials that were refused. Raises
    CredentialsMissing, CredentialsUnreadable, or SecretUnreadable if CREDENTIAL_KEYS lacks a key.
    """
    found = delivery_devices(subscription_ids, asked=needed)
    devices = {each.id: each for each in found if each.active}
    if platform == Platform.WEB:
        key_ids = {each.vapid_key_id for each in devices.values() if each.vapid_key_id}
        return Reachable(devices, _vapid_keys(key_ids))
    find = stored_credentials if even_paused else _usable_credentials
    credentials = find(platform, channel_id)
    return Reachable(devices, credentials, credentials.version)


def destination_of(
    platform: Platform, notification_id: UUID, device: DeliveryDevice
) -> Destination:
    """The device as a destination for transports, with its tracking token for this notification."""
    token = make_token(notification_id, device.id)
    if platform != Platform.WEB:
        return Destination(device.id, device.address, token)
    if device.vapid_key_id is None:
        raise ValueError("a web subscription always has a VAPID key")
    return BrowserDestination(
        device.id, device.address, token, device.p256dh, device.auth, device.vapid_key_id
    )


def _vapid_keys(ids: set[UUID]) -> VapidKeys:
    """The VAPID keys by id. Empty if CREDENTIAL_KEYS lacks a key: then the recipients are deferred,
    so nothing is lost if an operator restores the key in time."""
    try:
        keys = vapid_private_keys(ids)
    except SecretUnreadable:
        logger.error("credentials.unreadable", remedy="restore the key in CREDENTIAL_KEYS")
        return {}
    return {id_: VapidKey(*key) for id_, key in keys.items()}


def stored_credentials(platform: Platform, channel_id: UUID) -> Credentials:
    """The channel's credentials for Android or iOS, paused or not. Raises CredentialsMissing,
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
    except ValueError:  # its text may contain part of the secret
        raise CredentialsUnreadable(stored.version) from None
