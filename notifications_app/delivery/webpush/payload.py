"""The payload of a browser's service worker."""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Final
from uuid import UUID

from notifications_app.content.fields import WEB, sent_names
from notifications_app.content.values import Content
from notifications_app.delivery.client import (
    CACHED_MESSAGES,
    compact_json,
    with_token,
    without_empty,
)
from notifications_app.delivery.prepared_json import (
    PreparedJson,
    can_render,
    encoded_once,
    parameter,
    with_parameters,
)
from notifications_app.delivery.types import Message, Site
from pushsvc.common.links import absolute, is_of_web

# RFC 8291 section 4: 4,096 bytes less header (86), delimiter (1) and tag (16).
MAX_PAYLOAD: Final = 3_993
# The largest payload that a push service takes for each of its browsers, if that is less. Mozilla's
# passes messages for Firefox for Android on over FCM: 4,096 bytes of JSON, with the body in
# base64url, hold a body of 3,015 bytes (autopush-rs, routers/common.rs, routers/fcm/settings.rs).
# Desktops take MAX_PAYLOAD at the same host, so larger messages are sent all the same.
SURE_PAYLOADS: Final[Mapping[str, int]] = {"mozilla": 2_912}
_OPTIONS: Final = sent_names(WEB)  # of showNotification()

# The push services whose browsers show declarative messages (W3C, Push API, "Declarative push
# message"; webkit.org/blog/16535). A message to any other service has no site.
DECLARATIVE_SERVICES: Final = frozenset({"apple"})
_OF_WORKER: Final = ("app_badge", "click")
_MARK: Final = {"web_push": 8030, "mutable": True}
# `app_badge` and `mutable` belong beside `notification`. Safari read them inside of it before
# WebKit's changes 45798 and 48896, so they are in both places.
_PROPOSED: Final = ("lang", "dir", "silent", "app_badge")
_SHOWN: Final = frozenset({"title", "body", "url"})  # which the notification itself contains


def payload(message: Message, token: str) -> bytes:
    """The JSON that is encrypted for the browser, without absent fields.

    If the message has a site it is declarative: the browser shows it also without our worker, which
    it runs first (`mutable`). A message that has no address to open, or that would be too large
    then, stays as it is for others.
    """
    if message.site:
        declared = _declared(message, message.common or message, message.site, token)
        if declared and len(declared) <= MAX_PAYLOAD:
            return declared
    return with_token(_encoded(message), token)


def _fields(notification_id: UUID, content: Content) -> dict[str, Any]:
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
    return without_empty(fields) | _given(content.web, _OF_WORKER)


_encoded = encoded_once(_fields)


def _declared(message: Message, common: Message, site: Site, token: str) -> bytes:
    """The declarative payload; empty if there is no address to open."""
    url = common.content.url
    if not _navigate(url, site):
        return b""
    # A path of the site is resolved, and so cannot be filled into a form.
    is_path = "url" in message.own and not is_of_web(url)
    if token and can_render(message.own) and not is_path:
        prepared = _prepared(common, site, tuple(message.own))
        return prepared.render({**message.own, "token": token})
    return compact_json(_declarative(common, site, message.whole, token))


@lru_cache(maxsize=CACHED_MESSAGES)
def _prepared(common: Message, site: Site, names: tuple[str, ...]) -> PreparedJson:
    return PreparedJson(
        _declarative(common, site, with_parameters(common.content, names), parameter("token"))
    )


def _declarative(common: Message, site: Site, content: Content, token: str) -> dict[str, Any]:
    """The fields of others beside the notification that the browser proposes to our worker.

    The browser may give the worker this notification instead of the payload (the specification
    leaves `PushEvent.data` empty), so its `data` has all that it does not show itself.
    """
    fields = _fields(common.notification_id, content) | without_empty({"token": token})
    shown = {
        "title": content.title or site.name,
        "body": content.body,
        "navigate": _navigate(content.url, site),
        "tag": content.web.get("tag", fields["notification_id"]),
        "data": {name: each for name, each in fields.items() if name not in _SHOWN},
    }
    notification = without_empty(shown) | _given(content.web, _PROPOSED) | {"mutable": True}
    return {**_MARK, "notification": notification, **fields}


def _navigate(url: str, site: Site) -> str:
    """The absolute URL that a click opens; "" if there is none."""
    return absolute(url, site.url) if url else site.url


def _options(web: Mapping[str, Any]) -> dict[str, Any]:
    return {option: web[name] for name, option in _OPTIONS.items() if name in web}


def _given(web: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    return {name: web[name] for name in names if name in web}
