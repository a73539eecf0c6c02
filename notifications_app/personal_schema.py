"""The fields of a send with values for placeholders, and the check of texts with placeholders."""

import re
from collections.abc import Sequence
from typing import Any, Final

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.exceptions import ErrorDetail
from typing_extensions import override

from notifications_app.content import Content
from notifications_app.personal import MAX_IN_SEND, Place, places, template_of
from notifications_app.placeholders import NotATemplate
from pushsvc.common.http.fields import (
    MAX_URL_LENGTH,
    NOT_A_URL,
    HttpUrl,
    MapOf,
    is_http_url,
    text_or_refuse,
)
from subscriptions_app.device_fields import ATTRIBUTE_VALUE, AttributeValue

MAX_VARS: Final = 20
MAX_VAR_NAME: Final = 50
_VAR_NAME: Final = re.compile(rf"[A-Za-z_][A-Za-z0-9_]{{0,{MAX_VAR_NAME - 1}}}", re.ASCII)


@extend_schema_field({"type": "string", "format": "uri", "maxLength": MAX_URL_LENGTH})
class Link(HttpUrl):
    """A URL that may contain placeholders. `check_placeholders` checks URLs with placeholders."""

    @override
    def to_internal_value(self, data: object) -> str:
        url = text_or_refuse(data)
        return url if "{{" in url else super().to_internal_value(data)


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
        words = f"Must be 1 to {MAX_VAR_NAME} letters, digits and `_`, and begin with no digit."
        fault = ErrorDetail(words, code="malformed")
        if faults := {name: [fault] for name in given if not _VAR_NAME.fullmatch(name)}:
            raise serializers.ValidationError(faults)
        return given


def check_placeholders(content: Content) -> None:
    """Checks texts with two opening braces, which are placeholders if the content is personal.
    Raises ValidationError."""
    found = list(places(content))
    faults = {
        place.attr: [fault]
        for place in found
        if (fault := _fault(place, is_personal=content.personalize))
    }
    if not faults and content.personalize and _count(found) > MAX_IN_SEND:
        words = f"A send may have at most {MAX_IN_SEND} placeholders in all texts."
        faults = {"personalize": [ErrorDetail(words, code="too_many")]}
    if faults:
        raise serializers.ValidationError(faults)


def _fault(place: Place, *, is_personal: bool) -> ErrorDetail | None:
    text = place.text
    if is_personal:
        try:
            parts = template_of(place).parts
        except NotATemplate as error:
            return ErrorDetail(str(error), code="not_a_template")
        text = "".join(part if isinstance(part, str) else "x" for part in parts)
    is_fine = not place.is_link or is_http_url(text)
    return None if is_fine else ErrorDetail(NOT_A_URL, code="not_a_url")


def _count(found: Sequence[Place]) -> int:
    return sum(len(template_of(place).placeholders) for place in found)
