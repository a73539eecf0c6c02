"""The message of FCM's HTTP v1, built by firebase-admin.

The library's encoder is private. This module alone uses it, and tests/delivery/test_libraries.py
names the version that was read.
"""

from typing import Any, Final

from firebase_admin import messaging
from firebase_admin._messaging_encoder import MessageEncoder

from notifications_app.delivery.client import without_empty
from notifications_app.delivery.types import Message, Target

_ENCODER: Final = MessageEncoder()


def encoded(message: Message, target: Target, ttl: int) -> dict[str, Any]:
    """The JSON object for `target`. `ttl` is in seconds."""
    built = messaging.Message(
        notification=messaging.Notification(
            title=message.content.title or None,
            body=message.content.body,
            image=message.content.image or message.content.icon or None,
        ),
        data=_data(message, target.token),
        android=messaging.AndroidConfig(
            collapse_key=message.content.topic or None,
            priority="high" if message.content.urgency in {"normal", "high"} else "normal",
            ttl=ttl,
            # Android shows one notification for each tag, however often it arrives.
            notification=messaging.AndroidNotification(tag=str(message.notification_id)),
        ),
    )
    # The argument `token` is deprecated for installation ids, which apps do not send us.
    built.token = target.address
    whole: dict[str, Any] = _ENCODER.default(built)
    # The library writes lower case; FCM's reference has only capitals.
    whole["android"]["priority"] = whole["android"]["priority"].upper()
    return whole


def _data(message: Message, token: str) -> dict[str, str]:
    """Our own names replace the sender's."""
    own = {
        "notification_id": str(message.notification_id),
        "url": message.content.url,
        "icon": message.content.icon,
        "token": token,
    }
    return {**message.content.data, **without_empty(own)}
