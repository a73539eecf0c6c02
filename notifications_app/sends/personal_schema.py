"""The fields of a send with values for placeholders, and the check of texts with placeholders."""

import re
from collections.abc import Sequence
from typing import Any, Final

from django.utils.translation import gettext
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.exceptions import ErrorDetail
from typing_extensions import override

from notifications_app.content.fields import MAX_VARS
from notifications_app.content.personal import MAX_IN_SEND, Place, places, template_of, values_of
from notifications_app.content.placeholders import VARS, NotATemplate, Template, Values
from notifications_app.content.values import Content
from pushsvc.common.blank_text import is_blank
from pushsvc.common.http.fields import (
    MAX_URL_LENGTH,
    HttpUrl,
    MapOf,
    text_or_refuse,
)
from pushsvc.common.links import LinkKind, is_link
from subscriptions_app.devices.fields import ATTRIBUTE_VALUE, AttributeValue

MAX_VAR_NAME: Final = 50
_VAR_NAME: Final = re.compile(rf"[A-Za-z_][A-Za-z0-9_]{{0,{MAX_VAR_NAME - 1}}}", re.ASCII)


@extend_schema_field({"type": "string", "maxLength": MAX_URL_LENGTH})
class Link(HttpUrl):
    """A URL that may contain placeholders. `check_placeholders` checks URLs with placeholders."""

    @override
    def to_internal_value(self, data: object) -> str:
        url = text_or_refuse(data)
        return url if "{{" in url else super().to_internal_value(data)


class SiteLink(Link):
    """Also a path of the site, which the worker resolves."""

    kind = LinkKind.SITE


class AppLink(Link):
    """Also a URL with an app's own scheme."""

    kind = LinkKind.APP


@extend_schema_field(
    {
        "type": "object",
        "maxProperties": MAX_VARS,
        "additionalProperties": ATTRIBUTE_VALUE,
    }
)
class Vars(MapOf):
    """Values for the placeholders of a send."""

    child = AttributeValue()
    most = MAX_VARS

    @override
    def to_internal_value(self, data: object) -> dict[str, Any]:
        given = super().to_internal_value(data)
        words = gettext(
            "Must be 1 to %(most)s letters, digits and `_`, and begin with no digit."
        ) % {"most": MAX_VAR_NAME}
        error = ErrorDetail(words, code="malformed")
        if errors := {name: [error] for name in given if not _VAR_NAME.fullmatch(name)}:
            raise serializers.ValidationError(errors)
        return given


def check_placeholders(content: Content) -> None:
    """Checks texts with two opening braces, which are placeholders if the content is personal.
    Raises ValidationError."""
    found = list(places(content))
    errors = {place.attr: [error] for place in found if (error := _error(place, content))}
    if not errors and content.personalize and _count(found) > MAX_IN_SEND:
        words = gettext("A send may have at most %(most)s placeholders in all texts.") % {
            "most": MAX_IN_SEND
        }
        errors = {"personalize": [ErrorDetail(words, code="too_many")]}
    if errors:
        raise serializers.ValidationError(errors)


def check_shown(content: Content) -> None:
    """Raises ValidationError for a text of a personal send that shows nothing to anybody, because
    only values of the send fill it."""
    values = values_of(platform="", notification_id="", sent_vars=content.vars)
    words = gettext("With these values it has no character that people can see.")
    errors = {
        place.attr: [ErrorDetail(words, code="blank")]
        for place in places(content)
        if place.is_shown and _is_blank(template_of(place), values)
    }
    if errors:
        raise serializers.ValidationError(errors)


def _is_blank(template: Template, values: Values) -> bool:
    is_same_for_all = all(
        each.scope == VARS and (each.default is not None or not each.is_missing(values))
        for each in template.placeholders
    )
    return is_same_for_all and is_blank(template.text(values))


def _error(place: Place, content: Content) -> ErrorDetail | None:
    texts = [place.text]
    if content.personalize:
        try:
            texts = _examples(template_of(place), content)
        except NotATemplate as error:
            return ErrorDetail(str(error), code="not_a_template")
    kind = place.kind
    if kind is None or all(is_link(text, kind) for text in texts):
        return None
    return ErrorDetail(gettext(kind.value), code="not_a_url")


def _examples(template: Template, content: Content) -> list[str]:
    """The link with any values, without values, and with those that are known."""
    known = values_of(platform="", notification_id="", sent_vars=content.vars)
    return [*map(template.with_each, ("x", "")), template.link(known)]


def _count(found: Sequence[Place]) -> int:
    return sum(len(template_of(place).placeholders) for place in found)
