"""Reads bodies as strict JSON, and responds in the view's one format.

A separate module, because DRF imports it together with its views; and apart from `strict_json`,
which workers read without DRF.
"""

from collections.abc import Iterable, Mapping
from typing import IO, Any

from django.http import UnreadablePostError
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.parsers import BaseParser
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request
from typing_extensions import override

from pushsvc.common.errors import BadRequest, BodyTooLarge, FieldError, Invalid
from pushsvc.common.http.strict_json import MAX_BODY_BYTES, loads_strict


class AlwaysJSON(BaseContentNegotiation):
    """Ignores Accept, and responds in the view's one format. Requires the exact Content-Type."""

    @override
    def select_parser(self, request: Request, parsers: Iterable[BaseParser]) -> BaseParser | None:
        sent = request.content_type.partition(";")[0].strip().lower()
        return next((parser for parser in parsers if parser.media_type == sent), None)

    @override
    def select_renderer(
        self,
        request: Request,
        renderers: Iterable[BaseRenderer],
        format_suffix: str | None = None,
    ) -> tuple[BaseRenderer, str]:
        renderer = next(iter(renderers))
        return renderer, str(renderer.media_type)


class StrictJSONParser(BaseParser):
    """Parses a body of at most 64 KiB that is one JSON object."""

    media_type = "application/json"

    @override
    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        value = loads_strict(_read(stream))
        if not isinstance(value, dict):
            raise Invalid([FieldError("", "not_an_object", "The body must be a JSON object.")])
        return value


def _read(stream: IO[Any]) -> bytes:
    try:
        body: bytes = stream.read(MAX_BODY_BYTES + 1)
    except UnreadablePostError as error:
        raise BadRequest("The body ended before its announced length.") from error
    if len(body) > MAX_BODY_BYTES:
        raise BodyTooLarge
    return body
