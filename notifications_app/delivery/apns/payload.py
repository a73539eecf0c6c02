"""What an iOS app gets."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from notifications_app.content import Content
from notifications_app.delivery.client import CACHED_MESSAGES, compact_json, without_empty
from notifications_app.delivery.types import Message

MAX_PAYLOAD: Final = 4_096
# Apple's keys, by the names of a send's fields.
_KEYS: Final = {
    "badge": "badge",
    "category": "category",
    "thread_id": "thread-id",
    "interruption_level": "interruption-level",
    "relevance_score": "relevance-score",
    "target_content_id": "target-content-id",
}


def payload(message: Message, token: str) -> bytes:
    """What the app gets, as JSON."""
    return compact_json(content(message, token))


def content(message: Message, token: str) -> dict[str, Any]:
    """The same as an object."""
    made = _common(message) if message.common is None else _own(message, message.common)
    return made | without_empty({"token": token})


@lru_cache(maxsize=CACHED_MESSAGES)
def _common(message: Message) -> dict[str, Any]:
    """What all recipients get."""
    return {"aps": _aps(message.content)} | _fields(message.content, str(message.notification_id))


def _own(message: Message, common: Message) -> dict[str, Any]:
    """What one recipient gets: the same with other texts."""
    shared = _common(common)
    aps = shared["aps"] | {"alert": _alert(message.content)}
    return {"aps": aps} | _fields(message.content, shared["notification_id"])


def _fields(content: Content, notification_id: str) -> dict[str, Any]:
    fields = {
        "notification_id": notification_id,
        "url": content.url,
        "icon": content.icon,
        "image": content.image,
        "data": dict(content.data),
        "actions": content.actions,
    }
    return without_empty(fields)


def _aps(content: Content) -> dict[str, Any]:
    """Apple's part. With `mutable-content` the app's extension can add the image."""
    ios = content.ios
    extra = {
        "sound": _sound(ios.get("sound")),
        "content-available": int(ios.get("content_available", False)),
    }
    keys = {key: ios[name] for name, key in _KEYS.items() if name in ios}
    return {"alert": _alert(content), "mutable-content": 1} | keys | without_empty(extra)


def _alert(content: Content) -> dict[str, str]:
    subtitle = content.ios.get("subtitle")
    return without_empty({"title": content.title, "subtitle": subtitle, "body": content.body})


def _sound(sound: str | Mapping[str, Any] | None) -> object:
    """Apple writes `critical` as a number."""
    if sound is None or isinstance(sound, str):
        return sound
    return {**sound, "critical": int(sound["critical"])} if "critical" in sound else sound
