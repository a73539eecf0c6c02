"""Addresses of devices, and the keys of browsers. Pure functions."""

import re
from dataclasses import dataclass
from hashlib import sha256
from typing import Final, Self
from uuid import UUID

from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePublicKey

from pushsvc.common import base64url
from pushsvc.common.endpoints import canonical_endpoint
from pushsvc.common.platforms import Platform, is_fid

# A registration token is the app's FID, a colon and more, so it is longer than a FID. The ids of
# Google's service before FCM had no FID. Errors of Google's SDKs that apps send in place of a token
# (BLACKLISTED, MISSING_INSTANCEID_SERVICE) and tokens of other services have neither form.
_FCM_TOKEN: Final = re.compile(r"(?=.{23,4096}$)([\w-]+:[\w:-]+|APA91b[\w-]+)", re.ASCII)
_IOS_TOKEN: Final = re.compile(r"[0-9a-fA-F]{32,200}", re.ASCII)
POINT_BYTES: Final = 65
AUTH_BYTES: Final = 16
_PADDED: Final = re.compile(r"([A-Za-z0-9_-]+|[A-Za-z0-9+/]+)={0,2}", re.ASCII)
_TO_URL_ALPHABET: Final = str.maketrans("+/", "-_")


@dataclass(frozen=True, slots=True)
class Address:
    """An endpoint or token in the form in which it is stored, and its SHA-256. Endpoints are
    canonical, APNs tokens are in lower case."""

    platform: Platform
    text: str
    digest: bytes

    @classmethod
    def of(cls, platform: Platform, text: str) -> Self:
        """The address from any spelling."""
        match platform:
            case Platform.WEB:
                text = canonical_endpoint(text)
            case Platform.IOS:
                text = text.lower()
        return cls(platform, text, sha256(text.encode()).digest())


def is_fcm_address(text: str) -> bool:
    """Whether an Android app can be reached at the text: a registration token or a FID."""
    return is_fid(text) or _FCM_TOKEN.fullmatch(text) is not None


def is_ios_token(text: str) -> bool:
    return _IOS_TOKEN.fullmatch(text) is not None


def address_lock(channel_id: UUID, platform: Platform, digest: bytes) -> str:
    """The name of the advisory lock under which an address is registered."""
    return f"{channel_id} {platform} {digest.hex()}"


def checked_p256dh(text: str) -> str:
    """An uncompressed point on P-256 (RFC 8291 section 3.1), as base64url without padding.

    Accepts any form of base64. Raises ValueError for anything else.
    """
    raw = _decoded(text)
    if len(raw) != POINT_BYTES:
        raise ValueError("not an uncompressed point")
    EllipticCurvePublicKey.from_encoded_point(SECP256R1(), raw)
    return base64url.encode(raw)


def checked_auth(text: str) -> str:
    """16 octets (RFC 8291 section 3.2), as base64url without padding.

    Accepts any form of base64. Raises ValueError for anything else.
    """
    raw = _decoded(text)
    if len(raw) != AUTH_BYTES:
        raise ValueError("not 16 octets")
    return base64url.encode(raw)


def url_spelling(text: str) -> str:
    """Converts base64 of either alphabet to base64url without padding. `btoa` writes the standard
    alphabet."""
    match = _PADDED.fullmatch(text)
    return match[1].translate(_TO_URL_ALPHABET) if match else text


def _decoded(text: str) -> bytes:
    return base64url.decode(url_spelling(text))
