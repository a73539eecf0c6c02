"""Pages of a list: `limit` and `offset`, and the Link header (RFC 8288)."""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar
from urllib.parse import urlencode

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request

from pushsvc.common.errors import FieldError, Invalid
from pushsvc.common.http.drf import django_request
from pushsvc.common.http.origin import own_origin

DEFAULT_LIMIT: Final = 50
MAX_LIMIT: Final = 100
_DIGITS: Final = re.compile(r"[0-9]+", re.ASCII)
_MOST: Final = 10**18  # PostgreSQL counts in 63 bits; a larger offset is past the end of any list


PAGE_DESCRIPTION: Final = (
    f"A `limit` over {MAX_LIMIT} counts as {MAX_LIMIT}. The `Link` header holds the addresses of"
    " the next and the previous page."
)
PAGE_PARAMETERS: Final = [
    OpenApiParameter(
        "limit",
        {"type": "integer", "minimum": 1, "default": DEFAULT_LIMIT},
        description="How many entries a page has at most.",
    ),
    OpenApiParameter(
        "offset",
        {"type": "integer", "minimum": 0, "default": 0},
        description="How many entries come before the page.",
    ),
    OpenApiParameter(
        "Link",
        OpenApiTypes.STR,
        OpenApiParameter.HEADER,
        response=[200],
        description='Addresses of the next (`rel="next"`) and the previous page (`rel="prev"`).',
    ),
]
Row = TypeVar("Row")


@dataclass(frozen=True, slots=True)
class Page:
    limit: int
    offset: int


def read_page(
    request: Request, read: Callable[..., list[Row]], **of: Any
) -> tuple[list[Row], dict[str, str]]:
    """Returns the rows of the requested page, and the Link header.

    `read` takes `limit`, `offset` and the arguments `of`. Raises Invalid, as `page_from`.
    """
    page = page_from(request)
    rows = read(limit=page.limit + 1, offset=page.offset, **of)
    return rows[: page.limit], link_header(request, page, is_last=len(rows) <= page.limit)


def page_from(request: Request) -> Page:
    """The requested page. A limit over MAX_LIMIT counts as MAX_LIMIT. Raises Invalid if limit or
    offset is not a whole number, if the limit is below 1, or if the offset is negative."""
    errors: list[FieldError] = []
    limit = whole_number(request, "limit", DEFAULT_LIMIT, 1, errors)
    offset = whole_number(request, "offset", 0, 0, errors)
    if errors:
        raise Invalid(errors)
    return Page(limit=min(limit, MAX_LIMIT), offset=offset)


def link_header(request: Request, page: Page, *, is_last: bool) -> dict[str, str]:
    around: dict[str, Page] = {}
    if not is_last:
        around["next"] = replace(page, offset=page.offset + page.limit)
    if page.offset > 0:
        around["prev"] = replace(page, offset=max(0, page.offset - page.limit))
    links = [f'<{_address(request, other)}>; rel="{rel}"' for rel, other in around.items()]
    return {"Link": ", ".join(links)} if links else {}


def whole_number(
    request: Request, name: str, default: int, least: int, errors: list[FieldError]
) -> int:
    """The number of the query, or the default. Adds what is wrong with it to `errors`."""
    text = request.query_params.get(name)
    if text is None:
        return default
    if not _DIGITS.fullmatch(text):
        code = "out_of_range" if re.fullmatch(r"-[0-9]+", text, re.ASCII) else "not_a_number"
        errors.append(FieldError(name, code, f"Must be a whole number from {least}."))
        return default
    # int() refuses very long digit strings.
    number = int(text) if len(text) <= 18 else _MOST
    if number < least:
        errors.append(FieldError(name, "out_of_range", f"Must be at least {least}."))
    return number


def _address(request: Request, page: Page) -> str:
    """The address of a page, with the request's other parameters, which may filter the list."""
    given = {**request.query_params.dict(), "limit": page.limit, "offset": page.offset}
    query = urlencode(given)
    return f"{own_origin(django_request(request))}{request.path}?{query}"
