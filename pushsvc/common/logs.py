"""One line for each event: time, level, event name, then its `extra` fields as key=value.

Addresses are not written: paths hold tokens, queries what people search for. A request is named by
its route.
"""

import logging

from django.http import HttpRequest
from typing_extensions import override

# `taskName` is new in Python 3.12; `data` is Celery's, a whole message.
_STANDARD = set(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName", "data"}


def route_of(request: HttpRequest) -> str:
    """`c/<token>`; empty where no route was found."""
    match = request.resolver_match
    return match.route if match else ""


class EventFormatter(logging.Formatter):
    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s %(message)s")

    @override
    def formatMessage(self, record: logging.LogRecord) -> str:
        extra = {k: v for k, v in vars(record).items() if k not in _STANDARD}
        fields = "".join(f" {key}={_on_one_line(value)}" for key, value in sorted(extra.items()))
        return super().formatMessage(record) + fields


class NoAddresses(logging.Filter):
    """For what Django logs of a request: the route in place of its address, and no traceback of a
    request that was refused, because nothing of ours has to be mended."""

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
    # Django escapes what it logs.
    escaped = request.path.encode("unicode_escape").decode("ascii")
    return "a request" if part in (request.path, escaped) else part


def _on_one_line(value: object) -> str:
    """A value may hold line ends, and would write lines of its own."""
    text = str(value)
    return text if text.isprintable() else ascii(text)
