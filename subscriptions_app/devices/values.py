"""The values of a registration."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from uuid import UUID

from channels_app.models import Channel
from subscriptions_app.addresses import Address
from subscriptions_app.people.proof import Login, login_refusal
from subscriptions_app.tags.services import TagChange


@dataclass(frozen=True, slots=True)
class Facts:
    """What a device reports about itself. None keeps the stored value."""

    p256dh: str = ""
    auth: str = ""
    vapid_public_key: str | None = None
    attributes: Mapping[str, Any] | None = None
    timezone: str | None = None
    language: str | None = None
    tags: TagChange | None = None
    login: Login | None = None

    @property
    def kept_fields(self) -> dict[str, Any]:
        """The reported fields among those that stay stored if they are not reported."""
        fields = ("attributes", "timezone", "language")
        return {name: each for name in fields if (each := getattr(self, name)) is not None}


@dataclass(frozen=True, slots=True)
class Previous:
    """The subscription that a device claims as its own, and the proof: its `auth` or its id.
    `address` None: it is at the address that registers."""

    address: Address | None = None
    auth: str = ""
    id: UUID | None = None


@dataclass(frozen=True)
class Visit:
    """A registration with checked values. `vapid_key_id` None: the device named no key."""

    channel: Channel
    address: Address
    push_service: str
    facts: Facts
    previous: Previous
    vapid_key_id: UUID | None

    @property
    def digests(self) -> list[bytes]:
        """The sorted digests of the addresses that the registration concerns."""
        addresses = (self.address, self.previous.address or self.address)
        return sorted({each.digest for each in addresses})

    @property
    def external_id(self) -> str | None:
        return self.facts.login.external_id if self.facts.login else None

    @cached_property
    def refusal(self) -> str | None:
        """Why the device may not be linked as requested, or None."""
        return login_refusal(self.channel, self.facts.login) if self.facts.login else None
