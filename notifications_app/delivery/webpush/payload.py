"""The payload of a browser's service worker."""

from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID

from notifications_app.content import Content
from notifications_app.delivery.client import with_token, without_empty
from notifications_app.delivery.forms import encoded_once
from notifications_app.delivery.types import Message

# RFC 8291 section 4: 4,096 bytes less header (86), delimiter (1) and tag (16).
MAX_PAYLOAD: Final = 3_993
# The largest payload that a push service takes for each of its browsers, if that is less. Mozilla's
# passes messages for Firefox for Android on over FCM: 4,096 bytes of JSON, with the body in
# base64url, hold a body of 3,015 bytes (autopush-rs, routers/common.rs, routers/fcm/settings.rs).
# Desktops take MAX_PAYLOAD at the same host, so larger messages are sent all the same.
SURE_PAYLOADS: Final[Mapping[str, int]] = {"mozilla": 2_912}
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
    """The JSON that is encrypted for the service worker, without absent fields."""
    return with_token(_encoded(message), token)


@encoded_once
def _encoded(notification_id: UUID, content: Content) -> dict[str, Any]:
    """The payload without a token."""
    fields = {
        "notification_id": str(notification_id),
        "title": content.title,
        "body": content.body,
        "icon": content.icon,
        "url": content.url,
        "image": content.image,
        "data": dict(content.data),
        "actions": content.actions,
        "options": _options(content.web),
    }
    return without_empty(fields)


def _options(web: Mapping[str, Any]) -> dict[str, Any]:
    return {option: web[name] for name, option in _OPTIONS.items() if name in web}
