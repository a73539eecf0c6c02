"""VAPID (RFC 8292): who is asking a push service to deliver."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, TypeAlias
from uuid import UUID

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from notifications_app.delivery import es256
from pushsvc.common import base64url

# A token is made for a window of time that all processes agree on, and signed deterministically
# (RFC 6979), so that every process, restarted or not, presents the same one: Apple asks for no new
# token within an hour.
WINDOW: Final = 3 * 3_600
# From the window's beginning. RFC 8292 section 2 allows 24 hours; half leaves room for odd clocks.
LIFETIME: Final = 12 * 3_600
# Strangers choose the origins, so there may be any number of them.
MAX_CACHED: Final = 10_000


class VapidKeyUnreadableError(ValueError):
    """A stored private key is missing or no P-256 key."""


@dataclass(frozen=True, slots=True)
class VapidKey:
    """`private_key`: the 32 bytes of a P-256 private key, base64url; `subject`: a mailto: or https:
    URL under which the push service finds a person."""

    private_key: str = field(repr=False)
    subject: str


# A channel's, by id: a subscription goes on needing the key that it was made with.
VapidKeys: TypeAlias = Mapping[UUID, VapidKey]


def authorization(key: VapidKey, origin: str, now: float) -> str:
    """The Authorization header, `vapid t=…, k=…`, for all endpoints of `origin`; `now` in seconds
    since the epoch. Raises VapidKeyUnreadableError."""
    return _signed(key, origin, int(now // WINDOW) * WINDOW)


@lru_cache(maxsize=MAX_CACHED)
def _signed(key: VapidKey, origin: str, begin: int) -> str:
    private = _load(key.private_key)
    claims = {"aud": origin, "exp": begin + LIFETIME, "sub": key.subject}
    token = es256.signed({"typ": "JWT", "alg": "ES256"}, claims, private)
    public = private.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
    return f"vapid t={token}, k={base64url.encode(public)}"


def _load(private_key: str) -> ec.EllipticCurvePrivateKey:
    try:
        raw = base64url.decode(private_key.rstrip("="))
        if len(raw) != 32:
            raise ValueError("not 32 bytes")
        return ec.derive_private_key(int.from_bytes(raw, "big"), ec.SECP256R1())
    except ValueError as error:
        raise VapidKeyUnreadableError from error
