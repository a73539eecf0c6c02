"""The message of FCM's HTTP v1, built by firebase-admin.

The library's encoder is private. This module alone uses it, and tests/api/test_private_apis.py
names the version that was read.
"""

from functools import lru_cache
from typing import Any, Final

from firebase_admin import messaging
from firebase_admin._messaging_encoder import MessageEncoder

from notifications_app.delivery.client import CACHED_MESSAGES, without_empty
from notifications_app.delivery.fcm.payload import (
    android_fields,
    common_data,
    is_data_only,
    notification,
)
from notifications_app.delivery.types import Message, Target

_ENCODER: Final = MessageEncoder()


def encoded(message: Message, target: Target, ttl: int) -> dict[str, Any]:
    """The JSON object for `target`. `ttl` is in seconds."""
    common = _common(message.common or message, ttl) | _own(message)
    data = common["data"] | without_empty({"token": target.token})
    return common | {"data": data, "token": target.address}


def _own(message: Message) -> dict[str, Any]:
    """What holds the texts of a message for one recipient. The library need not check texts."""
    if message.common is None:
        return {}
    data = {"data": common_data(message)}
    if is_data_only(message.content):
        return data
    return {"notification": notification(message.content), **data}


@lru_cache(maxsize=CACHED_MESSAGES)
def _common(message: Message, ttl: int) -> dict[str, Any]:
    """What all recipients get. The library takes most of the time of a call to check it."""
    content = message.content
    shown = None if is_data_only(content) else messaging.Notification(**notification(content))
    built = messaging.Message(
        notification=shown,
        data=common_data(message),
        android=messaging.AndroidConfig(
            collapse_key=content.topic or None,
            priority="high" if content.urgency in {"normal", "high"} else "normal",
            ttl=ttl,
            notification=shown and _android_notification(message),
        ),
    )
    # The library wants an address. As the argument `token` it is deprecated for installation ids,
    # which apps do not send us.
    built.token = "-"  # noqa: S105
    common: dict[str, Any] = _ENCODER.default(built)
    # The library writes lower case; FCM's reference has only capitals.
    common["android"]["priority"] = common["android"]["priority"].upper()
    return common


def _android_notification(message: Message) -> messaging.AndroidNotification:
    """Android shows one notification for each tag, however often it arrives."""
    own_tag = {"tag": str(message.notification_id)}
    return messaging.AndroidNotification(**own_tag | android_fields(message.content))
