"""Sends as JSON, for schedules and automations: what a request said, and the send that it means.

It needs no serializer, because workers read stored sends and load no HTTP framework.
"""

import json
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Final
from uuid import UUID

from django.utils.translation import gettext

from channels_app import audit
from channels_app.models import Channel
from notifications_app.content.values import CONTENT, DEFAULTS, RESPECT, Content, SendRequest
from notifications_app.models import MAX_REPEATED_NAME
from notifications_app.sends.checks import send_check, with_defaults
from notifications_app.timing import CHANNEL
from pushsvc.common.errors import FieldError, Invalid, within
from pushsvc.common.platforms import Platform

_ALL: Final = "all"
_IDS: Final = ("segment_id", "template_id")


def content_of(content: Content) -> dict[str, Any]:
    """The fields of a content that have not their default."""
    values = {name: getattr(content, name) for name in CONTENT}
    return {name: value for name, value in values.items() if value != DEFAULTS.get(name)}


def body_of(request: SendRequest) -> dict[str, Any]:
    """The body of a request that means this send, which has no targets and no times."""
    audience = {
        "category": request.category,
        "rule": request.rule,
        "name": request.name,
        "labels": list(request.labels),
    }
    if request.quiet_hours != CHANNEL:
        audience["quiet_hours"] = request.quiet_hours
    if request.cap != RESPECT:
        audience["cap"] = request.cap
    if request.test:
        audience["test"] = dict(request.test)
    ids = {name: str(getattr(request, name) or "") for name in _IDS}
    given: dict[str, Any] = {name: value for name, value in (audience | ids).items() if value}
    if request.rate_per_minute is not None:
        given["rate_per_minute"] = request.rate_per_minute
    return {
        **content_of(request.content),
        "target_platforms": [each.value for each in request.target_platforms] or [_ALL],
        **given,
    }


def stored(request: SendRequest) -> str:
    return json.dumps(body_of(request), ensure_ascii=False, separators=(",", ":"))


def loaded(body: dict[str, Any]) -> SendRequest:
    """The send that `body_of` wrote."""
    names = {field.name for field in fields(SendRequest)}
    given = {name: value for name, value in body.items() if name in names}
    platforms = [each for each in body["target_platforms"] if each != _ALL]
    return SendRequest(
        **given
        | {name: UUID(given[name]) for name in _IDS if name in given}
        | {"target_platforms": tuple(map(Platform, platforms))}
        | {"labels": tuple(body.get("labels", ()))},
        content=Content(**{name: body[name] for name in CONTENT if name in body}),
    )


def check_stored(channel: Channel, send: SendRequest) -> None:
    """Raises what `send_check` raises, about `notification`. Holds the segment until the
    transaction ends."""
    with within("notification"):
        send_check(channel=channel, request=with_defaults(channel, send))


def check_name(name: str) -> None:
    """Raises Invalid for a name of a stored send that is blank or too long."""
    if not name.strip() or len(name) > MAX_REPEATED_NAME or "\x00" in name:
        detail = gettext("Must have 1 to %(most)s characters.") % {"most": MAX_REPEATED_NAME}
        raise Invalid([FieldError("name", "malformed", detail)])


def unshown(label: str, was: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """A note with the names of changed fields that the audit log does not show for rows with the
    label; "" if there are none."""
    names = sorted((was.keys() | now.keys()) - {*audit.SHOWN[label]})
    changed = [name for name in names if was.get(name) != now.get(name)]
    return f"Also changed: {', '.join(changed)}." if changed else ""
