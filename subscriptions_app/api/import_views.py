"""The view that imports subscribers from a part of a file, for programs with an API key."""

from collections import Counter
from collections.abc import Mapping, Sequence
from io import BytesIO
from itertools import islice
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
from pushsvc.common.errors import FieldError, Invalid, MissingScope, UnsupportedMediaType
from pushsvc.common.http.openapi import problem_responses
from pushsvc.common.store import sql
from subscriptions_app.importing.formats import Format, Reading, rows_read
from subscriptions_app.importing.running import Judged, Summary, imported
from subscriptions_app.importing.values import MAX_TAKEOVER_DAYS, Options, Outcome

MOST_ROWS: Final = 5_000
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

    created = serializers.IntegerField(help_text="Rows of new subscribers.")
    updated = serializers.IntegerField(help_text="Rows that changed a known subscriber.")
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
        body, (reading, options) = _body(request), _parameters(request)
        dropped: Counter[str] = Counter()
        reads = rows_read(BytesIO(body), reading, dropped, sql.now())
        rows = list(islice(reads, MOST_ROWS + 1))
        if len(rows) > MOST_ROWS:
            raise Invalid([FieldError("", "too_many", f"Send at most {MOST_ROWS} rows at once.")])
        steps = imported(channel=channel, reads=rows, options=options)
        judged = [each for step in steps for each in step]
        return Response(_output(judged, sorted(dropped)))


def _body(request: Request) -> bytes:
    data = request.data
    if not isinstance(data, bytes):
        raise UnsupportedMediaType("Send the file as text/csv or application/x-ndjson.")
    return data


def _parameters(request: Request) -> tuple[Reading, Options]:
    given = request.query_params
    errors: list[FieldError] = []
    format_ = given.get("format", "")
    if format_ not in [each.value for each in Format]:
        names = ", ".join(Format)
        errors.append(FieldError("format", "not_a_choice", f"Must be one of: {names}."))
    is_dry = given.get("dry_run", "false")
    if is_dry not in ("true", "false"):
        errors.append(FieldError("dry_run", "not_a_boolean", "Must be true or false."))
    days = given.get("takeover_days", "0")
    if not (days.isascii() and days.isdecimal() and int(days[:4]) <= MAX_TAKEOVER_DAYS):
        detail = f"Must be 0 to {MAX_TAKEOVER_DAYS}."
        errors.append(FieldError("takeover_days", "out_of_range", detail))
    columns = dict(_column(each, errors) for each in _listed(given.get("columns", "")))
    if errors:
        raise Invalid(errors)
    attributes = given.get("attributes")
    reading = Reading(
        Format(format_),
        columns,
        None if attributes is None else _listed(attributes),
        given.get("tags_from", ""),
        given.get("vapid_public_key") or None,
    )
    return reading, Options(takeover_days=int(days), dry_run=is_dry == "true")


def _column(text: str, errors: list[FieldError]) -> tuple[str, str]:
    theirs, separator, ours = text.rpartition("=")
    if not separator or not theirs:
        detail = "Write the name of the file, = and the name here."
        errors.append(FieldError("columns", "malformed", detail))
    return theirs, ours.strip()


def _listed(text: str) -> list[str]:
    return [each.strip() for each in text.split(",") if each.strip()]


def _output(judged: Sequence[Judged], dropped: Sequence[str]) -> dict[str, Any]:
    summary = Summary()
    summary.add(judged)
    refusals = [each.as_refusal() for each in judged if each.result.outcome == Outcome.REFUSED]
    return {**summary.outcomes, "refusals": refusals, "attributes_dropped": dropped}
