"""Pages for people: the home page, the API reference, the list of errors. No data of the apps."""

import re
from functools import cache
from typing import Any

from django.conf import settings
from django.http import HttpResponse
from django.shortcuts import render
from django.utils.html import format_html, format_html_join
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from pushsvc.common.http.drf import ApiView, django_request
from pushsvc.site.guides import guides

_ERROR_ROW = re.compile(
    r"^\| `(?P<code>\w+)` \| (?P<status>\d*) ?\| (?P<meaning>.+) \| (?P<todo>.+) \|$"
)


@extend_schema(exclude=True)
class HomeView(ApiView):
    def get(self, request: Request) -> HttpResponse:
        context = {"groups": guides(), "has_demo": bool(settings.DEMO_RECORD)}
        return render(django_request(request), "home.html", context)


@extend_schema(exclude=True)
class ReferenceView(ApiView):
    def get(self, request: Request) -> HttpResponse:
        return render(django_request(request), "reference.html")


@extend_schema(exclude=True)
class ErrorsView(ApiView):
    """docs/errors.md with an anchor for each code. The `type` of every error links here."""

    def get(self, request: Request) -> HttpResponse:
        return render(django_request(request), "errors.html", {"errors": _errors()})


@extend_schema(exclude=True)
class OpenApiView(ApiView):
    def get(self, request: Request) -> Response:
        return Response(_openapi())


@cache
def _openapi() -> dict[str, Any]:
    schema: dict[str, Any] = SchemaGenerator().get_schema(  # type: ignore[no-untyped-call]
        request=None, public=True
    )
    return schema


@cache
def _errors() -> list[dict[str, str]]:
    lines = (settings.BASE_DIR / "docs" / "errors.md").read_text(encoding="utf-8").splitlines()
    rows = [row.groupdict() for row in map(_ERROR_ROW.match, lines) if row]
    return [{name: _with_code(text) for name, text in row.items()} for row in rows]


def _with_code(markdown: str) -> str:
    """The text as HTML. Backticks are the only Markdown in the table."""
    parts = enumerate(markdown.split("`"))
    return format_html_join(
        "", "{}", ((format_html("<code>{}</code>", part) if i % 2 else part,) for i, part in parts)
    )
