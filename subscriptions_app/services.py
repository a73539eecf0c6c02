"""Changes of subscriptions, with the channel's counters, and of segments.

All code that writes subscriptions takes locks in this order: address locks in the order of their
keys, subscription rows in the order of their ids, the channel's room (room.py), then the channel's
counters, in one share for each transaction. The visit of a known device locks only its row.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models.functions import Now
from psycopg.errors import UniqueViolation

from channels_app import audit
from channels_app.counters import counter_add
from channels_app.models import Channel
from channels_app.selectors import current_vapid_key, is_enabled
from pushsvc.common.endpoints import TOKEN_SERVICES, EndpointNotAllowed, check_endpoint
from pushsvc.common.errors import Fault, Invalid
from pushsvc.common.platforms import Platform
from pushsvc.common.store import sql
from subscriptions_app import selectors
from subscriptions_app.addresses import (
    address_digest,
    address_lock,
    device_address,
    url_spelling,
)
from subscriptions_app.claims import Claim, Proof
from subscriptions_app.errors import (
    EndpointRefused,
    PlatformNotEnabled,
    SegmentNameTaken,
    VapidKeyUnknown,
)
from subscriptions_app.models import MAX_SEGMENT_NAME, Segment, Subscription
from subscriptions_app.newcomers import newcomer_store
from subscriptions_app.room import RoomScarce, take_room
from subscriptions_app.segments.rules import rule_faults

UNSUBSCRIBED = "unsubscribed"
REPLACED = "replaced"
EXPIRED_BY_STAFF = "expired_by_staff"


@dataclass(frozen=True, slots=True)
class GoneSubscription:
    """A subscription to expire, unless its device has registered after `as_of`."""

    id: UUID
    as_of: datetime
    code: str


def subscription_register(
    *,
    channel: Channel,
    platform: Platform,
    address: str,
    p256dh: str = "",
    auth: str = "",
    attributes: Mapping[str, Any] | None = None,
    vapid_public_key: str | None = None,
    previous_endpoint: str | None = None,
    previous_auth: str = "",
    previous_subscription_id: UUID | None = None,
) -> tuple[UUID, bool]:
    """Returns the id of the device's active subscription, and whether it is new.

    A device is known by its address and `auth`. It is also known if it proves that it is the device
    of the subscription at `previous_endpoint` (by default the same address). That subscription then
    moves to the address. The proof is its `auth`, sent as `auth` or `previous_auth`, or its id. If
    the device has a subscription at both addresses, the previous one expires. A subscription of
    another device at the address is replaced.

    `attributes` None keeps the stored ones. Safe to repeat, also at the same time. Raises
    PlatformNotEnabled, EndpointRefused, VapidKeyUnknown, SubscriptionsFull.
    """
    if not is_enabled(channel, platform):
        raise PlatformNotEnabled("platform", platform)
    facts: dict[str, Any] = {"p256dh": p256dh, "auth": auth}
    facts |= _address_facts(platform, address)
    if attributes is not None:
        facts["attributes"] = dict(attributes)
    previous = device_address(platform, previous_endpoint or address)
    proof = Proof((auth, previous_auth), previous_subscription_id)

    named_key_id = _named_vapid_key_id(channel, platform, vapid_public_key)
    if previous == facts["address"]:
        known_id = Subscription.objects.revisited(channel.id, platform, facts, named_key_id)
        if known_id is not None:
            return known_id, False
        new_id = newcomer_store(channel, platform, facts, named_key_id)
        if new_id is not None:
            return new_id, True

    def register(*, alone: bool) -> tuple[UUID, bool]:
        with sql.brief_transaction():
            digests = sorted({facts["address_sha256"], address_digest(previous)})
            now = _lock_addresses(channel.id, platform, digests)
            rows = _rows_at(channel.id, platform, digests)
            claim = Claim.of(rows, facts["address_sha256"], auth, proof)
            key_id = named_key_id or _kept_vapid_key_id(channel, platform, claim)
            values = facts | {"registered_at": now, "vapid_key_id": key_id}
            return _store(channel, platform, claim, values, alone=alone)

    try:
        return register(alone=False)
    except RoomScarce:
        return register(alone=True)


def subscription_unsubscribe(*, channel: Channel, platform: Platform, address: str) -> None:
    """Expires the device's subscription if there is an active one. Safe to repeat."""
    digest = address_digest(device_address(platform, address))
    with sql.brief_transaction():
        expired = Subscription.objects.filter(
            channel=channel, platform=platform, address_sha256=digest, expired_at=None
        ).update(expired_at=Now(), expired_code=UNSUBSCRIBED)
        _count(channel.id, {platform: -expired})


def subscriptions_expire(
    *, channel_id: UUID, gone: Sequence[GoneSubscription], proven: Sequence[UUID] = ()
) -> int:
    """Expires those that are active and have not registered since. Returns their number.

    `proven`: other subscriptions, for which a push service took the first message. To be called in
    the transaction that records why. Safe to repeat.
    """
    parameters = {
        "channel": channel_id,
        "ids": [*(each.id for each in gone), *proven],
        "as_of": [*(each.as_of for each in gone), *(None for _ in proven)],
        "codes": [*(each.code for each in gone), *("" for _ in proven)],
    }
    with transaction.atomic():
        changed = sql.rows(_EXPIRE_OR_PROVE, parameters)
        platforms = Counter(platform for platform, is_gone in changed if is_gone)
        _count(channel_id, {platform: -number for platform, number in platforms.items()})
    return platforms.total()


@transaction.atomic
def subscription_expire(*, subscription: Subscription) -> bool:
    """Expires it on behalf of staff. True if it was active. It becomes active at the next visit."""
    before = audit.fields_of(subscription)
    gone = GoneSubscription(subscription.pk, sql.now(), EXPIRED_BY_STAFF)
    if not subscriptions_expire(channel_id=subscription.channel_id, gone=[gone]):
        return False
    subscription.refresh_from_db()
    after = audit.fields_of(subscription)
    audit.record(subscription, audit.Action.UPDATE, before, after, note="Expired by staff.")
    return True


@transaction.atomic
def subscription_forget(*, subscription: Subscription) -> None:
    """Deletes everything stored about the device's address, with keys and attributes.

    Safe to repeat. The log of recipients keeps its outcomes, with an id that no longer exists.
    Messages that are being sent to it bounce as `unsubscribed`.
    """
    digests = [bytes(subscription.address_sha256)]
    for row in _rows_at(subscription.channel_id, Platform(subscription.platform), digests):
        audit.record(row, audit.Action.DELETE, audit.fields_of(row), note="Deleted on request.")
        active = -1 if row.expired_at is None else 0
        row.delete()
        _count(row.channel_id, {row.platform: active}, stored=-1)


def expired_purge(limit: int) -> int:
    """Delete at most `limit` subscriptions that expired SUBSCRIPTION_RETENTION_DAYS ago."""
    days = settings.SUBSCRIPTION_RETENTION_DAYS
    with transaction.atomic():
        old = Subscription.objects.expired_for(days).order_by("expired_at").locked_or_skipped()
        channels = dict(old.values_list("id", "channel_id")[:limit])
        Subscription.objects.filter(id__in=channels).delete()
        purged = Counter(channels.values())
        for channel_id in sorted(purged):
            _count(channel_id, {}, stored=-purged[channel_id])
    return purged.total()


def segment_create(*, channel: Channel, name: str, rule: object) -> Segment:
    """Raises Invalid with every fault of `name` and `rule` (JSON), and SegmentNameTaken."""
    fields = _segment_fields(name, rule)
    with _name_taken():
        segment = Segment.objects.create(channel=channel, **fields)
        audit.record(segment, audit.Action.CREATE, after=audit.fields_of(segment))
    return segment


def segment_update(*, channel_id: UUID, segment_id: UUID, name: str, rule: object) -> Segment:
    """Changes the segment, also for pending notifications. Those in progress do not change.

    Safe to repeat. Raises NotFound, Invalid and SegmentNameTaken.
    """
    fields = _segment_fields(name, rule)
    with _name_taken():
        segment = selectors.segment_locked(
            channel_id=channel_id, segment_id=segment_id, to_edit=True
        )
        before = audit.fields_of(segment)
        Segment.objects.filter(pk=segment.pk).update(**fields, updated_at=Now())
        segment.refresh_from_db()
        audit.record(segment, audit.Action.UPDATE, before, audit.fields_of(segment))
    return segment


def _segment_fields(name: str, rule: object) -> dict[str, Any]:
    faults = []
    if not name.strip() or len(name) > MAX_SEGMENT_NAME or "\x00" in name:
        detail = f"Must have 1 to {MAX_SEGMENT_NAME} characters."
        faults.append(Fault("name", "malformed", detail))
    faults += rule_faults(rule)
    if faults:
        raise Invalid(faults)
    return {"name": name, "rule": rule}


@contextmanager
def _name_taken() -> Iterator[None]:
    """A transaction. Raises SegmentNameTaken, because only the name can conflict."""
    try:
        with transaction.atomic():
            yield
    except IntegrityError as error:
        if not isinstance(error.__cause__, UniqueViolation):
            raise
        raise SegmentNameTaken from error


def _address_facts(platform: Platform, text: str) -> dict[str, Any]:
    address = device_address(platform, text)
    return {
        "address": address,
        "address_sha256": address_digest(address),
        "push_service": _push_service(platform, address),
    }


def _push_service(platform: Platform, address: str) -> str:
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


def _lock_addresses(channel_id: UUID, platform: Platform, digests: Sequence[bytes]) -> datetime:
    """Locks the addresses, so that one registration of an address runs at a time. Returns the time.

    A row lock is not enough, because there may be no row yet, and two might be inserted or moved.
    """
    names = [address_lock(channel_id, platform, digest) for digest in digests]
    locked = [sql.rows(_LOCK, {"name": name}) for name in names]
    moment: datetime = locked[-1][0][1]
    return moment


def _rows_at(channel_id: UUID, platform: Platform, digests: Sequence[bytes]) -> list[Subscription]:
    rows = Subscription.objects.filter(
        channel_id=channel_id, platform=platform, address_sha256__in=digests
    )
    return list(rows.select_for_update(no_key=True).order_by("id"))


def _named_vapid_key_id(channel: Channel, platform: Platform, given: str | None) -> UUID | None:
    if platform != Platform.WEB or given is None:
        return None
    key_id = selectors.vapid_key_id(channel.id, url_spelling(given))
    if key_id is None:
        raise VapidKeyUnknown
    return key_id


def _kept_vapid_key_id(channel: Channel, platform: Platform, claim: Claim) -> UUID | None:
    """The key of the row at the address, else the current key."""
    if platform != Platform.WEB:
        return None
    here = claim.own or claim.current
    return here.vapid_key_id if here else current_vapid_key(channel).id


def _store(
    channel: Channel, platform: Platform, claim: Claim, facts: dict[str, Any], *, alone: bool
) -> tuple[UUID, bool]:
    known, ended = claim.known, claim.ended
    change = 0 if known and known.expired_at is None else 1
    change -= sum(each.expired_at is None for each in ended)
    stored = (known is None) - _end_others(claim, facts["registered_at"])
    if stored > 0:
        take_room(channel, alone=alone)
    facts |= {"expired_at": None, "expired_code": "", "is_set_aside": False}
    if known:
        subscription = _write(known, claim.inherited | facts)
    else:
        subscription = Subscription.objects.create(channel=channel, platform=platform, **facts)
    _count(channel.id, {platform: change}, stored=stored)
    return subscription.id, known is None


def _end_others(claim: Claim, now: datetime) -> int:
    """Expires the rows that this registration ends. Returns how many it deletes.

    Of the other devices' rows at the address, only the oldest is set aside, because a later one had
    no proof and may be anybody's."""
    for each in claim.ended:
        if each.expired_at is None:
            _write(each, {"expired_at": now, "expired_code": REPLACED})
    if claim.displaced and claim.aside:
        claim.displaced.delete()
        return 1
    if claim.displaced:
        _write(claim.displaced, {"is_set_aside": True})
    return 0


def _write(subscription: Subscription, values: Mapping[str, Any]) -> Subscription:
    for name, value in values.items():
        setattr(subscription, name, value)
    subscription.save(update_fields=list(values))
    return subscription


def _count(channel_id: UUID, changes: Mapping[str, int], *, stored: int = 0) -> None:
    active = {f"{name}_subscribers": change for name, change in changes.items()}
    counter_add(channel_id, stored_subscriptions=stored, **active)


# Raw, because the ORM has no advisory locks.
_LOCK = "SELECT pg_advisory_xact_lock(hashtextextended(%(name)s, 0)), clock_timestamp()"

# If `as_of` is null, a push service took a message for it. One statement does both, so that rows
# are locked in one order. Raw, because it joins arrays. A row is found by its id alone, and its
# channel is compared afterwards. Otherwise PostgreSQL might read the whole channel for every id, if
# its statistics are old.
_EXPIRE_OR_PROVE = """
WITH named AS (
    SELECT * FROM unnest(%(ids)s::uuid[], %(as_of)s::timestamptz[], %(codes)s::text[])
        AS given (id, as_of, code)
    ORDER BY id
), locked AS (
    SELECT found.id, found.channel_id, named.as_of IS NOT NULL AS is_gone, named.code
    FROM named CROSS JOIN LATERAL (
        SELECT id, channel_id FROM subscriptions_app_subscription
        WHERE id = named.id AND CASE WHEN named.as_of IS NULL THEN NOT is_proven
            ELSE expired_at IS NULL AND registered_at <= named.as_of END
        FOR NO KEY UPDATE
    ) AS found
)
UPDATE subscriptions_app_subscription AS subscription
SET is_proven = is_proven OR NOT locked.is_gone,
    expired_at = CASE WHEN locked.is_gone THEN statement_timestamp() ELSE expired_at END,
    expired_code = CASE WHEN locked.is_gone THEN locked.code ELSE expired_code END
FROM locked WHERE subscription.id = locked.id AND locked.channel_id = %(channel)s
RETURNING subscription.platform, locked.is_gone
"""
