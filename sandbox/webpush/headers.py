"""The header rules of RFC 8030 for a push message, checked in the order of `check_headers`."""

import re

from multidict import CIMultiDictProxy

from sandbox.webpush.responses import rejected

# 30 days. Autopush keeps nothing longer, and states the TTL that it grants.
MAX_TTL = 2_592_000

_INTEGER = re.compile(r"-?[0-9]{1,18}")
_TOPIC = re.compile(r"[A-Za-z0-9_-]{1,32}")
_URGENCIES = frozenset({"very-low", "low", "normal", "high"})

Headers = CIMultiDictProxy[str]


def check_headers(headers: Headers) -> int:
    """Returns the granted TTL in seconds. Raises RejectedError at the first broken rule."""
    ttl = _granted_ttl(headers)
    _check_urgency(headers)
    _check_topic(headers)
    _check_content_encoding(headers)
    return ttl


def _granted_ttl(headers: Headers) -> int:
    """RFC 8030 §5.2."""
    values = headers.getall("TTL", [])
    if not values:
        raise rejected(400, 111, "Missing TTL value")
    if len(values) > 1 or not _INTEGER.fullmatch(values[0]):
        raise rejected(400, 112, "TTL is not a whole number of seconds")
    ttl = int(values[0])
    if ttl < 0:
        raise rejected(400, 114, "TTL is negative")
    return min(ttl, MAX_TTL)


def _check_urgency(headers: Headers) -> None:
    """RFC 8030 §5.3. Autopush ignores it and has no error number for it."""
    values = headers.getall("Urgency", ["normal"])
    if len(values) > 1 or values[0].lower() not in _URGENCIES:
        raise rejected(400, None, "Urgency is not one of very-low, low, normal, high")


def _check_topic(headers: Headers) -> None:
    """RFC 8030 §5.4."""
    values = headers.getall("Topic", [])
    if len(values) > 1 or (values and not _TOPIC.fullmatch(values[0])):
        raise rejected(400, 113, "Topic is not 1 to 32 characters of the base64url alphabet")


def _check_content_encoding(headers: Headers) -> None:
    """RFC 8291 §4 allows only aes128gcm."""
    values = headers.getall("Content-Encoding", [])
    if not values:
        raise rejected(400, 110, "Missing Content-Encoding header")
    if len(values) > 1 or values[0].lower() != "aes128gcm":
        raise rejected(400, 110, "Content-Encoding is not aes128gcm")
