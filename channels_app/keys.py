"""The text of an API key: `psk_` + public id + `_` + random part + checksum. Pure.

The public id finds the row. The random part is the secret. The checksum (CRC32 of the text before
it, base 62) detects mistyped keys without a query, and lets secret scanners recognise real keys.
"""

import hashlib
import hmac
import re
import secrets
import string
import zlib
from dataclasses import dataclass

_ALPHABET = string.digits + string.ascii_uppercase + string.ascii_lowercase
_START = re.compile(r"psk_([0-9A-Za-z]{8})(_.*)?", re.ASCII)
_SHAPE = re.compile(r"(psk_([0-9A-Za-z]{8})_[0-9A-Za-z]{32})([0-9A-Za-z]{6})", re.ASCII)


@dataclass(frozen=True)
class PresentedKey:
    """A key with a correct checksum, without its text."""

    public_id: str
    sha256: str

    def matches(self, sha256: str) -> bool:
        return hmac.compare_digest(self.sha256, sha256)


def generate() -> tuple[str, PresentedKey]:
    """Returns the text of a new key, with 190 random bits, and the part that is stored."""
    public_id = _random(8)
    start = f"psk_{public_id}_{_random(32)}"
    text = start + _checksum(start)
    return text, PresentedKey(public_id, _sha256(text))


def parse(text: str) -> PresentedKey | None:
    """Parses a key. None for a text that is not a key or is mistyped."""
    match = _SHAPE.fullmatch(text)
    if match is None or match[3] != _checksum(match[1]):
        return None
    return PresentedKey(match[2], _sha256(text))


def public_id_of(text: str) -> str | None:
    """The id with which lists and logs name a key, from its text or its first 12 characters."""
    match = _START.fullmatch(text)
    return match[1] if match else None


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _random(length: int) -> str:
    return "".join(secrets.choice(_ALPHABET) for _ in range(length))


def _checksum(text: str) -> str:
    value = zlib.crc32(text.encode())
    digits = []
    for _ in range(6):
        value, digit = divmod(value, 62)
        digits.append(_ALPHABET[digit])
    return "".join(reversed(digits))
