"""JSON as RFC 8259 defines it, stricter than Python's parser.

Refuses encodings other than UTF-8, duplicate keys, NaN, infinities, numbers that do not fit a
double, more than 20 levels, and text with NUL or lone surrogates (PostgreSQL stores neither).
Ignores a byte order mark, as RFC 8259 section 8.1 allows, because programs on Windows write one.
"""

import codecs
import json
import math
import re
from typing import Any, NoReturn

from django.utils.translation import gettext

from pushsvc.common.errors import BadRequest

MAX_BODY_BYTES = 64 * 1024
MAX_DEPTH = 20
_SAFE_DIGITS = 300  # a number with at most this many digits fits a double
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


class MalformedJSON(BadRequest):
    code = "malformed_json"
    title = "The body is not JSON"


def loads_strict(data: bytes) -> Any:
    """The JSON value in `data`. Raises MalformedJSON, which says what is wrong."""
    data = data.removeprefix(codecs.BOM_UTF8)
    if not data.strip():
        raise MalformedJSON(gettext("The body is empty."))
    try:
        value = json.loads(
            data.decode("utf-8"),
            object_pairs_hook=_object,
            parse_constant=_constant,
            parse_float=_float,
            parse_int=_int,
        )
    except UnicodeDecodeError as error:
        raise MalformedJSON(
            gettext("Not UTF-8 at byte %(start)s.") % {"start": error.start}
        ) from error
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise MalformedJSON(
            gettext("Not JSON: %(msg)s (%(where)s).") % {"msg": error.msg, "where": where}
        ) from error
    except RecursionError as error:
        raise _too_deep() from error
    _check_depth(value)
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, value in pairs:
        check_text(key)
        if key in result:
            raise MalformedJSON(
                gettext("The key %(key)s appears twice.") % {"key": f"{key[:50]!r}"}
            )
        result[key] = value
    return result


def _constant(name: str) -> NoReturn:
    raise MalformedJSON(f"{name} is not a JSON number.")


def _float(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise MalformedJSON(gettext("A number is too large."))
    return number


def _int(digits: str) -> int:
    if len(digits) > _SAFE_DIGITS:
        _float(digits)  # because int() raises another error for long digit strings
    return int(digits)


def _check_depth(value: Any) -> None:
    """Checks the depth level by level, without recursion. Also checks all text."""
    level, depth = [value], 0
    while level:
        below: list[Any] = []
        nested = False
        for item in level:
            if isinstance(item, str):
                check_text(item)
            elif isinstance(item, dict | list):
                nested = True
                below.extend(item.values() if isinstance(item, dict) else item)
        depth += nested
        if depth > MAX_DEPTH:
            raise _too_deep()
        level = below


def is_storable(text: str) -> bool:
    """Whether PostgreSQL can store the text."""
    return _UNSTORABLE.search(text) is None


def check_text(text: str) -> None:
    """Raises MalformedJSON for text that PostgreSQL cannot store."""
    if not is_storable(text):
        raise MalformedJSON(gettext("A string contains NUL or half of a surrogate pair."))


def _too_deep() -> MalformedJSON:
    return MalformedJSON(gettext("More than %(depth)s levels of nesting.") % {"depth": MAX_DEPTH})
