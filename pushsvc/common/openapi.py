"""Parts of the OpenAPI document that all views share: errors, and an example of each."""

from typing import Any

from drf_spectacular.utils import OpenApiExample, OpenApiResponse, inline_serializer
from rest_framework import serializers

from pushsvc.common import errors
from pushsvc.common.drf import PROBLEM_TYPE

_SAMPLES: dict[int, errors.PushsvcError] = {
    400: errors.Invalid([errors.Fault("body", "required", "This field is required.")]),
    401: errors.MissingKey(),
    403: errors.MissingScope(),
    404: errors.NotFound(),
    409: errors.Conflict(),
    413: errors.BodyTooLarge(),
    415: errors.UnsupportedMediaType(),
    429: errors.TooManyRequests(1),
    503: errors.DatabaseUnavailable(),
}


class FaultSchema(serializers.Serializer[errors.Fault]):
    attr = serializers.CharField(
        help_text="Where: a path such as `keys.p256dh`. Empty: the input as a whole."
    )
    code = serializers.CharField(help_text="What: stable, listed in docs/errors.md.")
    detail = serializers.CharField(help_text="For people.")


_PROBLEM = inline_serializer(
    "Problem",
    {
        "type": serializers.CharField(help_text="Where the code is explained."),
        "title": serializers.CharField(help_text="The same for the same code."),
        "status": serializers.IntegerField(help_text="The HTTP status again."),
        "code": serializers.CharField(help_text="Stable, listed in docs/errors.md."),
        "detail": serializers.CharField(help_text="For people; of this occurrence."),
        "errors": FaultSchema(
            many=True, required=False, help_text="With `validation_error`: one for each fault."
        ),
    },
)


def problem_responses(*problems: int | errors.PushsvcError) -> dict[tuple[int, str], Any]:
    """For `extend_schema(responses=…)`: errors by status, or as instances that are shown."""
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
