"""Fields of requests with choices about categories."""

from typing import Any

from django.utils.translation import gettext
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from typing_extensions import override

from pushsvc.common.http.fields import Flag, refuse
from subscriptions_app.categories.services import MAX_CATEGORIES


@extend_schema_field(
    {
        "title": "Choices",
        "type": "object",
        "maxProperties": MAX_CATEGORIES,
        "description": "By the category's key: whether its notifications are wanted. null"
        " removes a choice. Other categories stay as they are.",
        "additionalProperties": {"type": "boolean", "nullable": True},
    }
)
class Choices(serializers.DictField):
    """`most`: how many categories it may name."""

    child = Flag(allow_null=True)

    def __init__(self, *, most: int = MAX_CATEGORIES, **kw: Any) -> None:
        super().__init__(**kw)
        self._most = most

    @override
    def to_internal_value(self, data: object) -> dict[str, Any]:
        if not isinstance(data, dict):
            refuse("not_an_object", gettext("Must be an object."))
        if len(data) > self._most:
            refuse("too_many", gettext("Must have at most %(most)s keys.") % {"most": self._most})
        return super().to_internal_value(data)
