"""A device of the web push sandbox: its keys, and what it received."""

from dataclasses import dataclass
from enum import StrEnum
from typing import TypedDict

from cryptography.hazmat.primitives.asymmetric import ec

from pushsvc.sandbox import base64url
from pushsvc.sandbox.behaving import Behaving
from pushsvc.sandbox.receipts import Receipt
from pushsvc.sandbox.web_behaviours import REPERTOIRE
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
class WebReceipt(Receipt):
    """`plaintext` is None where the message could not be read, and where content is not kept."""

    plaintext: bytes | None = None


@dataclass(slots=True, eq=False)
class Device(Behaving[WebReceipt]):
    """A browser with one subscription."""

    repertoire = REPERTOIRE

    id: str
    endpoint: str
    keys: UserAgentKeys
    application_server_key: str | None = None
    mismatch_answer: MismatchAnswer = MismatchAnswer.FORBIDDEN
    is_deleted: bool = False

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
