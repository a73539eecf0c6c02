"""Registers devices: finds the subscription and the person of a device, and stores its visit.

Most registrations end with one of two statements: the visit of a known, active device, or the
insertion of a new device (insertion.py). All others take locks in the order in services.py.
ownership.py decides which stored subscription belongs to the device.
"""

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any, Final, NamedTuple
from uuid import UUID

from django.conf import settings

from channels_app.models import Channel, Identity
from channels_app.selectors import current_vapid_key, is_enabled
from pushsvc.common.endpoints import (
    TOKEN_SERVICES,
    Endpoint,
    EndpointNotAllowed,
    check_endpoint,
)
from pushsvc.common.platforms import Platform
from pushsvc.common.store import sql
from subscriptions_app.addresses import address_digest, address_lock, device_address, url_spelling
from subscriptions_app.categories.consent import choices_made_with_proof, choices_take_over
from subscriptions_app.devices import selectors
from subscriptions_app.devices.capacity import CapacityScarce, capacity_take
from subscriptions_app.devices.insertion import subscription_insert
from subscriptions_app.devices.ownership import Claim, Proof
from subscriptions_app.errors import (
    EndpointRefused,
    IdentityRefused,
    PlatformNotEnabled,
    TooManyDevices,
    VapidKeyUnknown,
)
from subscriptions_app.models import OPTED_OUT, Login, Person, Subscription
from subscriptions_app.people.counting import (
    Changes,
    PersonsChanged,
    Standing,
    changes_count,
    crowd_thin,
)
from subscriptions_app.people.proof import check_login, login_refusal
from subscriptions_app.people.services import people_get_or_create
from subscriptions_app.tags.services import TagChange, device_tags_change, device_tags_inherit

REPLACED = "replaced"
# Codes of browsers that expired because a push service takes no message with their VAPID key. For
# this time, a visit with the same endpoint and key does not make them active again.
OTHER_KEY: Final = frozenset({"vapid_refused", "vapid_key_mismatch"})
_REFUSED_FOR: Final = timedelta(days=7)


class Registered(NamedTuple):
    """The id of a device's subscription, and whether it is new and active. `resubscribe`: why the
    browser must subscribe again with the channel's key; else empty."""

    id: UUID
    is_new: bool
    resubscribe: str = ""


def subscription_register(
    *,
    channel: Channel,
    platform: Platform,
    address: str,
    p256dh: str = "",
    auth: str = "",
    attributes: Mapping[str, Any] | None = None,
    timezone: str | None = None,
    language: str | None = None,
    login: Login | None = None,
    tags: TagChange | None = None,
    vapid_public_key: str | None = None,
    previous_endpoint: str | None = None,
    previous_auth: str = "",
    previous_subscription_id: UUID | None = None,
) -> Registered:
    """Stores the visit of a device. Its subscription is active afterwards, unless it belongs to a
    person who opted out, or must subscribe again.

    A device is known by its address and `auth`. It is also known if it proves that it is the device
    of the subscription at `previous_endpoint` (by default the same address). That subscription then
    moves to the address. The proof is its `auth`, sent as `auth` or `previous_auth`, or its id. If
    the device has a subscription at both addresses, the previous one expires. A subscription of
    another device at the address is replaced.

    None for `attributes`, `timezone`, `language`, `login` and `tags` keeps the stored values. But
    only `auth` keeps the person: a subscription that moves by its id loses its person. Without
    `auth`, a login must prove even the present person, because anyone who knows the address could
    try external ids. Safe to repeat, also concurrently. Raises PlatformNotEnabled, EndpointRefused,
    VapidKeyUnknown, SubscriptionsFull, IdentityOff, IdentityRefused, TooManyDevices, and Invalid
    for too many tags.
    """
    if not is_enabled(channel, platform):
        raise PlatformNotEnabled("platform", platform)
    check_login(channel, login)
    said = {"attributes": attributes, "timezone": timezone, "language": language}
    facts: dict[str, Any] = {
        "p256dh": p256dh,
        "auth": auth,
        **_address_facts(platform, address),
        **{name: value for name, value in said.items() if value is not None},
    }
    previous = (
        address_digest(device_address(platform, previous_endpoint))
        if previous_endpoint
        else facts["address_sha256"]
    )
    proof = Proof((auth, previous_auth), previous_subscription_id)
    key_id = _named_vapid_key_id(channel, platform, vapid_public_key)
    visit = _Visit(channel, platform, facts, previous, proof, key_id, login, tags)
    if not auth and visit.refusal is not None:
        raise IdentityRefused(visit.refusal)
    return _at_once(visit) or _with_locks(visit)


@dataclass(frozen=True)
class _Visit:
    """The checked data of a device. `previous`: the digest of its previous address."""

    channel: Channel
    platform: Platform
    facts: Mapping[str, Any]
    previous: bytes
    proof: Proof
    named_key_id: UUID | None
    login: Login | None
    tags: TagChange | None

    @property
    def digest(self) -> bytes:
        return bytes(self.facts["address_sha256"])

    @cached_property
    def refusal(self) -> str | None:
        """Why the device may not be linked as requested, or None."""
        return login_refusal(self.channel, self.login) if self.login else None

    def store_alone(self) -> Registered | None:
        """Stores the visit of a known device, or inserts a new one, in one statement. None if the
        registration needs locks."""
        what = (self.platform, self.facts, self.named_key_id)
        known_id = Subscription.objects.revisited(self.channel.pk, *what, self.login)
        if known_id is not None:
            return Registered(known_id, is_new=False)
        if self.refusal is not None:
            return None
        new_id = subscription_insert(
            self.channel, *what, self.login.external_id if self.login else None
        )
        return None if new_id is None else Registered(new_id, is_new=True)

    def change_tags(self, subscription_id: UUID) -> None:
        if self.tags is not None:
            device_tags_change(subscription_id, self.tags)


def _at_once(visit: _Visit) -> Registered | None:
    if visit.previous != visit.digest:
        return None
    with sql.brief_transaction() if visit.tags else nullcontext():
        stored = visit.store_alone()
        if stored is not None:
            visit.change_tags(stored.id)
        return stored


def _with_locks(visit: _Visit) -> Registered:
    is_alone = is_crowded = False
    while True:
        try:
            return _register(visit, alone=is_alone, crowded=is_crowded)
        except CapacityScarce:
            is_alone = True
        except TooManyDevices:
            if is_crowded or visit.channel.identity != Identity.TRUST:
                raise
            is_crowded = True
        except PersonsChanged:
            continue


def _register(visit: _Visit, *, alone: bool, crowded: bool) -> Registered:
    """`alone`: no other transaction holds the lock of the channel's capacity. `crowded`: one of the
    person's devices is deleted for this one."""
    channel, platform = visit.channel, visit.platform
    with sql.brief_transaction():
        digests = sorted({visit.digest, visit.previous})
        now = _lock_addresses(channel.id, platform, digests)
        rows = _rows_at(channel.id, platform, digests)
        claim = Claim.of(rows, visit.digest, visit.facts["auth"], visit.proof)
        key_id = visit.named_key_id or _kept_vapid_key_id(channel, platform, claim)
        is_refused = _is_refused(claim.own, key_id, now)
        if is_refused:  # an endpoint that takes no message replaces no other
            claim = replace(claim, previous=None)
        facts = {
            **visit.facts,
            "registered_at": now,
            "vapid_key_id": key_id,
            "person": _person_of(visit, claim),
        }
        return _store(visit, claim, facts, is_refused=is_refused, alone=alone, crowded=crowded)


def _is_refused(own: Subscription | None, key_id: UUID | None, now: datetime) -> bool:
    """Whether a push service refused this endpoint with this VAPID key not long ago."""
    return (
        own is not None
        and own.expired_at is not None
        and own.expired_code in OTHER_KEY
        and own.vapid_key_id == key_id
        and now - own.expired_at < _REFUSED_FOR
    )


def _rows_at(channel_id: UUID, platform: Platform, digests: Sequence[bytes]) -> list[Subscription]:
    """Locks the rows and returns them with their persons. If a row was linked to another person
    while the statement waited, its person is missing, and PersonsChanged is raised."""
    rows = Subscription.objects.locked_at(channel_id, platform, digests).select_related("person")
    if any(row.person_id is not None and row.person is None for row in rows):
        raise PersonsChanged
    return list(rows)


def _person_of(visit: _Visit, claim: Claim) -> Person | None:
    """The new person of the device. Proof is required only if the person changes."""
    if visit.login is None:
        return claim.person
    external_id = visit.login.external_id
    if external_id is None or (claim.person and claim.person.external_id == external_id):
        return claim.person if external_id else None
    if visit.refusal is not None:
        raise IdentityRefused(visit.refusal)
    return people_get_or_create(visit.channel.pk, [external_id])[external_id]


def _store(
    visit: _Visit,
    claim: Claim,
    facts: Mapping[str, Any],
    *,
    is_refused: bool,
    alone: bool,
    crowded: bool,
) -> Registered:
    known, person = claim.known, facts["person"]
    before = Standing.of(known) if known else None
    taken = choices_made_with_proof(claim.choices, claim.proven_choices) if person else {}
    changes = Changes()
    _end_others(claim, facts["registered_at"], changes)
    if person is not None and crowded:
        crowd_thin(person.pk, 1, changes)
    if known is None and changes.stored == 0:
        capacity_take(visit.channel, changes, alone=alone)
    values = _values_of(claim, facts, taken)
    if claim.own and is_refused:
        values |= {"expired_at": claim.own.expired_at, "expired_code": claim.own.expired_code}
    subscription = _write_own(visit, claim, values)
    visit.change_tags(subscription.id)
    changes.note(before, Standing.of(subscription))
    if person is not None and taken:
        changes.hold(person.pk)
    changes_count(visit.channel.pk, changes)
    if person is not None:
        choices_take_over(person.pk, taken)
    is_new = known is None and subscription.expired_at is None
    return Registered(subscription.id, is_new, subscription.expired_code if is_refused else "")


def _values_of(claim: Claim, facts: Mapping[str, Any], taken: Mapping[str, bool]) -> dict[str, Any]:
    """What the device's row holds from now on. `taken`: choices that become the person's."""
    known, person = claim.known, facts["person"]
    is_out = person is not None and person.opted_out_at is not None
    state = {
        "expired_at": facts["registered_at"] if is_out else None,
        "expired_code": OPTED_OUT if is_out else "",
        "is_set_aside": False,
    }
    if known is None:
        return {**facts, **state}
    # A device that leaves a person leaves all choices behind.
    has_left = known.person_id is not None and known.person_id != (person and person.pk)
    kept = {} if has_left else claim.choices
    choices = {
        "choices": {key: value for key, value in kept.items() if key not in taken},
        "proven_choices": {} if has_left or person else claim.proven_choices,
    }
    return {**_moved_zone(known, facts), **claim.inherited, **facts, **state, **choices}


def _write_own(visit: _Visit, claim: Claim, values: Mapping[str, Any]) -> Subscription:
    if claim.known is None:
        return Subscription.objects.create(channel=visit.channel, platform=visit.platform, **values)
    subscription = _write(claim.known, values)
    if claim.own and claim.previous:
        device_tags_inherit(claim.own.id, claim.previous.id)
    return subscription


def _moved_zone(known: Subscription, values: Mapping[str, Any]) -> dict[str, datetime]:
    if values.get("timezone", known.timezone) == known.timezone:
        return {}
    return {"timezone_changed_at": values["registered_at"]}


def _end_others(claim: Claim, now: datetime, changes: Changes) -> None:
    """Expires the rows that this registration ends.

    Of other devices' rows at the address, only the oldest is set aside, because later rows had no
    proof and may belong to any device."""
    for each in claim.ended:
        before = Standing.of(each)
        if each.expired_at is None:
            _write(each, {"expired_at": now, "expired_code": REPLACED})
        changes.note(before, Standing.of(each))
    if claim.displaced and claim.aside:
        changes.note(Standing.of(claim.displaced), None)
        claim.displaced.delete()
    elif claim.displaced:
        _write(claim.displaced, {"is_set_aside": True})


def _write(subscription: Subscription, values: Mapping[str, Any]) -> Subscription:
    for name, value in values.items():
        setattr(subscription, name, value)
    subscription.save(update_fields=list(values))
    return subscription


def _address_facts(platform: Platform, text: str) -> dict[str, Any]:
    if platform == Platform.WEB:
        endpoint = _allowed_endpoint(text)
        address, service = endpoint.url, endpoint.service
    else:
        address, service = device_address(platform, text), TOKEN_SERVICES[platform]
    return {
        "address": address,
        "address_sha256": address_digest(address),
        "push_service": service,
    }


def _allowed_endpoint(text: str) -> Endpoint:
    try:
        return check_endpoint(
            text,
            trusted_origins=settings.WEBPUSH_TRUSTED_ORIGINS,
            allowed_hosts=settings.WEBPUSH_ALLOWED_HOSTS,
        )
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


def _named_vapid_key_id(channel: Channel, platform: Platform, given: str | None) -> UUID | None:
    if platform != Platform.WEB or given is None:
        return None
    key_id = selectors.vapid_key_id(channel.id, url_spelling(given))
    if key_id is None:
        raise VapidKeyUnknown
    return key_id


def _kept_vapid_key_id(channel: Channel, platform: Platform, claim: Claim) -> UUID | None:
    """The id of the VAPID key of the row at the address, or of the channel's current key."""
    if platform != Platform.WEB:
        return None
    here = claim.own or claim.current
    return here.vapid_key_id if here else current_vapid_key(channel).id


# Raw, because the ORM has no advisory locks.
_LOCK = "SELECT pg_advisory_xact_lock(hashtextextended(%(name)s, 0)), clock_timestamp()"
