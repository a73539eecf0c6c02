"""The message of FCM's HTTP v1, built by firebase-admin.

The library's encoder is private. This module alone uses it, and tests/api/test_private_apis.py
names the version that was read.
"""

from functools import lru_cache
from typing import Any, Final

from firebase_admin import messaging
from firebase_admin._messaging_encoder import MessageEncoder

from notifications_app.delivery.client import CACHED_MESSAGES, without_empty
from notifications_app.delivery.types import Message, Target

_ENCODER: Final = MessageEncoder()


def encoded(message: Message, target: Target, ttl: int) -> dict[str, Any]:
    """The JSON object for `target`. `ttl` is in seconds."""
    common = _common(message, ttl)
    data = common["data"] | without_empty({"token": target.token})
    return common | {"data": data, "token": target.address}


@lru_cache(maxsize=CACHED_MESSAGES)
def _common(message: Message, ttl: int) -> dict[str, Any]:
    """What all recipients get. The library takes most of the time of a call to check it."""
    content = message.content
    built = messaging.Message(
        notification=messaging.Notification(
            title=content.title or None,
            body=content.body,
            image=content.image or content.icon or None,
        ),
        data=_data(message),
        android=messaging.AndroidConfig(
            collapse_key=content.topic or None,
            priority="high" if content.urgency in {"normal", "high"} else "normal",
            ttl=ttl,
            # Android shows one notification for each tag, however often it arrives.
            notification=messaging.AndroidNotification(tag=str(message.notification_id)),
        ),
    )
    # The library wants an address. As the argument `token` it is deprecated for installation ids,
    # which apps do not send us.
    built.token = "-"  # noqa: S105
    common: dict[str, Any] = _ENCODER.default(built)
    # The library writes lower case; FCM's reference has only capitals.
    common["android"]["priority"] = common["android"]["priority"].upper()
    return common


def _data(message: Message) -> dict[str, str]:
    """Our own names replace the sender's."""
    own = {
        "notification_id": str(message.notification_id),
        "url": message.content.url,
        "icon": message.content.icon,
    }
    return {**message.content.data, **without_empty(own)}
