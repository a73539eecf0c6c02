"""Parts of the OpenAPI document that all views share: errors, limits and links."""

from typing import Any, Final, cast

from drf_spectacular.extensions import OpenApiSerializerExtension
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import (
    OpenApiExample,
    OpenApiParameter,
    OpenApiResponse,
    extend_schema_serializer,
    inline_serializer,
)
from rest_framework import serializers
from typing_extensions import override

from pushsvc.common import errors
from pushsvc.common.http.drf import PROBLEM_TYPE, ApiView
from pushsvc.common.http.fields import StrictSerializer

_SAMPLES: dict[int, errors.PushsvcError] = {
    400: errors.Invalid([errors.FieldError("body", "required", "This field is required.")]),
    401: errors.MissingKey(),
    403: errors.MissingScope(),
    404: errors.NotFound(),
    409: errors.Conflict(),
    413: errors.BodyTooLarge(),
    415: errors.UnsupportedMediaType(),
    429: errors.TooManyRequests(1),
    503: errors.DatabaseUnavailable(),
}
_FOLLOW_UPS: Final = "x-follow-ups"


@extend_schema_serializer(component_name="FieldError")
class FieldErrorSchema(serializers.Serializer[errors.FieldError]):
    """One error of the input."""

    attr = serializers.CharField(help_text="A path such as `keys.p256dh`. Empty: the whole input.")
    code = serializers.CharField(help_text="Stable, listed in docs/errors.md.")
    detail = serializers.CharField(help_text="For people.")


class StrictSchema(OpenApiSerializerExtension):  # type: ignore[no-untyped-call] # no stubs
    """Adds `additionalProperties: false` to inputs that refuse unknown fields, and `nullable` to
    optional fields."""

    target_class = StrictSerializer
    match_subclasses = True

    @override
    def map_serializer(self, auto_schema: Any, direction: Any) -> dict[str, Any]:
        schema: dict[str, Any] = auto_schema._map_serializer(  # noqa: SLF001
            self.target, direction, bypass_extensions=True
        )
        properties = schema["properties"]
        for name, field in self.target.fields.items():
            shape = _without_blank(properties[name])
            is_nullable = not field.required and name not in self.target.never_null
            properties[name] = _nullable(shape) if is_nullable else shape
        return schema | ({"additionalProperties": False} if self.target.refuse_unknown else {})


def _without_blank(shape: dict[str, Any]) -> dict[str, Any]:
    """Leaves out that "" is also allowed, of which generators make a type of its own."""
    match shape:
        case {"oneOf": [dict(filled), {"type": "string", "maxLength": 0}], **others}:
            return {**filled, **others}
    return shape


def _nullable(shape: dict[str, Any]) -> dict[str, Any]:
    """The shape, or null. Another shape of the same name may not be null."""
    if "oneOf" in shape:
        first, *others = shape["oneOf"]
        known = {name: each for name, each in shape.items() if name != "nullable"}
        return {**known, "oneOf": [{**first, "nullable": True}, *others]}
    if "$ref" not in shape and "title" not in shape:
        return {**shape, "nullable": True}
    told = {name: shape[name] for name in ("description",) if name in shape}
    return {"allOf": [shape], "nullable": True, **told}


_PROBLEM = inline_serializer(
    "Problem",
    {
        "type": serializers.CharField(help_text="A link to the explanation of the code."),
        "title": serializers.CharField(help_text="The same for the same code."),
        "status": serializers.IntegerField(help_text="The HTTP status."),
        "code": serializers.CharField(help_text="Stable, listed in docs/errors.md."),
        "detail": serializers.CharField(help_text="For people, about this occurrence."),
        "errors": FieldErrorSchema(
            many=True, required=False, help_text="With `validation_error`: one for each error."
        ),
        "request_id": serializers.CharField(
            required=False, help_text="Names the request in the service's log."
        ),
    },
)
type(_PROBLEM).__doc__ = "An error (RFC 9457). Decide by its `code`."


class Schema(AutoSchema):
    """Adds the headers about limits to views that have a limit."""

    @override
    def get_override_parameters(self) -> list[Any]:
        found = super().get_override_parameters()
        view = cast(ApiView, self.view)
        if type(view).limit is ApiView.limit:
            return found
        told = [200, 201, 202, 204, 429] if view.is_limit_told else [429]
        return [
            *found,
            _header("RateLimit-Policy", told, _POLICY),
            _header("RateLimit", told, _LEFT),
            _header("Retry-After", [429, 503], "Seconds to wait.", OpenApiTypes.INT),
            _header("Retry-After", [409], _WHERE_IT_HELPS, OpenApiTypes.INT),
        ]


_POLICY: Final = 'The limit: `"sends";q=100;w=1` is 100 sends in one second.'
_LEFT: Final = 'What is left of the limit: `"sends";r=99;t=1` is 99 sends for one second.'
_WHERE_IT_HELPS: Final = "Seconds to wait, where waiting helps."


def _header(
    name: str, statuses: list[int], meaning: str, kind: OpenApiTypes = OpenApiTypes.STR
) -> OpenApiParameter:
    return OpenApiParameter(
        name, kind, OpenApiParameter.HEADER, response=statuses, description=meaning
    )


def problem_responses(*problems: int | errors.PushsvcError) -> dict[tuple[int, str], Any]:
    """Responses for `extend_schema(responses=…)`. Each problem is a status, or an instance as an
    example."""
    shown = [_SAMPLES[item] if isinstance(item, int) else item for item in problems]
    by_status: dict[int, list[errors.PushsvcError]] = {}
    for error in shown:
        by_status.setdefault(error.status, []).append(error)
    return {(status, PROBLEM_TYPE): _response(found) for status, found in by_status.items()}


def _response(shown: list[errors.PushsvcError]) -> OpenApiResponse:
    return OpenApiResponse(
        _PROBLEM,
        description=shown[0].title,
        examples=[
            OpenApiExample(
                error.code,
                value=error.problem(),
                status_codes=[str(error.status)],
                response_only=True,
                media_type=PROBLEM_TYPE,
            )
            for error in shown
        ],
    )


def follow_ups(status: int, *operation_ids: str, **parameters: str) -> dict[str, Any]:
    """Extensions for `extend_schema(extensions=…)`: operations that can follow a response with this
    status. `parameters`: runtime expressions of OpenAPI; `body` is the body of the next request."""
    body = parameters.pop("body", None)
    link: dict[str, Any] = {"parameters": parameters} | ({"requestBody": body} if body else {})
    links = {name: {"operationId": name, **link} for name in operation_ids}
    return {_FOLLOW_UPS: {str(status): links}}


def add_links(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """A hook of drf-spectacular, which does not support links: adds follow-ups to responses."""
    for operations in result["paths"].values():
        for operation in operations.values():
            for status, links in operation.pop(_FOLLOW_UPS, {}).items():
                operation["responses"][status]["links"] = links
    return result
