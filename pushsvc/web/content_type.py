"""Reduces a request's Content-Type to the media type and the boundary of a form.

Django parses the whole header before it can turn errors into responses. Some of Python's charsets
are not for text (`zlib`, `undefined`), a parameter may name an unknown encoding, and the time to
parse a long header grows with the square of its length.
"""

from typing import Final

from django.utils.http import parse_header_parameters

_MOST: Final = 512  # characters; a boundary has at most 200


def plain_content_type(value: str) -> str:
    """The media type and the boundary; "" if they cannot be parsed. Without a charset, Django
    decodes everything as UTF-8."""
    if len(value) > _MOST:
        return ""
    if ";" not in value:
        return value
    try:
        kind, parameters = parse_header_parameters(value)
    except (ValueError, LookupError):
        return ""
    boundary = parameters.get("boundary")
    if boundary is None:
        return kind
    escaped = boundary.replace("\\", r"\\").replace('"', r"\"")
    return f'{kind}; boundary="{escaped}"'
