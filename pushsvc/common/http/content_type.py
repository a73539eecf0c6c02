"""What a request's Content-Type may say to Django: a media type, and the boundary of a form.

Django reads the rest of it while it makes the request, outside of what turns faults into answers.
Python has charsets that decode no text (`zlib`, `undefined`), a parameter may name an encoding that
does not exist, and the time for long headers grows with the square of their length.
"""

from typing import Final

from django.utils.http import parse_header_parameters

_MOST: Final = 512  # characters; a boundary has at most 200


def plain_content_type(value: str) -> str:
    """The media type and the boundary; "" where they cannot be read. Without a charset, everything
    is read as UTF-8."""
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
