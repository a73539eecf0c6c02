"""Fields of requests that describe a device: its attributes and tags."""

from collections.abc import Mapping
from typing import Any, Final, cast

from django.utils.translation import gettext
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from typing_extensions import override

from pushsvc.common.http.fields import Text, refuse, text_or_refuse, without_nulls
from pushsvc.common.http.strict_json import is_storable
from pushsvc.common.texts import later
from pushsvc.common.timestamps import NOT_A_TIMEZONE, canonical_timezone
from subscriptions_app.models import MAX_ATTRIBUTES

MAX_ATTRIBUTE_NAME: Final = 50


MAX_ATTRIBUTE_TEXT: Final = 255


ATTRIBUTE_VALUE: Final = {
    "title": "AttributeValue",
    "description": "A text or a number.",
    "oneOf": [
        {"type": "string", "maxLength": MAX_ATTRIBUTE_TEXT},
        {"type": "number", "format": "double"},
    ],
}


class AttributeValue(serializers.Field[Any, Any, Any, Any]):
    """A string or a number. true and false are refused."""

    _text = Text(max_length=MAX_ATTRIBUTE_TEXT)

    @override
    def to_internal_value(self, data: object) -> object:
        if isinstance(data, str):
            return self._text.run_validation(data)
        if type(data) not in (int, float):
            refuse("not_a_string_or_number", gettext("Must be a string or a number."))
        return data

    @override
    def to_representation(self, value: object) -> object:
        return value


@extend_schema_field(
    {
        "title": "Attributes",
        "type": "object",
        "maxProperties": MAX_ATTRIBUTES,
        "description": "What the channel's owner stores about the subscriber. Names have at most"
        f" {MAX_ATTRIBUTE_NAME} characters.",
        "additionalProperties": ATTRIBUTE_VALUE,
    }
)
class Attributes(serializers.DictField):
    child = AttributeValue()

    @override
    def to_internal_value(self, data: object) -> dict[str, Any]:
        if not isinstance(data, dict):
            refuse("not_an_object", gettext("Must be an object."))
        given = without_nulls(data, self.child)
        if len(given) > MAX_ATTRIBUTES:
            refuse(
                "too_many", gettext("Must have at most %(most)s keys.") % {"most": MAX_ATTRIBUTES}
            )
        return super().to_internal_value(given)

    @override
    def run_child_validation(self, data: Mapping[str, Any]) -> Any:
        errors: dict[str, Any] = {
            name: [_LONG_NAME] for name in data if len(name) > MAX_ATTRIBUTE_NAME
        }
        errors |= {name: [_UNSTORABLE_NAME] for name in data if not is_storable(name)}
        try:
            values = super().run_child_validation(data)
        except serializers.ValidationError as error:
            errors = {**cast("dict[str, Any]", error.detail), **errors}
        if errors:
            raise serializers.ValidationError(errors)
        return values


_LONG_NAME: Final = serializers.ErrorDetail(
    later("The name must be at most %(most)s characters long.", most=MAX_ATTRIBUTE_NAME),
    code="too_long",
)
_UNSTORABLE_NAME: Final = serializers.ErrorDetail(
    later("Must not contain NUL or half of a surrogate pair."), code="malformed"
)


class TimeZone(Text):
    """A name of tzdata, in any case. It is stored in tzdata's spelling."""

    @override
    def to_internal_value(self, data: object) -> str:
        name = canonical_timezone(text_or_refuse(data))
        if name is None:
            refuse("not_a_timezone", gettext(NOT_A_TIMEZONE))
        return name


@extend_schema_field(
    {
        "title": "AttributeChanges",
        "type": "object",
        "maxProperties": MAX_ATTRIBUTES,
        "description": "Attributes to set; null removes one.",
        "additionalProperties": {
            "title": "AttributeChange",
            "description": "A text, a number, or null.",
            "anyOf": [
                {"type": "string", "maxLength": MAX_ATTRIBUTE_TEXT, "nullable": True},
                {"type": "number", "format": "double"},
            ],
        },
    }
)
class AttributeChanges(Attributes):
    """Attributes to set; null removes one."""

    child = AttributeValue(allow_null=True)
