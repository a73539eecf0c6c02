"""Formats of the log: one line for each event, with its `extra` as fields.

URLs are not logged: a path may contain a token, and a query what people search for. The log names
a request by its route.
"""

import json
import logging
from datetime import UTC, datetime
from typing import Any, Final

from django.http import HttpRequest
from typing_extensions import override

from pushsvc.common.timestamps import format_timestamp

# `taskName` is new in Python 3.12; `data` is Celery's, a whole message.
_STANDARD: Final = set(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName", "data"}
_QUOTED: Final = frozenset(" =\"'\\")


def route_of(request: HttpRequest) -> str:
    """The route, such as `c/<token>`. Empty if none matched."""
    match = request.resolver_match
    return match.route if match else ""


class TextFormatter(logging.Formatter):
    """Time, level, logger and event, then `field=value`. A traceback follows in indented lines.

    Values are quoted where needed, so that no value looks like a field or a line of its own.
    """

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s %(message)s")

    @override
    def formatMessage(self, record: logging.LogRecord) -> str:
        record.message = _event(record.message)
        fields = (f" {name}={_value(value)}" for name, value in _fields(record).items())
        return super().formatMessage(record) + "".join(fields)

    @override
    def formatException(self, ei: Any) -> str:
        return _indented(super().formatException(ei))

    @override
    def formatStack(self, stack_info: str) -> str:
        return _indented(stack_info)


class JsonFormatter(logging.Formatter):
    """One JSON object in each line: `time`, `level`, `logger`, `event`, `fields`, and `traceback`
    if there is one."""

    @override
    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": format_timestamp(datetime.fromtimestamp(record.created, UTC)),
            "level": record.levelname,
            "logger": record.name,
            "event": record.getMessage(),
            "fields": _fields(record),
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


class NoAddresses(logging.Filter):
    """Replaces the URL by the route in Django's messages about a request. Removes the traceback of
    a request that was refused, because no code has to be changed for it."""

    @override
    def filter(self, record: logging.LogRecord) -> bool:
        request = vars(record).pop("request", None)
        if isinstance(request, HttpRequest):
            record.args = tuple(_without_path(part, request) for part in record.args or ())
            vars(record)["route"] = route_of(request)
        if record.name.startswith("django.security."):
            record.exc_info = None
        return True


def _without_path(part: object, request: HttpRequest) -> object:
    # Django escapes paths in its messages.
    escaped = request.path.encode("unicode_escape").decode("ascii")
    return "a request" if part in (request.path, escaped) else part


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    return {name: value for name, value in sorted(vars(record).items()) if name not in _STANDARD}


def _event(message: str) -> str:
    """Other packages log sentences. They stay readable, unless they could be read as fields."""
    return message if message.isprintable() and "=" not in message else json.dumps(message)


def _value(value: object) -> str:
    text = str(value)
    is_plain = text.isprintable() and text != "" and not _QUOTED.intersection(text)
    return text if is_plain else json.dumps(text)


def _indented(text: str) -> str:
    lines = (line if line.isprintable() else ascii(line) for line in text.splitlines())
    return "\n".join(f"  {line}" for line in lines)
