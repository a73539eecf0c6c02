"""Who receives at the endpoints of the web push sandbox, and what they received.

A `Device` is a browser that the sandbox plays itself; of a real browser see `browsers`.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypedDict

from cryptography.hazmat.primitives.asymmetric import ec
from typing_extensions import override

from pushsvc.common import base64url
from pushsvc.sandbox.behaving import Behaving
from pushsvc.sandbox.receipts import Receipt
from pushsvc.sandbox.webpush.behaviours import REPERTOIRE
from pushsvc.sandbox.webpush.encryption import EncryptedRecord, UserAgentKeys, decrypt


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
class WebReceipt(Receipt):
    """`plaintext` is None where the message could not be read, and where content is not kept.

    `ack_code` is what a real browser said of the message, None until it did: 100 given to the
    service worker, 101 not decrypted, 102 not given to it, 301 to 303 the worker failed.
    """

    plaintext: bytes | None = None
    ack_code: int | None = None


@dataclass(frozen=True, slots=True)
class PushMessage:
    """One message to a subscriber that passed every check; `ttl` is in seconds."""

    id: str
    body: bytes
    topic: str | None
    ttl: int
    receipt: WebReceipt

    def is_over(self, now: float) -> bool:
        """Whether its time has passed; `now` is Unix time in seconds."""
        return now >= self.receipt.at + self.ttl


@dataclass(slots=True, eq=False)
class Subscriber(Behaving[WebReceipt], ABC):
    """Who receives at one endpoint."""

    repertoire = REPERTOIRE

    id: str
    endpoint: str
    application_server_key: str | None = None
    mismatch_answer: MismatchAnswer = MismatchAnswer.FORBIDDEN
    is_deleted: bool = False

    @abstractmethod
    def read(self, record: EncryptedRecord) -> bytes | None:
        """The plaintext, None where only a real browser can read it; raises RefusedError."""

    @abstractmethod
    def take(self, message: PushMessage) -> None:
        """The service has taken the message over for the subscriber; in the sandbox's loop."""


@dataclass(slots=True, eq=False)
class Device(Subscriber):
    """A browser with one subscription, whose keys the sandbox has."""

    keys: UserAgentKeys = field(kw_only=True)

    @override
    def read(self, record: EncryptedRecord) -> bytes | None:
        return decrypt(record, self.keys)

    @override
    def take(self, message: PushMessage) -> None:
        """Its receipt is all that is kept."""

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
