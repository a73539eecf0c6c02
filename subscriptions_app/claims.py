"""Which of the rows that a registration names are its device's. Pure: reads rows, writes none.

Endpoints and tokens are no secrets: push services, sites' servers and logs see them. So an address
alone leads to nobody's attributes. What only the device and the service know is `auth`, and the
subscription's id where that was told to whoever had shown `auth`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from hmac import compare_digest
from typing import Any
from uuid import UUID

from subscriptions_app.models import Subscription


@dataclass(frozen=True, slots=True)
class Proof:
    """What a request shows of a subscription that it says was its own."""

    auths: tuple[str, ...]
    subscription_id: UUID | None

    def holds_for(self, row: Subscription) -> bool:
        """Never for a row without `auth`: its id is told to whoever knows the token."""
        knows_auth = [_is_same(row.auth, auth) for auth in self.auths]
        return bool(row.auth) and (any(knows_auth) or row.id == self.subscription_id)


@dataclass(frozen=True)
class Claim:
    """`own`: the device's at its address. `previous`: the device's at its former address.
    `current`: the one that messages to the address are for now; `aside`: the one that waits."""

    own: Subscription | None
    previous: Subscription | None
    current: Subscription | None
    aside: Subscription | None

    @classmethod
    def of(cls, rows: Sequence[Subscription], digest: bytes, auth: str, proof: Proof) -> "Claim":
        """`rows`: those at the address, which has this digest, and at the former one."""
        ordered = sorted(rows, key=lambda row: row.is_set_aside)
        here = [row for row in ordered if bytes(row.address_sha256) == digest]
        there = [row for row in ordered if row not in here]
        own = [row for row in here if _is_same(row.auth, auth) or proof.holds_for(row)]
        return cls(
            own=next(iter(own), None),
            previous=next((row for row in there if proof.holds_for(row)), None),
            current=next((row for row in here if not row.is_set_aside), None),
            aside=next((row for row in here if row.is_set_aside), None),
        )

    @property
    def known(self) -> Subscription | None:
        """The row that the device goes on with."""
        return self.own or self.previous

    @property
    def displaced(self) -> Subscription | None:
        """Somebody else's, or nobody can tell, at the device's address."""
        return None if self.current is self.own else self.current

    @cached_property
    def left(self) -> list[Subscription]:
        """Rows that end because of this registration."""
        before = self.previous if self.own else None
        return [row for row in (self.displaced, before) if row]

    @property
    def inherited(self) -> dict[str, Any]:
        """Where the device has two rows: what the one that goes on lacks."""
        if self.own and self.previous and not self.own.attributes:
            return {"attributes": self.previous.attributes}
        return {}


def _is_same(stored: str, given: str) -> bool:
    """In constant time: how long a refusal takes tells nothing of the stored one."""
    return compare_digest(stored.encode(), given.encode())
