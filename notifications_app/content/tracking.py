"""Tracking tokens. A device sends one with its events; it names the delivery and is signed."""

import hmac
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from functools import cache
from hashlib import sha256
from typing import Final
from uuid import UUID

from django.conf import settings

TOKEN_LENGTH: Final = 64
TOKEN_DAYS: Final = 28  # counted from the start of its notification
_TOKEN: Final = re.compile(rf"[A-Za-z0-9_-]{{{TOKEN_LENGTH}}}", re.ASCII)
_IDS_BYTES: Final = 32
_MAC_BYTES: Final = 16
_PURPOSE: Final = b"notifications_app.content.tracking"


def make_token(notification_id: UUID, subscription_id: UUID) -> str:
    """The token of a delivery: TOKEN_LENGTH base64url characters, always the same ones."""
    ids = notification_id.bytes + subscription_id.bytes
    return urlsafe_b64encode(ids + _mac(ids, settings.SECRET_KEY)).decode()


def read_token(token: str) -> tuple[UUID, UUID] | None:
    """(notification id, subscription id) of a token of `make_token`; None for other texts.

    The caller checks, by the notification, that the token is not older than TOKEN_DAYS.
    """
    if not _TOKEN.fullmatch(token):  # Python's decoder ignores other characters
        return None
    raw = urlsafe_b64decode(token)
    ids, mac = raw[:_IDS_BYTES], raw[_IDS_BYTES:]
    secrets = (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)
    if not any(hmac.compare_digest(mac, _mac(ids, secret)) for secret in secrets):
        return None
    return UUID(bytes=ids[:16]), UUID(bytes=ids[16:])


def _mac(ids: bytes, secret: str) -> bytes:
    return hmac.digest(_key(secret), ids, "sha256")[:_MAC_BYTES]


@cache
def _key(secret: str) -> bytes:
    return sha256(_PURPOSE + b"\0" + secret.encode()).digest()
