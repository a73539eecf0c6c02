"""Base64url without padding (RFC 7515 section 2), the encoding of keys and tokens."""

import base64
import re

_UNPADDED = re.compile(r"[A-Za-z0-9_-]*")


def encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


def decode(text: str) -> bytes:
    """Decodes the text. Raises ValueError for padding, the other base64 alphabet, and impossible
    lengths."""
    if not _UNPADDED.fullmatch(text):
        raise ValueError("not base64url without padding")
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
