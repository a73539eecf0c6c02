"""The type of a send request, checked as strictly as Google's frontend does.

https://firebase.google.com/docs/reference/fcm/rest/v1/projects.messages. Unknown names and
values of another type have their own response. `sandbox.fcm.message` has FCM's own checks.
"""

import json
import re
from collections.abc import Callable, Mapping
from functools import partial

from sandbox.fcm import responses
from sandbox.responses import RejectedError

# Raises RejectedError unless the value at the path has the type.
Check = Callable[[object, str], None]

DURATION = re.compile(r"(-?[0-9]{1,12})(?:\.[0-9]{1,9})?s")
_TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)")
_MAX_ECHO = 100
_CAMEL = re.compile(r"(?<=[a-z0-9])([A-Z])")


def check_request(value: object) -> None:
    """Raises RejectedError at the first name or value that is not allowed."""
    _REQUEST(value, "")


def snake(name: str) -> str:
    """The name in snake case. Protocol buffers accept field names in both forms."""
    return _CAMEL.sub(lambda match: f"_{match[1].lower()}", name)


def _wrong(path: str, type_name: str, value: object) -> RejectedError:
    text = f"Invalid value at '{path}' ({type_name}), {json.dumps(value)[:_MAX_ECHO]}"
    return RejectedError(responses.unreadable(text, path))


def _text(value: object, path: str) -> None:
    if not isinstance(value, str):
        raise _wrong(path, "TYPE_STRING", value)


def _flag(value: object, path: str) -> None:
    if not isinstance(value, bool):
        raise _wrong(path, "TYPE_BOOL", value)


def _number(value: object, path: str) -> None:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise _wrong(path, "TYPE_FLOAT", value)


def _whole_number(value: object, path: str) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not -(2**31) <= value < 2**31:
        raise _wrong(path, "TYPE_INT32", value)


def _matching(pattern: re.Pattern[str], type_name: str, value: object, path: str) -> None:
    if not isinstance(value, str) or not pattern.fullmatch(value):
        raise _wrong(path, f"type.googleapis.com/google.protobuf.{type_name}", value)


_duration = partial(_matching, DURATION, "Duration")
_timestamp = partial(_matching, _TIMESTAMP, "Timestamp")


def _struct(value: object, path: str) -> None:
    if not isinstance(value, dict):
        raise _wrong(path, "type.googleapis.com/google.protobuf.Struct", value)


def _text_map(value: object, path: str) -> None:
    if not isinstance(value, dict):
        raise _wrong(path, "map", value)
    for index, each in enumerate(value.values()):
        _text(each, f"{path}[{index}].value")


def _list_of(check: Check) -> Check:
    def checked(value: object, path: str) -> None:
        if not isinstance(value, list):
            raise _wrong(path, "list", value)
        for index, each in enumerate(value):
            check(each, f"{path}[{index}]")

    return checked


def _one_of(type_name: str, names: str) -> Check:
    """Accepts upper case, as documented, and lower case, as Google's libraries write."""
    known = frozenset(f"{names} {names.lower()}".split())

    def checked(value: object, path: str) -> None:
        if not isinstance(value, str) or value not in known:
            raise _wrong(path, f"type.googleapis.com/google.firebase.fcm.v1.{type_name}", value)

    return checked


def _object(**fields: Check) -> Check:
    def checked(value: object, path: str) -> None:
        if not isinstance(value, dict):
            raise _wrong(path, "message", value)
        for name, each in value.items():
            check = fields.get(snake(name))
            if check is None:
                raise _unknown_name(name, path)
            if each is not None:  # which is the same as absent
                check(each, f"{path}.{snake(name)}" if path else snake(name))

    return checked


def _unknown_name(name: str, path: str) -> RejectedError:
    where = f" at '{path}'" if path else ""
    text = f'Invalid JSON payload received. Unknown name "{name}"{where}: Cannot find field.'
    return RejectedError(responses.unreadable(text, path))


def _texts(*names: str) -> Mapping[str, Check]:
    return dict.fromkeys(names, _text)


def _flags(*names: str) -> Mapping[str, Check]:
    return dict.fromkeys(names, _flag)


_LEVELS = "PRIORITY_UNSPECIFIED PRIORITY_MIN PRIORITY_LOW PRIORITY_DEFAULT PRIORITY_HIGH"
_COLOR = _object(red=_number, green=_number, blue=_number, alpha=_number)
_ANDROID_NOTIFICATION = _object(
    **_texts("title", "body", "icon", "color", "sound", "tag", "click_action", "body_loc_key"),
    **_texts("title_loc_key", "channel_id", "ticker", "image"),
    **_flags("sticky", "local_only", "default_sound", "default_vibrate_timings"),
    **_flags("default_light_settings", "bypass_proxy_notification"),
    body_loc_args=_list_of(_text),
    title_loc_args=_list_of(_text),
    event_time=_timestamp,
    notification_priority=_one_of("NotificationPriority", f"{_LEVELS} PRIORITY_MAX"),
    vibrate_timings=_list_of(_duration),
    visibility=_one_of("Visibility", "VISIBILITY_UNSPECIFIED PRIVATE PUBLIC SECRET"),
    notification_count=_whole_number,
    light_settings=_object(color=_COLOR, light_on_duration=_duration, light_off_duration=_duration),
    proxy=_one_of("Proxy", "PROXY_UNSPECIFIED ALLOW DENY IF_PRIORITY_LOWERED"),
)
_ANDROID = _object(
    **_texts("collapse_key", "restricted_package_name"),
    **_flags("direct_boot_ok", "bandwidth_constrained_ok", "restricted_satellite_ok"),
    priority=_one_of("AndroidMessagePriority", "NORMAL HIGH"),
    ttl=_duration,
    data=_text_map,
    notification=_ANDROID_NOTIFICATION,
    fcm_options=_object(analytics_label=_text),
)
_WEBPUSH = _object(
    headers=_text_map,
    data=_text_map,
    notification=_struct,
    fcm_options=_object(link=_text, analytics_label=_text),
)
_APNS = _object(
    headers=_text_map,
    payload=_struct,
    fcm_options=_object(analytics_label=_text, image=_text),
    live_activity_token=_text,
)
_MESSAGE = _object(
    **_texts("name", "token", "fid", "topic", "condition"),
    data=_text_map,
    notification=_object(**_texts("title", "body", "image")),
    android=_ANDROID,
    webpush=_WEBPUSH,
    apns=_APNS,
    fcm_options=_object(analytics_label=_text),
)
_REQUEST = _object(validate_only=_flag, message=_MESSAGE)
