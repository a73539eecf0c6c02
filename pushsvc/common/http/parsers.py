"""Parsers of bodies. A separate module, because workers read strict JSON too, without DRF."""

from collections.abc import Mapping
from typing import IO, Any

from django.http import UnreadablePostError
from rest_framework.parsers import BaseParser
from typing_extensions import override

from pushsvc.common.errors import BadRequest, BodyTooLarge, Fault, Invalid
from pushsvc.common.http.strict_json import MAX_BODY_BYTES, loads_strict


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
            raise Invalid([Fault("", "not_an_object", "The body must be a JSON object.")])
        return value


def _read(stream: IO[Any]) -> bytes:
    try:
        body: bytes = stream.read(MAX_BODY_BYTES + 1)
    except UnreadablePostError as error:
        raise BadRequest("The body ended before its announced length.") from error
    if len(body) > MAX_BODY_BYTES:
        raise BodyTooLarge
    return body
