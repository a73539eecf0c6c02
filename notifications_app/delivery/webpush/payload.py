"""What a browser's service worker gets."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from notifications_app.delivery.client import (
    CACHED_MESSAGES,
    compact_json,
    with_token,
    without_empty,
)
from notifications_app.delivery.types import Message

# RFC 8291 section 4: 4,096 bytes less header (86), delimiter (1) and tag (16).
MAX_PAYLOAD: Final = 3_993
# The options of showNotification() that a send can set, by the names of its fields.
_OPTIONS: Final = {
    "badge": "badge",
    "require_interaction": "requireInteraction",
    "silent": "silent",
    "renotify": "renotify",
    "tag": "tag",
    "lang": "lang",
    "dir": "dir",
}


def payload(message: Message, token: str) -> bytes:
    """What the service worker gets, before encryption, as JSON without absent fields."""
    made = _fields(message) if message.common is None else _made(message)
    return with_token(made, token)


def _made(message: Message) -> bytes:
    """The same without a token."""
    fields = {
        "notification_id": str(message.notification_id),
        "title": message.content.title,
        "body": message.content.body,
        "icon": message.content.icon,
        "url": message.content.url,
        "image": message.content.image,
        "data": dict(message.content.data),
        "actions": message.content.actions,
        "options": _options(message.content.web),
    }
    return compact_json(without_empty(fields))


# What all recipients get.
_fields: Final = lru_cache(maxsize=CACHED_MESSAGES)(_made)


def _options(web: Mapping[str, Any]) -> dict[str, Any]:
    return {option: web[name] for name, option in _OPTIONS.items() if name in web}
