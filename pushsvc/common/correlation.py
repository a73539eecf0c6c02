"""Correlation ids of a request: they find its log lines and spans in all processes.

A notification's row stores those of the request that created it, because messages of the broker may
be lost. A wakeup also contains them, of the request for which a worker's turn began.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final, NamedTuple
from uuid import UUID

from structlog.contextvars import bind_contextvars, clear_contextvars, reset_contextvars

MOST_REQUEST_ID: Final = 128
_REQUEST_ID = re.compile(rf"[\w.:@/+=-]{{1,{MOST_REQUEST_ID}}}", re.ASCII)
# https://www.w3.org/TR/trace-context/#traceparent-header
_TRACEPARENT = re.compile(
    r"(?!ff)([0-9a-f]{2})-((?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2})(-.*)?"
)


class Correlation(NamedTuple):
    """`traceparent`: the trace and the span that caused the current work, in the W3C's format."""

    request_id: str | None = None
    traceparent: str | None = None

    @property
    def fields(self) -> dict[str, str]:
        """The fields of log lines."""
        trace_id = self.traceparent and self.traceparent[3:35]
        found = {"request_id": self.request_id, "trace_id": trace_id}
        return {name: value for name, value in found.items() if value}

    @property
    def headers(self) -> dict[str, str]:
        """The headers of a wakeup."""
        return {name: value for name, value in self._asdict().items() if value}


_NONE: Final = Correlation()
_current: ContextVar[Correlation] = ContextVar("correlation", default=_NONE)
_woken_by: ContextVar[Correlation] = ContextVar("woken_by", default=_NONE)


def current() -> Correlation:
    return _current.get()


def woken_by() -> Correlation:
    """The ids of the wakeup that started this worker's turn."""
    return _woken_by.get()


@contextmanager
def following(correlation: Correlation, **fields: Any) -> Iterator[None]:
    """A context in which log lines have these ids and fields."""
    token = _current.set(correlation)
    # A third of the cost of structlog's bound_contextvars, because every request does it.
    bound = bind_contextvars(**correlation.fields, **fields)
    try:
        yield
    finally:
        reset_contextvars(**bound)
        _current.reset(token)


def begin_turn(headers: Mapping[str, Any]) -> None:
    """Begins a turn for a wakeup with these headers. Clears the context of the last turn."""
    clear_contextvars()
    _current.set(_NONE)
    wakeup = Correlation(headers.get("request_id"), headers.get("traceparent"))
    _woken_by.set(wakeup)
    if wakeup.request_id:
        bind_contextvars(woken_by=wakeup.request_id)


def correlation_of(
    notification_id: UUID, request_id: str | None = None, traceparent: str | None = None
) -> Correlation:
    """Those of a notification, from its row. Without a trace, its id becomes the trace's id."""
    own = notification_id.hex
    return Correlation(request_id, traceparent or f"00-{own}-{own[16:]}-00")


def parse_request_id(text: str) -> str | None:
    """Returns the id, or None if it is malformed."""
    return text if _REQUEST_ID.fullmatch(text) else None


def parse_traceparent(text: str) -> str | None:
    """Returns the value as version 00, or None if it is malformed. Later versions may be longer."""
    found = _TRACEPARENT.fullmatch(text)
    if found is None or (found[1] == "00" and found[3]):
        return None
    return f"00-{found[2]}"


def named(one: str, several: str, ids: Collection[int | UUID]) -> dict[str, object]:
    """Fields of a log line: `{one: id}`, or `{several: ids}` if there are several ids."""
    shown = [str(each) if isinstance(each, UUID) else each for each in ids]
    return {one: shown[0]} if len(shown) == 1 else {several: shown}
