"""The message of FCM's HTTP v1, built by firebase-admin and encoded once for all recipients.

The library's encoder is private. This module alone uses it, and tests/api/test_private_apis.py
names the version whose code was read.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final
from uuid import UUID

from firebase_admin import messaging
from firebase_admin._messaging_encoder import MessageEncoder

from notifications_app.content.values import Content
from notifications_app.delivery.client import CACHED_MESSAGES, compact_json, without_empty
from notifications_app.delivery.fcm.payload import (
    AddressField,
    address_field,
    android_fields,
    common_data,
    is_data_only,
    notification,
)
from notifications_app.delivery.prepared_json import (
    PreparedJson,
    can_render,
    parameter,
    with_parameters,
)
from notifications_app.delivery.types import Destination, Message

_ENCODER: Final = MessageEncoder()


def request_body(message: Message, destination: Destination, ttl: int) -> bytes:
    """The request's body for `destination`. `ttl` is in seconds."""
    common, field = message.common or message, address_field(destination.address)
    if can_render(message.own) and destination.token:
        prepared = _prepared(common, tuple(message.own), ttl, field)
        return prepared.render(
            {**message.own, "token": destination.token, "address": destination.address}
        )
    own = _own(message.notification_id, message.whole) if message.own else {}
    addressed = _addressed(
        _common(common, ttl) | own, destination.token, field, destination.address
    )
    return compact_json(addressed)


@lru_cache(maxsize=CACHED_MESSAGES)
def _prepared(
    common: Message, names: tuple[str, ...], ttl: int, field: AddressField
) -> PreparedJson:
    own = _own(common.notification_id, with_parameters(common.content, names))
    return PreparedJson(
        _addressed(_common(common, ttl) | own, parameter("token"), field, parameter("address"))
    )


def _addressed(
    message: Mapping[str, Any], token: str, field: AddressField, address: str
) -> dict[str, Any]:
    data = message["data"] | without_empty({"token": token})
    return {"message": {**message, "data": data, field: address}}


def _own(notification_id: UUID, content: Content) -> dict[str, Any]:
    """The fields with texts, which the library need not check for each recipient."""
    data = {"data": common_data(notification_id, content)}
    return data if is_data_only(content) else {"notification": notification(content), **data}


@lru_cache(maxsize=CACHED_MESSAGES)
def _common(message: Message, ttl: int) -> dict[str, Any]:
    """The fields that all recipients get. Cached, because checking them by the library takes most
    of the time of a call."""
    content = message.content
    shown = None if is_data_only(content) else messaging.Notification(**notification(content))
    built = messaging.Message(
        notification=shown,
        data=common_data(message.notification_id, content),
        android=messaging.AndroidConfig(
            collapse_key=content.topic or None,
            priority="high" if content.urgency in {"normal", "high"} else "normal",
            ttl=ttl,
            notification=shown and _android_notification(message),
            direct_boot_ok=content.android.get("direct_boot_ok"),
            fcm_options=_android_options(content),
        ),
        fid="-",  # the library requires an address
    )
    common: dict[str, Any] = _ENCODER.default(built)
    del common["fid"]
    # The library writes lower case; FCM's reference has only capitals.
    common["android"]["priority"] = common["android"]["priority"].upper()
    return common


def _android_notification(message: Message) -> messaging.AndroidNotification:
    """Android shows one notification for each tag, however often it arrives."""
    fields = {"tag": str(message.notification_id)} | android_fields(message.content)
    priority = fields.pop("notification_priority", None)
    return messaging.AndroidNotification(**fields, priority=priority)


def _android_options(content: Content) -> messaging.AndroidFCMOptions | None:
    label = content.android.get("analytics_label")
    return messaging.AndroidFCMOptions(label) if label else None
