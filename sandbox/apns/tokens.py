"""Provider tokens, checked as APNs does.

Apple, "Establishing a token-based connection to APNs".
"""

import json
import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256

from pushsvc.common import base64url
from sandbox.apns.behaviours import key_rejection
from sandbox.apns.devices import ApnsKey
from sandbox.apns.responses import rejected
from sandbox.responses import RejectedError

MAX_AGE: Final = 60 * 60
LEAST_UPDATE_SECONDS: Final = 20 * 60

_SIGNATURE_LENGTH: Final = 64


class Identity:
    """The team that a connection belongs to. It keeps one token for at least twenty minutes."""

    def __init__(self, keys: Mapping[str, ApnsKey]) -> None:
        self._keys = keys
        self._team_id: str | None = None
        self._token: str | None = None
        self._updated_at = -math.inf

    def check(self, authorization: str | None, topic: str, now: float) -> None:
        """Raises RejectedError unless the header allows sending to `topic`."""
        scheme, _, token = (authorization or "").partition(" ")
        if scheme.lower() != "bearer" or not token:
            raise rejected("MissingProviderToken")
        key = self._keys.get(_key_id(token))
        if key is None or self._team_id not in {None, key.team_id}:
            raise rejected("InvalidProviderToken")
        _check_claims(_verified_claims(token, key), key, now)
        rejection = key_rejection(key.next_behaviour())
        if rejection:
            raise RejectedError(rejection)
        self._take(token, key, now)
        if topic not in key.topics:
            raise rejected("TopicDisallowed")

    def _take(self, token: str, key: ApnsKey, now: float) -> None:
        if token != self._token:
            if now - self._updated_at < LEAST_UPDATE_SECONDS:
                raise rejected("TooManyProviderTokenUpdates")
            self._token, self._updated_at = token, now
        self._team_id = key.team_id

    @property
    def is_known(self) -> bool:
        return self._team_id is not None


def _check_claims(claims: Mapping[str, Any], key: ApnsKey, now: float) -> None:
    issued_at = claims.get("iat")
    if claims.get("iss") != key.team_id or not isinstance(issued_at, int):
        raise rejected("InvalidProviderToken")
    if issued_at > now:
        raise rejected("InvalidProviderToken")
    if now - issued_at > MAX_AGE:
        raise rejected("ExpiredProviderToken")


def _key_id(token: str) -> str:
    header = _part(token.partition(".")[0])
    if header.get("alg") != "ES256" or not isinstance(header.get("kid"), str):
        raise rejected("InvalidProviderToken")
    return str(header["kid"])


@lru_cache(maxsize=4096)
def _verified_claims(token: str, key: ApnsKey) -> Mapping[str, Any]:
    """The claims, after a check of the signature. Cached, because the check is slow and a token is
    used for an hour."""
    signed, _, signature = token.rpartition(".")
    try:
        raw = base64url.decode(signature)
        if len(raw) != _SIGNATURE_LENGTH:
            raise ValueError("not 64 bytes")
        numbers = int.from_bytes(raw[:32], "big"), int.from_bytes(raw[32:], "big")
        key.public_key.verify(encode_dss_signature(*numbers), signed.encode(), ec.ECDSA(SHA256()))
    except (ValueError, InvalidSignature):
        raise rejected("InvalidProviderToken") from None
    return _part(signed.partition(".")[2])


def _part(text: str) -> Mapping[str, Any]:
    try:
        part = json.loads(base64url.decode(text))
    except (ValueError, RecursionError):
        raise rejected("InvalidProviderToken") from None
    if not isinstance(part, dict):
        raise rejected("InvalidProviderToken")
    return part
