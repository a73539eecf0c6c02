"""A device of the sandbox: its keys, how it behaves, and every request that it was sent.

All methods are plain reads and writes, one attribute or list at a time, so that another thread
may call them while the server's own runs.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypedDict

from cryptography.hazmat.primitives.asymmetric import ec

from pushsvc.sandbox import base64url
from pushsvc.sandbox.behaviours import Behaviour, behaviour_from
from pushsvc.sandbox.webpush_encryption import UserAgentKeys


class MismatchAnswer(StrEnum):
    """What a restricted subscription says to another VAPID key: 403, or Apple's own 400."""

    FORBIDDEN = "forbidden"
    APPLE = "apple"


class SubscriptionKeys(TypedDict):
    p256dh: str
    auth: str


class SubscriptionInfo(TypedDict):
    """What a browser's `PushSubscription.toJSON()` gives."""

    endpoint: str
    keys: SubscriptionKeys


@dataclass(slots=True)
class Receipt:
    """One request to a device's push resource.

    `at` is Unix time in seconds. `plaintext` is None where the message could not be read, and
    where content is not kept. `status` is None where no HTTP answer was given. `taken`: the
    service took the message over for the device. `complete`: the answer was written to its end.
    """

    at: float
    headers: Mapping[str, str]
    plaintext: bytes | None = None
    status: int | None = None
    taken: bool = False
    complete: bool = False

    @property
    def accepted(self) -> bool:
        """The sender can know that the message was taken: a 2xx answer was written to its end."""
        return self.taken and self.complete


@dataclass(frozen=True, slots=True)
class Totals:
    """How many requests came, by what became of them; `statuses` has None for no answer."""

    requests: int
    taken: int
    accepted: int
    statuses: Mapping[int | None, int]


@dataclass(slots=True, eq=False)
class Device:
    """A browser with one subscription."""

    id: str
    endpoint: str
    keys: UserAgentKeys
    application_server_key: str | None = None
    mismatch_answer: MismatchAnswer = MismatchAnswer.FORBIDDEN
    is_deleted: bool = False
    receipts: list[Receipt] = field(default_factory=list)
    behaviour: Behaviour = field(default_factory=Behaviour)

    @property
    def p256dh(self) -> str:
        return base64url.encode(self.keys.public_key)

    @property
    def auth(self) -> str:
        return base64url.encode(self.keys.auth_secret)

    @property
    def private_key(self) -> ec.EllipticCurvePrivateKey:
        return self.keys.private_key

    @property
    def subscription(self) -> SubscriptionInfo:
        return {"endpoint": self.endpoint, "keys": {"p256dh": self.p256dh, "auth": self.auth}}

    def behave(self, mode: str, *, times: int | None = None, **options: object) -> None:
        """Meet the next `times` valid requests (None: all) with `mode`, then accept again.

        Replaces what was set before. Raises ValueError for options that the mode does not have.
        """
        self.behaviour = behaviour_from(mode, times, options)

    def next_behaviour(self) -> Behaviour:
        """The behaviour of the request at hand; uses up one of its times."""
        behaviour = self.behaviour
        if behaviour.remaining is None:
            return behaviour
        if behaviour.remaining <= 0:
            return Behaviour()
        behaviour.remaining -= 1
        return behaviour

    def totals(self) -> Totals:
        receipts = list(self.receipts)
        return Totals(
            requests=len(receipts),
            taken=sum(receipt.taken for receipt in receipts),
            accepted=sum(receipt.accepted for receipt in receipts),
            statuses=Counter(receipt.status for receipt in receipts),
        )
