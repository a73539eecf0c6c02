"""Checks identity tokens: JWTs (RFC 7519) with which an owner's backend identifies a user. Pure.

The signature is checked with the algorithm of the key, and the one in the token's header is
ignored. Otherwise a token could choose a weaker algorithm, or use a public key as a secret for
HS256.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any, Final, NamedTuple
from uuid import UUID

import jwt
from jwt.types import Options

from pushsvc.common.http.strict_json import is_storable

MAX_TOKEN: Final = 2_048
_MOST_DAYS: Final = 31
MOST_SECONDS: Final = _MOST_DAYS * 24 * 3600
LEEWAY_SECONDS: Final = 60


class Broken(StrEnum):
    """The rules that a token may break, each with a text for the owner's staff."""

    MISSING = "missing", "There is no token."
    TOO_LONG = "too_long", f"The token has more than {MAX_TOKEN:,} characters."
    MALFORMED = "malformed", "This is not a signed JWT."
    NO_KEY = "no_key", "The channel has no identity key."
    UNKNOWN_KEY = "key_unknown", "`kid` names no identity key of the channel that is in use."
    SIGNATURE = "signature", "No identity key of the channel verifies the signature."
    CLAIM_MISSING = "claim_missing", "`sub`, `aud` or `exp` is missing or malformed."
    EXPIRED = "expired", "`exp` is in the past."
    NOT_YET = "not_yet", "`nbf` is in the future."
    TOO_FAR = "far_ahead", f"`exp` is more than {_MOST_DAYS} days ahead."
    AUDIENCE = "audience", "`aud` is not the channel's id."
    SUBJECT = "subject", "`sub` is not the external id of the request."

    words: str

    def __new__(cls, value: str, words: str) -> "Broken":
        member = str.__new__(cls, value)
        member._value_ = value
        member.words = words
        return member


@dataclass(frozen=True)
class VerifyingKey:
    """`material`: the secret's text (HS256), or the PEM of the public key (ES256)."""

    id: UUID
    algorithm: str
    material: str

    @cached_property
    def prepared(self) -> Any:
        return jwt.get_algorithm_by_name(self.algorithm).prepare_key(self.material)


class TokenCheck(NamedTuple):
    """`broken` None: the token is good, and `subject` is the user's external id."""

    broken: Broken | None
    subject: str = ""


def token_check(
    token: str | None,
    *,
    keys: Sequence[VerifyingKey],
    channel_id: UUID,
    external_id: str | None = None,
) -> TokenCheck:
    """Returns which rule the token breaks first. `external_id` None: `sub` may be any person."""
    if not keys:
        return TokenCheck(Broken.NO_KEY)
    if not token:
        return TokenCheck(Broken.MISSING)
    if len(token) > MAX_TOKEN:
        return TokenCheck(Broken.TOO_LONG)
    try:
        named = jwt.get_unverified_header(token).get("kid")
    except (jwt.PyJWTError, ValueError):
        return TokenCheck(Broken.MALFORMED)
    possible = [key for key in keys if named is None or str(key.id) == named]
    found = TokenCheck(Broken.UNKNOWN_KEY)
    for key in possible:
        found = _checked_with(key, token, channel_id, external_id)
        if found.broken != Broken.SIGNATURE:
            break
    return found


def _checked_with(
    key: VerifyingKey, token: str, channel_id: UUID, external_id: str | None
) -> TokenCheck:
    try:
        claims = jwt.decode(
            token,
            key.prepared,
            algorithms=[key.algorithm],
            audience=str(channel_id),
            leeway=LEEWAY_SECONDS,
            options=_OPTIONS,
        )
    except jwt.PyJWTError as error:
        return TokenCheck(_rule_of(error))
    if not is_storable(claims["sub"]):
        return TokenCheck(Broken.CLAIM_MISSING)
    if int(claims["exp"]) > time.time() + MOST_SECONDS + LEEWAY_SECONDS:
        return TokenCheck(Broken.TOO_FAR)
    if external_id is not None and claims["sub"] != external_id:
        return TokenCheck(Broken.SUBJECT)
    return TokenCheck(None, claims["sub"])


def _rule_of(error: jwt.PyJWTError) -> Broken:
    match error:
        case jwt.InvalidSignatureError() | jwt.InvalidAlgorithmError():
            return Broken.SIGNATURE
        case jwt.ExpiredSignatureError():
            return Broken.EXPIRED
        case jwt.ImmatureSignatureError():
            return Broken.NOT_YET
        case jwt.InvalidAudienceError():
            return Broken.AUDIENCE
        case _:
            return Broken.CLAIM_MISSING


# `iat` and `jti` say nothing about who the user is, or for how long.
_OPTIONS: Final[Options] = {
    "require": ["sub", "aud", "exp"],
    "verify_iat": False,
    "verify_jti": False,
}
