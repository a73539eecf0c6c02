"""Registers devices: finds the subscription and the person of a device, and stores its visit.

Most registrations end with one of the two statements of fast_path.py. All others take locks in the
order in services.py. ownership.py decides which stored subscription belongs to the device.
"""

from contextlib import nullcontext
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final, NamedTuple
from uuid import UUID

from django.conf import settings

from channels_app.models import Channel
from channels_app.selectors import current_vapid_key, is_enabled
from pushsvc.common.endpoints import TOKEN_SERVICES, EndpointNotAllowed, check_endpoint
from pushsvc.common.platforms import Platform
from pushsvc.common.store import sql
from subscriptions_app.addresses import Address, address_lock
from subscriptions_app.categories.consent import choices_made_with_proof, choices_take_over
from subscriptions_app.devices.capacity import CapacityScarce, capacity_take
from subscriptions_app.devices.fast_path import visit_insert, visit_update
from subscriptions_app.devices.ownership import Match
from subscriptions_app.devices.selectors import vapid_key_id
from subscriptions_app.devices.values import Facts, Previous, Visit
from subscriptions_app.errors import (
    EndpointRefused,
    IdentityRefused,
    PlatformNotEnabled,
    VapidKeyUnknown,
)
from subscriptions_app.models import OPTED_OUT, Person, Subscription
from subscriptions_app.people.counting import (
    Changes,
    PersonsChanged,
    Standing,
    changes_count,
    crowd_thin,
    until_counted,
)
from subscriptions_app.people.proof import check_login
from subscriptions_app.people.services import people_get_or_create
from subscriptions_app.tags.services import device_tags_change, device_tags_inherit

REPLACED: Final = "replaced"
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
    *, channel: Channel, address: Address, facts: Facts, previous: Previous | None = None
) -> Registered:
    """Stores the visit of a device. Its subscription is active afterwards, unless it belongs to a
    person who opted out, or must subscribe again.

    A device is known by its address and `auth`. It is also known if it proves that `previous` is
    its subscription, which then moves to the address. The proof is that subscription's `auth`, as
    `facts.auth` or `previous.auth`, or its id. If the device has a subscription at both addresses,
    the previous one expires. A subscription of another device at the address is replaced.

    Only `auth` keeps the person: a subscription that moves by its id loses its person. An import
    may allow that the first device with an `auth` has a subscription without one (ownership.py).
    Without `auth`, and after such an import until somebody has signed in, a login must prove even
    the present person, because anyone who knows the address could try external ids. Safe to repeat,
    also concurrently. Raises PlatformNotEnabled, EndpointRefused, VapidKeyUnknown,
    SubscriptionsFull, IdentityOff, IdentityRefused, TooManyDevices, and Invalid for too many tags.
    """
    if not is_enabled(channel, address.platform):
        raise PlatformNotEnabled("platform", address.platform)
    check_login(channel, facts.login)
    visit = Visit(
        channel,
        address,
        _push_service(address),
        facts,
        previous or Previous(),
        _named_vapid_key_id(channel, address.platform, facts.vapid_public_key),
    )
    if not facts.auth and visit.refusal is not None:
        raise IdentityRefused(visit.refusal)
    return _store_at_once(visit) or _store_with_locks(visit)


def _push_service(address: Address) -> str:
    if address.platform != Platform.WEB:
        return TOKEN_SERVICES[address.platform]
    try:
        return check_endpoint(
            address.text,
            trusted_origins=settings.WEBPUSH_TRUSTED_ORIGINS,
            allowed_hosts=settings.WEBPUSH_ALLOWED_HOSTS,
        ).service
    except EndpointNotAllowed as error:
        raise EndpointRefused(error.reason) from error


def _named_vapid_key_id(channel: Channel, platform: Platform, named: str | None) -> UUID | None:
    if platform != Platform.WEB or named is None:
        return None
    key_id = vapid_key_id(channel.id, named)
    if key_id is None:
        raise VapidKeyUnknown
    return key_id


def _store_at_once(visit: Visit) -> Registered | None:
    """Stores the visit of a known device, or inserts a new one, in one statement. None if the
    registration needs locks."""
    if len(visit.digests) > 1:
        return None
    with sql.brief_transaction() if visit.facts.tags else nullcontext():
        id_, is_new = visit_update(visit), False
        if id_ is None and visit.refusal is None:
            id_, is_new = visit_insert(visit), True
        if id_ is None:
            return None
        _change_tags(visit, id_)
        return Registered(id_, is_new)


def _store_with_locks(visit: Visit) -> Registered:
    def store(crowded: bool, *, alone: bool = False) -> Registered:
        return _registration_of(visit).store(alone=alone, crowded=crowded)

    try:
        return until_counted(visit.channel, store)
    except CapacityScarce:
        return until_counted(visit.channel, partial(store, alone=True))


def _registration_of(visit: Visit) -> "_Registration":
    now = _lock_addresses(visit)
    match = Match.of(_lock_rows(visit), visit, now)
    key_id = visit.vapid_key_id or _kept_vapid_key_id(visit, match)
    is_refused = _is_refused(match.own, key_id, now)
    if is_refused:  # an endpoint that takes no message replaces no other
        match = replace(match, previous=None)
    return _Registration(visit, match, _person_of(visit, match), key_id, now, is_refused)


def _lock_addresses(visit: Visit) -> datetime:
    """Locks the addresses, so that one registration of an address runs at a time. Returns the time.

    A row lock is not enough, because there may be no row yet, and two might be inserted or moved.
    """
    platform = visit.address.platform
    names = [address_lock(visit.channel.id, platform, digest) for digest in visit.digests]
    locked = [sql.rows(_LOCK, {"name": name}) for name in names]
    moment: datetime = locked[-1][0][1]
    return moment


def _lock_rows(visit: Visit) -> list[Subscription]:
    """Locks the rows and returns them with their persons. If a row was linked to another person
    while the statement waited, its person is missing, and PersonsChanged is raised."""
    platform = visit.address.platform
    locked = Subscription.objects.locked_at(visit.channel.id, platform, visit.digests)
    rows = list(locked.select_related("person"))
    if any(row.person_id is not None and row.person is None for row in rows):
        raise PersonsChanged
    return rows


def _kept_vapid_key_id(visit: Visit, match: Match) -> UUID | None:
    """The id of the VAPID key of the row at the address, or of the channel's current key."""
    if visit.address.platform != Platform.WEB:
        return None
    here = match.own or match.current
    return here.vapid_key_id if here else current_vapid_key(visit.channel).id


def _is_refused(own: Subscription | None, key_id: UUID | None, now: datetime) -> bool:
    """Whether a push service refused this endpoint with this VAPID key not long ago."""
    return (
        own is not None
        and own.expired_at is not None
        and own.expired_code in OTHER_KEY
        and own.vapid_key_id == key_id
        and now - own.expired_at < _REFUSED_FOR
    )


def _person_of(visit: Visit, match: Match) -> Person | None:
    """The new person of the device. Proof is required only if the person changes, and until a
    device that an import knew has signed in: otherwise a stranger who knows the token could try
    external ids."""
    if visit.facts.login is None:
        return match.person
    if match.awaits_login and visit.refusal is not None:
        raise IdentityRefused(visit.refusal)
    external_id = visit.external_id
    if external_id is None or (match.person and match.person.external_id == external_id):
        return match.person if external_id else None
    if visit.refusal is not None:
        raise IdentityRefused(visit.refusal)
    return people_get_or_create(visit.channel.pk, [external_id])[external_id]


@dataclass(frozen=True)
class _Registration:
    """A visit whose rows are locked. `is_refused`: the push service refuses the endpoint, so the
    subscription stays expired."""

    visit: Visit
    match: Match
    person: Person | None
    vapid_key_id: UUID | None
    now: datetime
    is_refused: bool

    def store(self, *, alone: bool, crowded: bool) -> Registered:
        """`alone`: no other transaction holds the lock of the channel's capacity. `crowded`: one of
        the person's devices is deleted for this one."""
        channel, known, person = self.visit.channel, self.match.known, self.person
        before = Standing.of(known) if known else None
        taken = self._taken_choices()
        changes = Changes()
        self._end_others(changes)
        if person and crowded:
            crowd_thin(person.pk, 1, changes)
        if known is None and changes.stored == 0:
            capacity_take(channel, changes, alone=alone)
        subscription = self._write(self._values() | self._choices(taken))
        _change_tags(self.visit, subscription.id)
        changes.note(before, Standing.of(subscription))
        if person and taken:
            changes.hold(person.pk)
        changes_count(channel.pk, changes)
        if person:
            choices_take_over(person.pk, taken)
        is_new = known is None and subscription.expired_at is None
        resubscribe = subscription.expired_code if self.is_refused else ""
        return Registered(subscription.id, is_new, resubscribe)

    def _end_others(self, changes: Changes) -> None:
        """Expires the rows that this registration ends.

        Of other devices' rows at the address, only the oldest is set aside, because later rows had
        no proof and may belong to any device."""
        displaced = self.match.displaced
        for each in self.match.ended:
            before = Standing.of(each)
            if each.expired_at is None:
                _update(each, {"expired_at": self.now, "expired_code": REPLACED})
            changes.note(before, Standing.of(each))
        if displaced and self.match.aside:
            changes.note(Standing.of(displaced), None)
            displaced.delete()
        elif displaced:
            _update(displaced, {"is_set_aside": True})

    def _values(self) -> dict[str, Any]:
        """The columns of the device's row, without its choices."""
        visit, match = self.visit, self.match
        values = {
            "address": visit.address.text,
            "address_sha256": visit.address.digest,
            "push_service": visit.push_service,
            "p256dh": visit.facts.p256dh,
            "auth": visit.facts.auth,
            "vapid_key_id": self.vapid_key_id,
            "person": self.person,
            "registered_at": self.now,
            "is_set_aside": False,
            **self._expiry(),
        }
        if match.own and match.previous and not match.own.attributes:
            values["attributes"] = match.previous.attributes
        if visit.external_id is not None and visit.facts.auth:
            values["takeover_until"] = None  # _person_of required a proof if it was set
        values |= visit.facts.kept_fields
        if match.known and values.get("timezone", match.known.timezone) != match.known.timezone:
            values["timezone_changed_at"] = self.now
        return values

    def _expiry(self) -> dict[str, Any]:
        if self.match.own and self.is_refused:
            own = self.match.own
            return {"expired_at": own.expired_at, "expired_code": own.expired_code}
        if self.person is not None and self.person.opted_out_at is not None:
            return {"expired_at": self.now, "expired_code": OPTED_OUT}
        return {"expired_at": None, "expired_code": ""}

    def _taken_choices(self) -> dict[str, bool]:
        """The choices that become the person's."""
        if self.person is None:
            return {}
        return choices_made_with_proof(self.match.choices, self.match.proven_choices)

    def _choices(self, taken: dict[str, bool]) -> dict[str, Any]:
        """The choices of the device's row. `taken`: those that become the person's. A device that
        leaves a person leaves all choices behind."""
        known, person = self.match.known, self.person
        if known is None:
            return {}
        has_left = known.person_id is not None and known.person_id != (person and person.pk)
        kept = {} if has_left else self.match.choices
        return {
            "choices": {key: value for key, value in kept.items() if key not in taken},
            "proven_choices": {} if has_left or person else self.match.proven_choices,
        }

    def _write(self, values: dict[str, Any]) -> Subscription:
        match = self.match
        if match.known is None:
            visit = self.visit
            return Subscription.objects.create(
                channel=visit.channel, platform=visit.address.platform, **values
            )
        _update(match.known, values)
        if match.own and match.previous:
            device_tags_inherit(match.own.id, match.previous.id)
        return match.known


def _change_tags(visit: Visit, subscription_id: UUID) -> None:
    if visit.facts.tags is not None:
        device_tags_change(subscription_id, visit.facts.tags)


def _update(subscription: Subscription, values: dict[str, Any]) -> None:
    for name, value in values.items():
        setattr(subscription, name, value)
    subscription.save(update_fields=list(values))


# Raw, because the ORM has no advisory locks.
_LOCK = "SELECT pg_advisory_xact_lock(hashtextextended(%(name)s, 0)), clock_timestamp()"
