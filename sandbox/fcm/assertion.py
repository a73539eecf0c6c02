"""The signed request for an access token (RFC 7523)."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.hashes import SHA256

from pushsvc.common import base64url
from sandbox.fcm import responses
from sandbox.fcm.accounts import ServiceAccount
from sandbox.responses import RejectedError

GRANT_TYPE = "urn:ietf:params:oauth:grant-type:jwt-bearer"
GOOGLE_AUDIENCE = "https://oauth2.googleapis.com/token"
_LONGEST_LIFETIME = 3_600
_CLOCK_SKEW = 60
_BAD_TIMES = (
    "Invalid JWT: Token must be a short-lived token (60 minutes) and in a reasonable timeframe. "
    "Check your iat and exp values in the JWT claim."
)


@dataclass(frozen=True, slots=True)
class Assertion:
    """A JWT, parsed and unchecked."""

    header: Mapping[str, Any]
    claims: Mapping[str, Any]
    signed: bytes
    signature: bytes

    @classmethod
    def parse(cls, text: str) -> "Assertion":
        """Raises RejectedError."""
        try:
            header, claims, signature = text.split(".")
            signed = f"{header}.{claims}".encode("ascii")
            return cls(_object(header), _object(claims), signed, base64url.decode(signature))
        except (ValueError, RecursionError):
            raise _rejected("Invalid JWT: it is not three parts of base64url.") from None

    @property
    def issuer(self) -> str:
        return str(self.claims.get("iss"))


def checked_scopes(
    assertion: Assertion, account: ServiceAccount, *, audiences: Sequence[str], now: float
) -> frozenset[str]:
    """Checks the assertion and returns its scopes. Raises RejectedError at the first error.

    `account` is the issuer's; `now` is Unix time in seconds.
    """
    _check_signature(assertion, account)
    if assertion.claims.get("aud") not in audiences:
        raise _rejected("Invalid JWT: Failed audience check.")
    _check_times(assertion.claims.get("iat"), assertion.claims.get("exp"), now)
    return _scopes(assertion.claims.get("scope"))


def _check_signature(assertion: Assertion, account: ServiceAccount) -> None:
    header = assertion.header
    if header.get("alg") != "RS256" or header.get("kid", account.key_id) != account.key_id:
        raise _rejected("Invalid JWT Signature.")
    try:
        account.public_key.verify(assertion.signature, assertion.signed, PKCS1v15(), SHA256())
    except InvalidSignature:
        raise _rejected("Invalid JWT Signature.") from None


def _check_times(issued_at: object, expires_at: object, now: float) -> None:
    if not isinstance(issued_at, int) or not isinstance(expires_at, int):
        raise _rejected(_BAD_TIMES)
    is_in_time = issued_at <= now + _CLOCK_SKEW and now < expires_at
    if not is_in_time or expires_at > issued_at + _LONGEST_LIFETIME:
        raise _rejected(_BAD_TIMES)


def _scopes(scope: object) -> frozenset[str]:
    scopes = frozenset(scope.split()) if isinstance(scope, str) else frozenset[str]()
    if not scopes:
        text = "Invalid OAuth scope or ID token audience provided."
        raise RejectedError(responses.oauth_error(400, "invalid_scope", text))
    return scopes


def _object(part: str) -> dict[str, Any]:
    value = json.loads(base64url.decode(part))
    if not isinstance(value, dict):
        raise ValueError("not an object")
    return value


def _rejected(description: str) -> RejectedError:
    return RejectedError(responses.invalid_grant(description))
