"""The payload of an iOS app."""

from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID

from notifications_app.content.fields import IOS, sent_names
from notifications_app.content.values import Content
from notifications_app.delivery.client import with_token, without_empty
from notifications_app.delivery.prepared_json import encoded_once
from notifications_app.delivery.types import Message

MAX_PAYLOAD: Final = 4_096
# An alert without a sound is silent on iOS, unlike on Android.
_DEFAULT_SOUND: Final = "default"
_KEYS: Final = sent_names(IOS)


def payload(message: Message, token: str) -> bytes:
    """The payload as JSON."""
    return with_token(_encoded(message), token)


@encoded_once
def _encoded(notification_id: UUID, content: Content) -> dict[str, Any]:
    """The payload without a token."""
    fields = {
        "aps": _aps(content),
        "notification_id": str(notification_id),
        "url": content.url,
        "icon": content.icon,
        "image": content.image,
        "data": dict(content.data),
        "actions": content.actions,
    }
    return without_empty(fields)


def _aps(content: Content) -> dict[str, Any]:
    """The dictionary `aps`. With `mutable-content` the app's extension can add the image."""
    ios = content.ios
    extra = {
        "sound": _sound(ios.get("sound", _DEFAULT_SOUND)),
        "content-available": int(ios.get("content_available", False)),
    }
    keys = {key: ios[name] for name, key in _KEYS.items() if name in ios}
    return {"alert": _alert(content), "mutable-content": 1} | keys | without_empty(extra)


def _alert(content: Content) -> dict[str, str]:
    subtitle = content.ios.get("subtitle")
    return without_empty({"title": content.title, "subtitle": subtitle, "body": content.body})


def _sound(sound: str | Mapping[str, Any] | None) -> object:
    """The sound with `critical` as a number, as Apple requires."""
    if sound is None or isinstance(sound, str):
        return sound
    return {**sound, "critical": int(sound["critical"])} if "critical" in sound else sound
