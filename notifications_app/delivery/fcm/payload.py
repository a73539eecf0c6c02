"""The payload of an Android app: a notification and data."""

from typing import Any, Final, Literal, TypeAlias
from uuid import UUID

from notifications_app.content.fields import ANDROID, sent_names
from notifications_app.content.values import Content
from notifications_app.delivery.client import compact_json, without_empty
from notifications_app.delivery.types import Message
from pushsvc.common.platforms import is_fid

# The field of a message for its address.
AddressField: TypeAlias = Literal["fid", "token"]

MAX_PAYLOAD: Final = 4_096
# Reserved names in `data`: our own, those that FCM refuses ("from", "google.…", "gcm.…"), and those
# that its Android library does not pass to the app ("message_type", "collapse_key").
_OWN_NAMES: Final = frozenset({"notification_id", "url", "icon", "token"})
_SHOWN_BY_APP: Final = frozenset({"title", "body", "image"})  # our own with `data_only`
_RESERVED_NAMES: Final = frozenset({"from", "message_type", "collapse_key"})
_RESERVED_PREFIXES: Final = ("google.", "gcm.")

_FIELDS: Final = sent_names(ANDROID)


def address_field(address: str) -> AddressField:
    """The field for an address. Its text decides, because both kinds are stored in one column."""
    return "fid" if is_fid(address) else "token"


def unusable_data_names(content: Content) -> list[str]:
    """The names in a sender's `data` that are reserved on Android."""
    reserved = _RESERVED_NAMES | _own_names(content)
    return [
        name for name in content.data if name in reserved or name.startswith(_RESERVED_PREFIXES)
    ]


def _own_names(content: Content) -> frozenset[str]:
    names = _OWN_NAMES | {"actions"} if content.actions else _OWN_NAMES
    return names | _SHOWN_BY_APP if is_data_only(content) else names


def payload(message: Message, token: str) -> bytes:
    """Notification and data as JSON, without absent fields. Used to measure the payload.

    Google does not document what its limit counts. This is more than all names and values.
    """
    content = message.whole
    parts = {
        "notification": notification(content),
        "data": common_data(message.notification_id, content) | without_empty({"token": token}),
        "android": android_fields(content),
    }
    return compact_json(without_empty(parts))


def is_data_only(content: Content) -> bool:
    """Whether the app shows the notification itself."""
    return bool(content.android.get("data_only"))


def notification(content: Content) -> dict[str, str]:
    """The notification that Android shows; empty if the app shows it itself."""
    if is_data_only(content):
        return {}
    image = content.image or content.icon
    return without_empty({"body": content.body, "title": content.title, "image": image})


def android_fields(content: Content) -> dict[str, Any]:
    """How Android shows the notification, with FCM's names."""
    own = {} if is_data_only(content) else content.android
    return {fcm_name: own[name] for name, fcm_name in _FIELDS.items() if name in own}


def common_data(notification_id: UUID, content: Content) -> dict[str, str]:
    """The data without a token. Our own names replace the sender's."""
    own = {
        "notification_id": str(notification_id),
        "url": content.url,
        "icon": content.icon,
        "actions": compact_json(content.actions).decode() if content.actions else "",
    }
    if is_data_only(content):
        own |= {name: getattr(content, name) for name in sorted(_SHOWN_BY_APP)}
    return {**content.data, **without_empty(own)}
