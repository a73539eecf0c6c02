"""VAPID (RFC 8292): identifies the channel to push services."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, TypeAlias
from uuid import UUID

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from notifications_app.delivery import es256
from pushsvc.common import base64url

# All processes share windows of this length and sign deterministically (RFC 6979), so they present
# the same token, even after a restart. Apple allows no change of the token within an hour.
WINDOW: Final = 3 * 3_600
# From the window's beginning. RFC 8292 section 2 allows 24 hours; half allows for wrong clocks.
LIFETIME: Final = 12 * 3_600
# Subscribers choose the origins, so their number has no bound.
MAX_CACHED: Final = 10_000


class VapidKeyUnreadableError(ValueError):
    """The stored private key is missing or not a P-256 key."""


@dataclass(frozen=True, slots=True)
class VapidKey:
    """`private_key`: the 32 bytes of a P-256 private key as base64url. `subject`: a mailto: or
    https: URL with which the push service can contact a person."""

    private_key: str = field(repr=False)
    subject: str


# A channel's keys by id. A subscription needs the key with which it was created.
VapidKeys: TypeAlias = Mapping[UUID, VapidKey]


def authorization(key: VapidKey, origin: str, now: float) -> str:
    """The Authorization header for all endpoints of `origin`. `now` is in seconds since the epoch.
    Raises VapidKeyUnreadableError."""
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
