"""FCM's own checks of a message that has the right type."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sandbox.fcm import responses
from sandbox.fcm.schema import DURATION, snake
from sandbox.responses import RejectedError

MAX_PAYLOAD = 4_096
MAX_TTL = 2_419_200
_TARGETS = ("token", "fid", "topic", "condition")
# https://firebase.google.com/docs/cloud-messaging/customize-messages/set-message-type
_RESERVED = re.compile(r"from|message_type|google\..*|gcm\..*", re.DOTALL)

_COLOR = re.compile(r"#[0-9a-fA-F]{6}")
# https://firebase.google.com/docs/cloud-messaging/understand-delivery#adding-analytics-labels
_LABEL = re.compile(r"[a-zA-Z0-9-_.~%]{1,50}")

Fields = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ReceivedSend:
    """`message` as it was sent. `field`: in which it has its address."""

    message: Fields
    field: str
    address: str
    is_dry_run: bool


def checked(request: Fields) -> ReceivedSend:
    """Checks the message and returns it. Raises RejectedError at the first broken rule."""
    fields = _fields(request)
    message = _fields(fields.get("message"))
    if not message:
        raise _invalid("message", "The message is not set.")
    field = _checked_target(message)
    android = _fields(message.get("android"))
    _check_ttl(android.get("ttl"))
    _check_color(_fields(android.get("notification")).get("color"))
    for path, part in (("message", message), ("message.android", android)):
        _check_names(path, _fields(part).get("data") or {})
        _check_label(path, _fields(_fields(part).get("fcm_options")).get("analytics_label"))
    _check_size(message, android)
    is_dry_run = fields.get("validate_only") or False
    return ReceivedSend(fields["message"], field, message[field], is_dry_run)


def _fields(value: Fields | None) -> Fields:
    """Fields by their documented names. null is the same as absent."""
    return {snake(name): each for name, each in (value or {}).items() if each is not None}


def _checked_target(message: Fields) -> str:
    targets = [name for name in _TARGETS if message.get(name)]
    if not targets:
        raise _invalid("message", "Recipient of the message is not set.")
    if len(targets) > 1:
        raise _invalid("message", f"The message has more than one target: {', '.join(targets)}.")
    [field] = targets
    if field not in {"token", "fid"}:
        raise _invalid(f"message.{field}", "The sandbox has no topics.")
    return field


def _check_ttl(ttl: str | None) -> None:
    match = DURATION.fullmatch(ttl) if ttl is not None else None
    if match and not 0 <= int(match[1]) <= MAX_TTL:
        raise _invalid("message.android.ttl", f"Invalid ttl: it must be 0 to {MAX_TTL} seconds.")


def _check_color(color: str | None) -> None:
    if color is not None and not _COLOR.fullmatch(color):
        raise _invalid("message.android.notification.color", "Invalid color: it must be #RRGGBB.")


def _check_label(path: str, label: str | None) -> None:
    if label is not None and not _LABEL.fullmatch(label):
        raise _invalid(f"{path}.fcm_options.analytics_label", "Invalid analytics label.")


def _check_names(path: str, data: Mapping[str, str]) -> None:
    for name in data:
        if _RESERVED.fullmatch(name):
            raise _invalid(f"{path}.data", f"Invalid data payload key: {name}")


def _check_size(message: Fields, android: Fields) -> None:
    """Checks the size. Google does not document what it counts; here it is the bytes of all names
    and texts that the device gets."""
    parts = (
        message.get("notification"),
        android.get("notification"),
        {**(message.get("data") or {}), **(android.get("data") or {})},
    )
    if sum(_size(each) for part in parts for item in (part or {}).items() for each in item) > (
        MAX_PAYLOAD
    ):
        raise _invalid("message.android", "Android message is too big")


def _size(value: object) -> int:
    return len(str(value).encode("utf-8", "surrogatepass"))


def _invalid(field: str, description: str) -> RejectedError:
    return RejectedError(responses.invalid_argument(field, description))
