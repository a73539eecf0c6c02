"""Formats of the log: one line for each event, with its fields.

structlog passes our events to the standard library's logging, so they are filtered and written like
those of other packages. Ids of the current context (correlation.py) become fields of all lines.

URLs are not logged, because a path may contain a token, and a query a search term. The log names a
request by its route.
"""

import json
import logging
import re
from datetime import UTC, datetime
from typing import Any, Final

import structlog
from django.http import HttpRequest
from typing_extensions import override

from pushsvc.common.timestamps import format_timestamp

# `taskName` is new in Python 3.12; `data` is Celery's, a whole message.
_STANDARD: Final = set(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName", "data"}
_QUOTED_ROW: Final = re.compile(r"\n(DETAIL|CONTEXT): .*?(?=\n\n|\Z)", re.DOTALL)
_QUOTED: Final = frozenset(" =\"'\\")
_to_json: Final = json.JSONEncoder(
    default=str
).encode  # created once: creating it takes as long as writing a line


structlog.configure(
    processors=[structlog.stdlib.filter_by_level, structlog.stdlib.render_to_log_kwargs],
    wrapper_class=structlog.stdlib.BoundLogger,
    logger_factory=structlog.stdlib.LoggerFactory(),
    cache_logger_on_first_use=True,
)


def route_of(request: HttpRequest) -> str:
    """The route of a request, such as `c/<token>`. Empty if none matched."""
    match = request.resolver_match
    return match.route if match else ""


class TextFormatter(logging.Formatter):
    """Time, level, logger and event, then `field=value`. A traceback follows in indented lines.

    Values are quoted if needed, so that no value looks like a field or a separate line.
    """

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s %(message)s")

    @override
    def formatMessage(self, record: logging.LogRecord) -> str:
        record.message = _event(record.message)
        fields = (f" {name}={_value(value)}" for name, value in fields_of(record).items())
        return super().formatMessage(record) + "".join(fields)

    @override
    def formatException(self, ei: Any) -> str:
        return _indented(_without_rows(super().formatException(ei)))

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
            "fields": fields_of(record),
        }
        if record.exc_info:
            line["traceback"] = _without_rows(self.formatException(record.exc_info))
        return _to_json(line)


class NoAddresses(logging.Filter):
    """Replaces the URL with the route in Django's messages about a request. Removes the traceback
    of a refused request, because it is not a bug."""

    @override
    def filter(self, record: logging.LogRecord) -> bool:
        request = vars(record).pop("request", None)
        if isinstance(request, HttpRequest):
            record.args = tuple(_without_path(part, request) for part in record.args or ())
            vars(record)["route"] = route_of(request)
        if record.name.startswith("django.security."):
            record.exc_info = None
        return True


class WithContext(logging.Filter):
    """Adds the fields of the current context. The event's own fields take precedence."""

    @override
    def filter(self, record: logging.LogRecord) -> bool:
        fields = vars(record)
        for name, value in structlog.contextvars.get_contextvars().items():
            fields.setdefault(name, value)
        return True


def _without_path(part: object, request: HttpRequest) -> object:
    # Django escapes paths in its messages.
    escaped = request.path.encode("unicode_escape").decode("ascii")
    return "a request" if part in (request.path, escaped) else part


def fields_of(record: logging.LogRecord) -> dict[str, Any]:
    """The fields of a line, without the event."""
    return {name: value for name, value in sorted(vars(record).items()) if name not in _STANDARD}


def _without_rows(traceback: str) -> str:
    """The traceback without lines of the database's message that quote a row."""
    return _QUOTED_ROW.sub("", traceback)


def _event(message: str) -> str:
    """The event of a line. Sentences of other packages are quoted only if they look like fields."""
    return message if message.isprintable() and "=" not in message else json.dumps(message)


def _value(value: object) -> str:
    text = str(value)
    is_plain = text.isprintable() and text != "" and not _QUOTED.intersection(text)
    return text if is_plain else json.dumps(text)


def _indented(text: str) -> str:
    lines = (line if line.isprintable() else ascii(line) for line in text.splitlines())
    return "\n".join(f"  {line}" for line in lines)
