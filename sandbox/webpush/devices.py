"""The subscriptions of the web push sandbox, and their messages.

The sandbox simulates a `Device`. `browsers` has the subscriptions of real browsers.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypedDict

from cryptography.hazmat.primitives.asymmetric import ec
from typing_extensions import override

from pushsvc.common import base64url
from sandbox.behaviours import Behaving
from sandbox.receipts import Receipt
from sandbox.webpush.behaviours import REPERTOIRE
from sandbox.webpush.declarative import Declared
from sandbox.webpush.encryption import EncryptedRecord, UserAgentKeys, decrypt


class MismatchAnswer(StrEnum):
    """The response of a restricted subscription to another VAPID key: 403 with FCM's words, Apple's
    400, Mozilla's 401, or WNS's 403."""

    FORBIDDEN = "forbidden"
    APPLE = "apple"
    MOZILLA = "mozilla"
    WNS = "wns"


class SubscriptionKeys(TypedDict):
    p256dh: str
    auth: str


class SubscriptionInfo(TypedDict):
    """The result of a browser's `PushSubscription.toJSON()`."""

    endpoint: str
    keys: SubscriptionKeys


@dataclass(slots=True)
class WebReceipt(Receipt):
    """`plaintext` is None if the message could not be read or if content is not kept.

    `declared` is what the browser could show without a worker; None if the message is not
    declarative. `ack_code` is a real browser's acknowledgement, None until it comes: 100 passed to
    the service worker, 101 not decrypted, 102 not passed to it, 301 to 303 the worker failed.
    """

    plaintext: bytes | None = None
    declared: Declared | None = None
    ack_code: int | None = None


@dataclass(frozen=True, slots=True)
class PushMessage:
    """One message that passed all checks. `ttl` is in seconds."""

    id: str
    body: bytes
    topic: str | None
    ttl: int
    receipt: WebReceipt

    def is_over(self, now: float) -> bool:
        """Whether its time has passed. `now` is Unix time in seconds."""
        return now >= self.receipt.at + self.ttl


@dataclass(slots=True, eq=False)
class Subscriber(Behaving[WebReceipt], ABC):
    """The owner of one endpoint. `is_bridged`: the service passes its messages on over FCM, as
    Mozilla's does for Firefox for Android."""

    repertoire = REPERTOIRE

    id: str
    endpoint: str
    application_server_key: str | None = None
    mismatch_response: MismatchAnswer = MismatchAnswer.FORBIDDEN
    is_bridged: bool = False
    is_deleted: bool = False

    @abstractmethod
    def read(self, record: EncryptedRecord) -> bytes | None:
        """The plaintext, or None if only a real browser can read it. Raises RejectedError."""

    @abstractmethod
    def take(self, message: PushMessage) -> None:
        """Called in the sandbox's loop when the service has accepted the message."""


@dataclass(slots=True, eq=False)
class Device(Subscriber):
    """A browser with one subscription. The sandbox has its keys."""

    keys: UserAgentKeys = field(kw_only=True)

    @override
    def read(self, record: EncryptedRecord) -> bytes | None:
        return decrypt(record, self.keys)

    @override
    def take(self, message: PushMessage) -> None:
        """Does nothing: the receipt is enough."""

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
