"""Declarative messages, as a browser reads them.

W3C, Push API, "Declarative push message parser", with "create a notification" of the WHATWG's
Notifications API; and what WebKit rejects beyond them: an empty title, a relative `navigate`, and
members of another type, which the specification ignores. `mutable` and `app_badge` belong beside
`notification`. Safari read them inside of it before WebKit's pull requests 45798 and 48896.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from sandbox.responses import RejectedError
from sandbox.webpush.responses import rejected

_WEB_PUSH = 8030
_DIRECTIONS = ("auto", "ltr", "rtl")
_MAX_BADGE = 2**31 - 1  # WebKit reads numbers of JSON as int


@dataclass(frozen=True, slots=True)
class Declared:
    """The notification that the browser shows by itself. `data`: for the worker, with `mutable`."""

    title: str
    navigate: str
    body: str
    tag: str
    lang: str
    direction: str
    silent: bool | None
    data: Any
    app_badge: int | None
    mutable: bool


def declared(plaintext: bytes) -> Declared | None:
    """The notification of a declarative message; None if it is none. Raises RejectedError (400) for
    one that a browser could not show by itself."""
    message = _object(plaintext)
    if message is None or "web_push" not in message:
        return None
    if message["web_push"] != _WEB_PUSH:
        raise _invalid("web_push")
    notification = message.get("notification")
    if not isinstance(notification, dict):
        raise _invalid("notification")
    _check_options(notification)
    for members in (message, notification):
        _check(members, "mutable", _is_flag)
        _check(members, "app_badge", _is_badge)
    if message.get("app_badge") != notification.get("app_badge"):
        raise _invalid("app_badge")
    return Declared(
        title=notification["title"],
        navigate=notification["navigate"],
        body=notification.get("body", ""),
        tag=notification.get("tag", ""),
        lang=notification.get("lang", ""),
        direction=notification.get("dir", "auto"),
        silent=notification.get("silent"),
        data=notification.get("data"),
        app_badge=message.get("app_badge"),
        mutable=message.get("mutable", False) and notification.get("mutable", False),
    )


def _object(plaintext: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(plaintext)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _check_options(notification: Mapping[str, Any]) -> None:
    if not notification.get("title") or not _is_text(notification["title"]):
        raise _invalid("title")
    if not _is_address(notification.get("navigate")):
        raise _invalid("navigate")
    for name in ("body", "tag", "lang"):
        _check(notification, name, _is_text)
    _check(notification, "dir", lambda value: value in _DIRECTIONS)
    _check(notification, "icon", _is_address)
    for name in ("silent", "renotify", "requireInteraction"):
        _check(notification, name, _is_flag)
    if notification.get("renotify") and not notification.get("tag"):
        raise _invalid("renotify")


def _check(members: Mapping[str, Any], name: str, is_valid: Callable[[Any], bool]) -> None:
    if name in members and not is_valid(members[name]):
        raise _invalid(name)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def _is_badge(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MAX_BADGE


def _is_address(value: Any) -> bool:
    if not isinstance(value, str):
        return False
    try:
        parts = urlsplit(value)
    except ValueError:
        return False
    return parts.scheme in {"http", "https"} and bool(parts.hostname)


def _invalid(member: str) -> RejectedError:
    return rejected(400, None, f"Invalid declarative message: {member}")
