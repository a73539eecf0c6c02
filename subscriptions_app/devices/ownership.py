"""Decides which of the stored rows belong to the device that registers. Pure functions.

Endpoints and tokens are not secret: push services, servers of sites, and logs contain them. So an
address alone gives no access to attributes. Only the device and this service know `auth`, and the
subscription's id if the device had sent `auth` when it got the id.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from hmac import compare_digest
from typing import Self

from subscriptions_app.devices.values import Visit
from subscriptions_app.models import Person, Subscription


@dataclass(frozen=True)
class Match:
    """The rows that a registration concerns.

    `own`: the device's row at its address. `previous`: the device's row at its previous address.
    `current`: the row at the address that now gets messages. `aside`: the row that is set aside.
    `person`: the device's person, and `proven_choices`: what the device chose with proof. Only
    `auth` proves both, because not only the device knows the id of the subscription.
    `awaits_login`: as in the model, of `own`.
    """

    own: Subscription | None
    previous: Subscription | None
    current: Subscription | None
    aside: Subscription | None
    person: Person | None
    proven_choices: Mapping[str, bool]
    awaits_login: bool = False

    @classmethod
    def of(cls, rows: Sequence[Subscription], visit: Visit, now: datetime) -> Self:
        """`rows`: the rows at the address and at the previous address.

        A subscription that an import gave to the first device with an `auth` stays at its address:
        with a person until somebody signs in, otherwise until the takeover ends. Otherwise a
        stranger who knows a token could take the subscription over, move it to another phone, and
        get the person's messages there.
        """
        proof = _Proof(visit)
        ordered = sorted(rows, key=lambda row: row.is_set_aside)
        here = [row for row in ordered if bytes(row.address_sha256) == visit.address.digest]
        own = [row for row in here if proof.is_same(row) or proof.holds_for(row)][:1]
        is_takeover = False
        if not own and visit.facts.auth:
            own = [row for row in here if _may_be_taken(row, now)][:1]
            is_takeover = bool(own)
        previous = [
            row
            for row in ordered
            if row not in here and proof.holds_for(row) and not _is_held(row, now)
        ][:1]
        proven = [row for row in own + previous if proof.is_same(row) or proof.has_auth(row)]
        certain = own + proven if is_takeover else proven
        return cls(
            own=next(iter(own), None),
            previous=next(iter(previous), None),
            current=next((row for row in here if not row.is_set_aside), None),
            aside=next((row for row in here if row.is_set_aside), None),
            person=next((row.person for row in certain if row.person), None),
            proven_choices=next((row.proven_choices for row in certain if row.choices), {}),
            awaits_login=any(row.awaits_login for row in own),
        )

    @property
    def known(self) -> Subscription | None:
        """The row that the device keeps."""
        return self.own or self.previous

    @property
    def displaced(self) -> Subscription | None:
        """The row at the device's address that is not proven to be the device's."""
        return None if self.current is self.own else self.current

    @cached_property
    def ended(self) -> list[Subscription]:
        """Rows that expire because of this registration."""
        before = self.previous if self.own else None
        return [row for row in (self.displaced, before) if row]

    @property
    def choices(self) -> Mapping[str, bool]:
        """The device's choices, with and without proof."""
        rows = (self.own, self.previous)
        return next((row.choices for row in rows if row and row.choices), {})


class _Proof:
    """What the device sent to prove that rows are its own."""

    def __init__(self, visit: Visit) -> None:
        self._auth, self._previous = visit.facts.auth, visit.previous

    def is_same(self, row: Subscription) -> bool:
        """Whether the row has the device's `auth`. Also if both have none."""
        return _is_same(row.auth, self._auth)

    def has_auth(self, row: Subscription) -> bool:
        found = [_is_same(row.auth, auth) for auth in (self._auth, self._previous.auth)]
        return bool(row.auth) and any(found)

    def holds_for(self, row: Subscription) -> bool:
        """Whether the proof is valid for the row. Never for a row without `auth`, because a request
        with only the token gets its id."""
        return self.has_auth(row) or (bool(row.auth) and row.id == self._previous.id)


def _is_held(row: Subscription, now: datetime) -> bool:
    return row.awaits_login or _is_open(row, now)


def _is_open(row: Subscription, now: datetime) -> bool:
    return row.takeover_until is not None and row.takeover_until > now


def _may_be_taken(row: Subscription, now: datetime) -> bool:
    return not row.auth and not row.is_set_aside and _is_open(row, now)


def _is_same(stored: str, given: str) -> bool:
    """Compares in constant time, so that the time of a refusal reveals nothing about the stored
    value."""
    return compare_digest(stored.encode(), given.encode())
