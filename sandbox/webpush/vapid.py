"""The application server's identification (VAPID, RFC 8292), checked by the strictest rules.

Every error is 401 with errno 109, as at Mozilla. Only a valid token of the wrong key is 403.
"""

import json
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256

from pushsvc.common import base64url
from sandbox.responses import RejectedError
from sandbox.webpush.responses import rejected

MAX_LIFETIME = 24 * 3600

_POINT_LENGTH = 65
_SIGNATURE_LENGTH = 64
_SUBJECT = re.compile(r"mailto:[^@\s]+@[^@\s]+|https://[^\s/]\S*")


@dataclass(frozen=True, slots=True)
class Claims:
    """The claims of a token with a valid signature. Their values are unchecked."""

    audience: object
    expires_at: object
    subject: object


def check_vapid(authorization: list[str], *, origin: str, now: float) -> str | None:
    """Checks the Authorization headers. Returns the sender's key, or None without a header.

    `now` is Unix time in seconds. In RFC 8292, identification and its subject are optional; Apple
    requires a subject, so a token without one is rejected here.
    """
    if not authorization:
        return None
    if len(authorization) > 1:
        raise _unauthorized("more than one Authorization header")
    token, key = _parse_header(authorization[0])
    claims = _verified_claims(token, key)
    _check_audience(claims.audience, origin)
    _check_expiry(claims.expires_at, now)
    _check_subject(claims.subject)
    return key


def check_restriction(key: str | None, required_key: str) -> None:
    """Checks that a restricted subscription gets only messages of its key (RFC 8292 §4.2)."""
    if key is None:
        raise _unauthorized("the subscription is restricted and the request carries no VAPID")
    if key != required_key:
        raise rejected(
            403,
            109,
            "the VAPID credentials in the authorization header do not correspond to the"
            " credentials used to create the subscription",
        )


def public_key(text: str) -> ec.EllipticCurvePublicKey:
    """Parses an uncompressed P-256 point in base64url. Raises ValueError."""
    point = base64url.decode(text)
    if len(point) != _POINT_LENGTH:
        raise ValueError("not an uncompressed P-256 point")
    return ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), point)


def _parse_header(header: str) -> tuple[str, str]:
    scheme, _, rest = header.partition(" ")
    if scheme.lower() != "vapid":
        raise _unauthorized("the scheme is not vapid")
    parameters = [part.strip().partition("=") for part in rest.split(",")]
    values = {name.lower(): value for name, _, value in parameters}
    if len(values) < len(parameters) or "t" not in values or "k" not in values:
        raise _unauthorized("t and k must be there, once each")
    return values["t"], values["k"]


@lru_cache(maxsize=4096)
def _verified_claims(token: str, key: str) -> Claims:
    """The claims, after a check of the signature. Cached, because the check is slow and senders use
    a token for hours."""
    try:
        header, payload, signature = token.split(".")
        _verify_signature(f"{header}.{payload}", signature, key)
        algorithm = _json_object(header).get("alg")
        claims = _json_object(payload)
    except (ValueError, RecursionError, InvalidSignature) as error:
        raise _unauthorized("the token is not a JWT signed by k with ES256") from error
    if algorithm != "ES256":
        raise _unauthorized("the token's algorithm is not ES256")
    return Claims(claims.get("aud"), claims.get("exp"), claims.get("sub"))


def _verify_signature(signed: str, signature: str, key: str) -> None:
    """Verifies ES256 (RFC 7518 §3.4): r and s, 32 bytes each."""
    raw = base64url.decode(signature)
    if len(raw) != _SIGNATURE_LENGTH:
        raise ValueError("not an ES256 signature")
    half = _SIGNATURE_LENGTH // 2
    der = encode_dss_signature(int.from_bytes(raw[:half], "big"), int.from_bytes(raw[half:], "big"))
    public_key(key).verify(der, signed.encode("ascii"), ec.ECDSA(SHA256()))


def _json_object(part: str) -> dict[str, Any]:
    value = json.loads(base64url.decode(part))
    if not isinstance(value, dict):
        raise ValueError("not a JSON object")
    return value


def _check_audience(audience: object, origin: str) -> None:
    if audience != origin:
        raise _unauthorized(f"aud is not the origin of the push resource, {origin}")


def _check_expiry(expires_at: object, now: float) -> None:
    if not isinstance(expires_at, int | float):
        raise _unauthorized("exp is not a number")
    if expires_at <= now:
        raise _unauthorized("the token has expired")
    # In this order, because Python's JSON allows NaN, which is never less.
    if not expires_at <= now + MAX_LIFETIME:
        raise _unauthorized("exp is more than 24 hours away")


def _check_subject(subject: object) -> None:
    if not isinstance(subject, str) or not _SUBJECT.fullmatch(subject):
        raise _unauthorized("sub is not a mailto: or https: address")


def _unauthorized(reason: str) -> RejectedError:
    return rejected(401, 109, f"Invalid VAPID: {reason}")
