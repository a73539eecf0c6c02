"""Devices come, change their address, and go; the channel's subscriber counters follow.

Lock order, here and wherever subscriptions are written: address locks in key order, subscription
rows in id order, then the channel's counters, once for each transaction.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models.functions import Now

from channels_app.models import Channel
from channels_app.selectors import current_vapid_key
from channels_app.services import counter_add
from pushsvc.common import sql
from pushsvc.common.endpoints import TOKEN_SERVICES, EndpointNotAllowed, check_endpoint
from pushsvc.common.platforms import Platform
from subscriptions_app import selectors
from subscriptions_app.addresses import address_digest, device_address
from subscriptions_app.errors import EndpointRefused, PlatformNotEnabled, VapidKeyUnknown
from subscriptions_app.models import Subscription

UNSUBSCRIBED = "unsubscribed"
REPLACED = "replaced"


@dataclass(frozen=True, slots=True)
class GoneSubscription:
    """`as_of`: the device is known to be gone only if it has not registered after this moment."""

    id: UUID
    as_of: datetime
    code: str


def subscription_register(
    *,
    channel: Channel,
    platform: str,
    address: str,
    p256dh: str = "",
    auth: str = "",
    attributes: Mapping[str, Any] | None = None,
    vapid_public_key: str | None = None,
    previous_endpoint: str | None = None,
) -> tuple[Subscription, bool]:
    """The device's active subscription, and whether it was not known before.

    Known by its address, else by `previous_endpoint`, whose subscription then moves to the new
    address. Where both are known the old one expires. `attributes` None keeps what is stored.
    Safe to repeat, also at the same time. Raises PlatformNotEnabled, EndpointRefused,
    VapidKeyUnknown.
    """
    if not channel.platforms[platform]:
        raise PlatformNotEnabled("platform", platform)
    facts: dict[str, Any] = {"p256dh": p256dh, "auth": auth}
    facts |= _address_facts(platform, address)
    if attributes is not None:
        facts["attributes"] = dict(attributes)
    previous = device_address(platform, previous_endpoint or address)
    with transaction.atomic():
        digests = sorted({facts["address_sha256"], address_digest(previous)})
        facts["registered_at"] = _lock_addresses(channel.id, platform, digests)
        known = _known(channel.id, platform, digests)
        here = known.pop(facts["address_sha256"], None)
        facts["vapid_key_id"] = _vapid_key_id(channel, platform, vapid_public_key, here)
        return _settle(channel.id, platform, here, next(iter(known.values()), None), facts)


def subscription_unsubscribe(*, channel: Channel, platform: str, address: str) -> None:
    """The device's subscription is not active afterwards, known or not. Safe to repeat."""
    digest = address_digest(device_address(platform, address))
    with transaction.atomic():
        expired = Subscription.objects.filter(
            channel=channel, platform=platform, address_sha256=digest, expired_at=None
        ).update(expired_at=Now(), expired_code=UNSUBSCRIBED)
        _count(channel.id, {platform: -expired})


def subscriptions_expire(*, channel_id: UUID, gone: Sequence[GoneSubscription]) -> int:
    """Expire those that are active and have not registered since; how many there were.

    To be called in the transaction that records why. Safe to repeat.
    """
    parameters = {
        "channel": channel_id,
        "ids": [each.id for each in gone],
        "as_of": [each.as_of for each in gone],
        "codes": [each.code for each in gone],
    }
    with transaction.atomic():
        platforms = Counter(platform for (platform,) in sql.rows(_EXPIRE, parameters))
        _count(channel_id, {platform: -number for platform, number in platforms.items()})
    return platforms.total()


def expired_purge(limit: int) -> int:
    """Delete at most `limit` subscriptions that expired SUBSCRIPTION_RETENTION_DAYS ago."""
    days = settings.SUBSCRIPTION_RETENTION_DAYS
    return sql.execute(_PURGE, {"days": days, "limit": limit})


def _address_facts(platform: str, text: str) -> dict[str, Any]:
    address = device_address(platform, text)
    return {
        "address": address,
        "address_sha256": address_digest(address),
        "push_service": _push_service(platform, address),
    }


def _push_service(platform: str, address: str) -> str:
    if platform != Platform.WEB:
        return TOKEN_SERVICES[platform]
    try:
        return check_endpoint(
            address,
            trusted_origins=settings.WEBPUSH_TRUSTED_ORIGINS,
            allowed_hosts=settings.WEBPUSH_ALLOWED_HOSTS,
        ).service
    except EndpointNotAllowed as error:
        raise EndpointRefused(error.reason) from error


def _lock_addresses(channel_id: UUID, platform: str, digests: Sequence[bytes]) -> datetime:
    """One registration of an address at a time, known or not yet; the moment it was locked.

    A row lock would not do: there may be no row yet, and two would be inserted or moved here.
    """
    names = [f"{channel_id} {platform} {digest.hex()}" for digest in digests]
    locked = [sql.rows(_LOCK, {"name": name}) for name in names]
    moment: datetime = locked[-1][0][1]
    return moment


def _known(channel_id: UUID, platform: str, digests: Sequence[bytes]) -> dict[bytes, Subscription]:
    rows = Subscription.objects.filter(
        channel_id=channel_id, platform=platform, address_sha256__in=digests
    )
    locked = rows.select_for_update(no_key=True).order_by("id")
    return {bytes(row.address_sha256): row for row in locked}


def _vapid_key_id(
    channel: Channel, platform: str, given: str | None, here: Subscription | None
) -> UUID | None:
    if platform != Platform.WEB:
        return None
    if given is not None:
        key_id = selectors.vapid_key_id(channel.id, given.rstrip("="))
        if key_id is None:
            raise VapidKeyUnknown
        return key_id
    return here.vapid_key_id if here else current_vapid_key(channel).id


def _settle(
    channel_id: UUID,
    platform: str,
    here: Subscription | None,
    previous: Subscription | None,
    facts: dict[str, Any],
) -> tuple[Subscription, bool]:
    known = here or previous
    change = 0 if known and known.expired_at is None else 1
    if here and previous and previous.expired_at is None:
        _write(previous, {"expired_at": facts["registered_at"], "expired_code": REPLACED})
        change -= 1
    facts |= {"expired_at": None, "expired_code": ""}
    if known:
        subscription = _write(known, facts)
    else:
        subscription = Subscription.objects.create(
            channel_id=channel_id, platform=platform, **facts
        )
    _count(channel_id, {platform: change})
    return subscription, known is None


def _write(subscription: Subscription, values: Mapping[str, Any]) -> Subscription:
    for name, value in values.items():
        setattr(subscription, name, value)
    subscription.save(update_fields=list(values))
    return subscription


def _count(channel_id: UUID, changes: Mapping[str, int]) -> None:
    counter_add(channel_id, **{f"{name}_subscribers": change for name, change in changes.items()})


_LOCK = "SELECT pg_advisory_xact_lock(hashtextextended(%(name)s, 0)), clock_timestamp()"

_EXPIRE = """
WITH gone AS (
    SELECT * FROM unnest(%(ids)s::uuid[], %(as_of)s::timestamptz[], %(codes)s::text[])
        AS given (id, as_of, code)
), locked AS (
    SELECT subscription.id, gone.code
    FROM subscriptions_app_subscription AS subscription JOIN gone USING (id)
    WHERE subscription.channel_id = %(channel)s
        AND subscription.expired_at IS NULL
        AND subscription.registered_at <= gone.as_of
    ORDER BY subscription.id
    FOR NO KEY UPDATE OF subscription
)
UPDATE subscriptions_app_subscription AS subscription
SET expired_at = statement_timestamp(), expired_code = locked.code
FROM locked WHERE subscription.id = locked.id
RETURNING subscription.platform
"""

# SKIP LOCKED: one that is just registering again is not old.
_PURGE = """
DELETE FROM subscriptions_app_subscription WHERE id IN (
    SELECT id FROM subscriptions_app_subscription
    WHERE expired_at < statement_timestamp() - make_interval(days => %(days)s)
    ORDER BY expired_at LIMIT %(limit)s
    FOR UPDATE SKIP LOCKED
)
"""
