"""Serializers of segments and their rules."""

from collections.abc import Iterable
from typing import Any, Final

from drf_spectacular.extensions import OpenApiSerializerFieldExtension
from drf_spectacular.plumbing import ResolvedComponent
from rest_framework import serializers
from typing_extensions import override

from notifications_app.sends.audience import RuleField
from pushsvc.common.http.fields import StrictSerializer, Text, Timestamp
from pushsvc.common.ids import TAG_PATTERN
from subscriptions_app.models import MAX_SEGMENT_NAME, Segment
from subscriptions_app.segments import rules


def _enum(choices: Iterable[str]) -> dict[str, Any]:
    """An enumeration inside allOf, so that drf-spectacular creates no component for it. It would
    use one component, with the choices of one operator, for all operators of SegmentRule."""
    return {"allOf": [{"type": "string", "enum": list(choices)}]}


_REF: Final = {"$ref": "#/components/schemas/SegmentRule"}
_SCALAR: Final = {
    "title": "AttributeValue",
    "description": "A text or a number.",
    "oneOf": [
        {"type": "string", "maxLength": rules.MAX_TEXT},
        {"type": "number", "format": "double"},
    ],
}
_FLAG: Final = {"type": "boolean"}
_TAG: Final = {"type": "string", "pattern": f"^{TAG_PATTERN}$"}
_ID: Final = {"type": "string", "format": "uuid"}
_PLATFORM: Final = {"allOf": [{"$ref": "#/components/schemas/Platform"}]}
_COUNTRY: Final = {"type": "string", "pattern": "^[A-Za-z]{2}$"}
_DAYS_AGO: Final = {
    "title": "DaysAgo",
    "description": "A time that moves with the clock.",
    "type": "object",
    "properties": {
        "days_ago": {
            "description": "So many days before now.",
            "type": "integer",
            "minimum": 1,
            "maximum": rules.MAX_DAYS,
        }
    },
    "required": ["days_ago"],
    "additionalProperties": False,
}
# anyOf, because OpenAPI Generator's TypeScript for oneOf with a date does not compile.
_MOMENT: Final = {
    "title": "Moment",
    "description": "A fixed time, or one that moves with the clock.",
    "anyOf": [{"type": "string", "format": "date-time"}, _DAYS_AGO],
}


class SegmentInput(StrictSerializer):
    """A segment to make, or what replaces one."""

    name = Text(min_length=1, max_length=MAX_SEGMENT_NAME, help_text="Unique within the channel.")
    rule = RuleField()


class SegmentOutput(serializers.Serializer[Segment]):
    """A segment."""

    segment_id = serializers.UUIDField(source="id", help_text="For `segment_id` of a send.")
    name = serializers.CharField(help_text="Unique within the channel.")
    rule = RuleField()
    created_at = Timestamp(help_text="When the segment was created.")
    updated_at = Timestamp(help_text="When its name or rule was last replaced.")


class SizeOutput(serializers.Serializer[Any]):
    """How many subscribers a segment has."""

    size = serializers.IntegerField(help_text="Active subscriptions that match, on all platforms.")
    estimated = serializers.BooleanField(help_text="Whether `size` is an estimate.")


class RuleSchema(OpenApiSerializerFieldExtension):  # type: ignore[no-untyped-call] # no stubs
    """Describes the rule as a component, because rules contain rules."""

    target_class = RuleField

    @override
    def map_serializer_field(self, auto_schema: Any, direction: Any) -> dict[str, str]:
        """A rule that may be null has its own component, because rules within rules may not be
        null. Only this component has a type: without a type, a schema cannot be nullable."""
        shapes = {"SegmentRule": _rule_schema()}
        if self.target.allow_null:
            shapes["AudienceRule"] = {"type": "object", **_rule_schema()}
        for name, shape in shapes.items():
            component = ResolvedComponent(  # type: ignore[no-untyped-call] # no stubs
                name, ResolvedComponent.SCHEMA, shape, RuleField
            )
            auto_schema.registry.register_on_missing(component)
        return {"$ref": f"#/components/schemas/{list(shapes)[-1]}"}


def _rule_schema() -> dict[str, Any]:
    name = _text(rules.MAX_NAME)
    comparing = ["eq", "ne", *rules.COMPARISONS]
    moments = _enum(["created_at", "last_seen_at", "last_clicked_at"])
    platform, clicked = _enum(["platform"]), _enum(["last_clicked_at"])
    country, version = _enum(["country"]), _enum(["app_version"])
    numbers = {**_text(rules.MAX_VERSION), "pattern": f"^{rules.VERSION}$"}
    language, timezone = _enum(["language"]), _enum(["timezone"])
    spoken, zone = _text(rules.MAX_LANGUAGE), _text(rules.MAX_TIMEZONE)
    return {
        "description": "A rule as docs/segments.md describes it.",
        "oneOf": [
            _object("RuleAll", {"all": _said(_group(), "All of these match.")}),
            _object("RuleAny", {"any": _said(_group(), "At least one of these matches.")}),
            _object("RuleNot", {"not": _REF}),
            _leaf("AttributeIs", {"attribute": name}, comparing, _SCALAR),
            _leaf("AttributeIsOneOf", {"attribute": name}, ["in"], _choices(_SCALAR)),
            _leaf("AttributeExists", {"attribute": name}, ["exists"], _FLAG),
            _leaf(
                "AttributeHasText",
                {"attribute": name},
                ["contains", "starts_with"],
                _text(rules.MAX_TEXT),
            ),
            _leaf("PlatformIs", {"field": platform}, ["eq", "ne"], _PLATFORM),
            _leaf("PlatformIsOneOf", {"field": platform}, ["in"], _choices(_PLATFORM)),
            _leaf("TimeIs", {"field": moments}, rules.COMPARISONS, _MOMENT),
            _leaf("LanguageIs", {"field": language}, ["eq", "ne", "starts_with"], spoken),
            _leaf("LanguageIsOneOf", {"field": language}, ["in"], _choices(spoken)),
            _leaf("TimezoneIs", {"field": timezone}, ["eq"], zone),
            _leaf("TimezoneIsOneOf", {"field": timezone}, ["in"], _choices(zone)),
            _leaf("CountryIs", {"field": country}, ["eq", "ne"], _COUNTRY),
            _leaf("CountryIsOneOf", {"field": country}, ["in"], _choices(_COUNTRY)),
            _leaf("AppVersionIs", {"field": version}, comparing, numbers),
            _leaf("AppVersionExists", {"field": version}, ["exists"], _FLAG),
            _leaf("HasClicked", {"field": clicked}, ["exists"], _FLAG),
            _leaf("PersonExists", {"field": _enum(["external_id"])}, ["exists"], _FLAG),
            _object("HasTag", {"tag": _said(_TAG, "The device has this tag.")}),
            _object(
                "NotificationEnded",
                {
                    "notification": _said(_ID, "It ended so for the device."),
                    "outcome": _said(_enum(rules.OUTCOMES), "How it ended."),
                },
            ),
        ],
    }


def _leaf(
    title: str, subject: dict[str, Any], operators: Iterable[str], value: dict[str, Any]
) -> dict[str, Any]:
    ((of, names),) = subject.items()
    properties = {
        of: _said(names, "What is compared."),
        "operator": _said(_enum(operators), "How it is compared."),
        "value": value if "title" in value else _said(value, "What it is compared with."),
    }
    return _object(title, properties)


def _said(shape: dict[str, Any], description: str) -> dict[str, Any]:
    return {**shape, "description": description}


def _object(title: str, properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "title": title,  # becomes a component with this name
        "description": "See docs/segments.md.",
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _text(most: int) -> dict[str, Any]:
    return {"type": "string", "minLength": 1, "maxLength": most}


def _list(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items, "minItems": 1}


def _group() -> dict[str, Any]:
    return {**_list(_REF), "maxItems": rules.MAX_LEAVES}


def _choices(items: dict[str, Any]) -> dict[str, Any]:
    return {**_list(items), "maxItems": rules.MAX_CHOICES}
