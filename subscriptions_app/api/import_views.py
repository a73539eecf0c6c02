"""The view that imports subscribers from a part of a file, for programs with an API key."""

from collections.abc import Mapping
from typing import IO, Any, Final
from uuid import UUID

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.parsers import BaseParser
from rest_framework.request import Request
from rest_framework.response import Response
from typing_extensions import override

from channels_app.http import KeyedView, own_channel_now, require_scope
from channels_app.models import Scope
from channels_app.selectors import ChannelNotFound
from pushsvc.common.errors import MissingScope, UnsupportedMediaType
from pushsvc.common.http.openapi import problem_responses
from pushsvc.common.platforms import Platform
from subscriptions_app.importing.formats import Format
from subscriptions_app.importing.parts import Part, parameters
from subscriptions_app.importing.values import MAX_TAKEOVER_DAYS

_KINDS: Final = ("text/csv", "application/x-ndjson")
_NDJSON: Final = (
    '{"platform": "android", "provider_token": "dQw4w9WgXcQ:APA91bH", "external_id": "user-42"}\n'
)
_FOUND: Final = {
    "created": 1,
    "updated": 0,
    "unchanged": 0,
    "refused": 1,
    "refusals": [
        {"line": 3, "code": "not_a_token", "attr": "provider_token", "detail": "Must be …"}
    ],
    "attributes_dropped": ["city"],
}


class _FileParser(BaseParser):
    @override
    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        return stream.read()


class CsvParser(_FileParser):
    media_type = _KINDS[0]


class NdjsonParser(_FileParser):
    media_type = _KINDS[1]


class RefusalOutput(serializers.Serializer[Any]):
    """A row that is not imported."""

    line = serializers.IntegerField(help_text="Where the row begins in the body, from 1.")
    code = serializers.CharField(help_text="Stable, listed in docs/errors.md.")
    attr = serializers.CharField(help_text="The field. Empty: the whole row.")
    detail = serializers.CharField(help_text="For people.")


class ImportOutput(serializers.Serializer[Any]):
    """What became of the rows."""

    created = serializers.IntegerField(help_text="Rows of new subscribers or people.")
    updated = serializers.IntegerField(help_text="Rows that changed a known one.")
    unchanged = serializers.IntegerField(help_text="Rows that changed nothing.")
    refused = serializers.IntegerField(help_text="Rows that are not imported.")
    refusals = RefusalOutput(many=True, help_text="The refused rows, in their order.")
    attributes_dropped = serializers.ListField(
        child=serializers.CharField(), help_text="Names of attributes that were not taken."
    )


def _parameter(name: str, shape: Any, description: str) -> OpenApiParameter:
    return OpenApiParameter(
        name, shape, description=description, required=name == "format", explode=False
    )


class ImportView(KeyedView):
    permission_classes = (require_scope(Scope.SUBSCRIBERS),)
    parser_classes = (CsvParser, NdjsonParser)

    @extend_schema(
        operation_id="import_subscriptions",
        summary="Import subscribers",
        description="The body is a part of a file, at most 1 MiB and 5,000 rows; each part of a CSV"
        " file begins with its header. Subscribers are known by their addresses, so importing rows"
        " again changes nothing. What a device said to this service after a row's `last_seen_at`"
        " stays. A refused row does not stop the others. If the body cannot be read to its end,"
        " nothing is stored. See docs/migrating.md.",
        tags=["subscriptions"],
        parameters=[
            _parameter(
                "format",
                {"type": "string", "enum": [each.value for each in Format]},
                "The format of the body.",
            ),
            _parameter("dry_run", OpenApiTypes.BOOL, "true: nothing is stored."),
            _parameter("attributes", OpenApiTypes.STR, "Attributes to take, with commas between."),
            _parameter("tags_from", OpenApiTypes.STR, "The attribute whose words become tags."),
            _parameter(
                "columns",
                OpenApiTypes.STR,
                "Names of columns of a CSV file, as `theirs=ours` with commas between. Nothing"
                " after `=` ignores the column.",
            ),
            _parameter("vapid_public_key", OpenApiTypes.STR, "Of browsers whose row names no key."),
            _parameter(
                "platform",
                {"type": "string", "enum": [each.value for each in Platform]},
                "Of rows of `tokens_csv` that name none.",
            ),
            _parameter(
                "takeover_days",
                {"type": "integer", "minimum": 0, "maximum": MAX_TAKEOVER_DAYS, "default": 0},
                "For so many days, the first phone that registers an imported token with its own"
                " `auth` keeps what the row says.",
            ),
        ],
        request=dict.fromkeys(_KINDS, OpenApiTypes.STR),
        examples=[
            OpenApiExample("A row", _NDJSON, request_only=True, media_type=_KINDS[1]),
        ],
        responses={
            200: OpenApiResponse(
                ImportOutput,
                "Imported, except for the refused rows.",
                [OpenApiExample("Imported", _FOUND, response_only=True)],
            ),
            **problem_responses(
                400,
                401,
                MissingScope(Scope.SUBSCRIBERS),
                ChannelNotFound(),
                413,
                415,
                429,
                503,
            ),
        },
    )
    def post(self, request: Request, channel_id: UUID) -> Response:
        channel = own_channel_now(request, channel_id)
        body, (reading, options) = _body(request), parameters(request.query_params)
        part = Part.read(body, reading)
        return Response(part.summed_up(part.imported(channel, options)))


def _body(request: Request) -> bytes:
    data = request.data
    if not isinstance(data, bytes):
        raise UnsupportedMediaType("Send the file as text/csv or application/x-ndjson.")
    return data
