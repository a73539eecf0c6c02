"""Exports over HTTP: pages by key with a Link header, streamed as NDJSON or CSV."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final
from urllib.parse import urlencode
from uuid import UUID

from django.http import HttpResponse, StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse
from rest_framework.request import Request
from rest_framework.serializers import Serializer

from pushsvc.common.errors import FieldError, Invalid
from pushsvc.common.http.csv_files import csv_text
from pushsvc.common.http.drf import django_request
from pushsvc.common.http.origin import own_origin
from pushsvc.common.http.paging import whole_number
from pushsvc.common.ids import parse_uuid
from pushsvc.common.store.lines import Page

MOST_ROWS: Final = 5_000  # of a page
_CSV: Final = "csv"
FORMATS: Final = ("ndjson", _CSV)
_NDJSON: Final = "application/x-ndjson"
NO_ID: Final = UUID(int=0)


def export_parameters(**choices: Sequence[str]) -> list[OpenApiParameter]:
    """`choices`: of the parameters besides those of every export."""
    return [
        OpenApiParameter(
            "after",
            OpenApiTypes.UUID,
            description="Only rows whose `subscription_id` follows this one. The `Link` header of a"
            " page has it for the next page.",
        ),
        OpenApiParameter(
            "limit",
            {"type": "integer", "minimum": 1, "default": MOST_ROWS},
            description=f"How many rows a page has at most. More than {MOST_ROWS:,} count as"
            f" {MOST_ROWS:,}.",
        ),
        *(
            OpenApiParameter(name, enum=list(values), description=f"Which {name}; default: all.")
            for name, values in choices.items()
        ),
        OpenApiParameter(
            "format",
            enum=list(FORMATS),
            default=FORMATS[0],
            description="`ndjson`: one JSON object a line, exact. `csv`: for spreadsheets; a text"
            " that one would read as a formula gets an apostrophe.",
        ),
        OpenApiParameter(
            "Link",
            OpenApiTypes.STR,
            OpenApiParameter.HEADER,
            response=[200],
            description='Address of the next page (`rel="next"`). The last page has none.',
        ),
    ]


def export_responses(row: type[Serializer[Any]]) -> dict[Any, Any]:
    """OpenAPI 3.0 has no word for NDJSON: the schema is that of a line."""
    page = "A page, in order of ids: one object a line."
    return {
        (200, _NDJSON): OpenApiResponse(row, page),
        (200, "text/csv"): OpenApiResponse(OpenApiTypes.STR, page),
    }


@dataclass(frozen=True, slots=True)
class ExportPage:
    after: UUID
    limit: int
    is_csv: bool
    chosen: Mapping[str, str | None]


def export_page(request: Request, **choices: Sequence[str]) -> ExportPage:
    """The requested page. Raises Invalid with all errors."""
    errors: list[FieldError] = []
    limit = whole_number(request, "limit", MOST_ROWS, 1, errors)
    after, text = NO_ID, request.query_params.get("after")
    if text is not None:
        try:
            after = parse_uuid(text)
        except ValueError:
            detail = "Must be the `subscription_id` of a row, as the Link header has it."
            errors.append(FieldError("after", "not_a_uuid", detail))
    chosen: dict[str, str | None] = {}
    for name, values in {**choices, "format": FORMATS}.items():
        chosen[name] = request.query_params.get(name)
        if chosen[name] is not None and chosen[name] not in values:
            detail = f"Must be one of: {', '.join(values)}."
            errors.append(FieldError(name, "not_a_choice", detail))
    if errors:
        raise Invalid(errors)
    is_csv = chosen.pop("format") == _CSV
    return ExportPage(after, min(limit, MOST_ROWS), is_csv, chosen)


def export_response(
    request: Request, asked: ExportPage, page: Page, texts: Iterable[str], names: Iterable[str]
) -> HttpResponse:
    """Streams the lines of the page. `names`: of the columns of CSV."""
    header = [csv_text([names])] if asked.is_csv else []
    lines = () if request.method == "HEAD" else chain(header, texts)
    response: Any = StreamingHttpResponse(
        lines,
        content_type="text/csv; charset=utf-8" if asked.is_csv else _NDJSON,
    )
    if page.next_after is not None:
        given = {**request.query_params.dict(), "limit": asked.limit, "after": page.next_after}
        address = f"{own_origin(django_request(request))}{request.path}?{urlencode(given)}"
        response.headers["Link"] = f'<{address}>; rel="next"'
    return response  # type: ignore[no-any-return]
