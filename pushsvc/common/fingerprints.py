"""Fingerprints of code and keys, which must be the same in all processes of an installation.

A process sends them in its reports to Redis, and the doctor compares them with its own.
"""

import hashlib
import hmac
from collections.abc import Iterable
from functools import cache
from typing import Final, NamedTuple

from django.conf import settings

_PACKAGES: Final = ("pushsvc", "channels_app", "subscriptions_app", "notifications_app")
_LENGTH: Final = 12


class Fingerprints(NamedTuple):
    """`secret_keys` and `credential_keys` are equal in processes that accept each other's
    signatures and secrets. They stay equal while a key is replaced as docs/upgrade.md says."""

    code: str
    secret_keys: str
    credential_keys: str


def own() -> Fingerprints:
    secret = {settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS}
    return Fingerprints(code(), _hash(secret), _hash(settings.CREDENTIAL_KEYS))


@cache
def code() -> str:
    """A hash of the code's files at the first call. A parent must call it before it forks."""
    found = hashlib.sha256()
    for package in _PACKAGES:
        folder = settings.BASE_DIR / package
        for file in sorted(folder.rglob("*.py")):
            found.update(f"{file.relative_to(folder)}\0".encode() + file.read_bytes())
    return found.hexdigest()[:_LENGTH]


def _hash(keys: Iterable[str]) -> str:
    """A hash of the keys in any order. Keys of fifty random characters cannot be found from it."""
    joined = ",".join(sorted(set(keys)))
    return hmac.new(joined.encode(), b"pushsvc", hashlib.sha256).hexdigest()[:_LENGTH]
