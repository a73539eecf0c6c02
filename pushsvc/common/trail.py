"""The trail of a request: the ids by which log lines and spans of all processes are found.

A notification's row keeps the trail of the request that made it, because messages of the broker may
be lost. A wakeup carries a trail too: it says which request a worker's turn began for.
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


class Trail(NamedTuple):
    """`traceparent`: the trace and the span that caused the present work, in the W3C's form."""

    request_id: str | None = None
    traceparent: str | None = None

    @property
    def fields(self) -> dict[str, str]:
        """What log lines have of it."""
        trace_id = self.traceparent and self.traceparent[3:35]
        found = {"request_id": self.request_id, "trace_id": trace_id}
        return {name: value for name, value in found.items() if value}

    @property
    def headers(self) -> dict[str, str]:
        """What a wakeup has of it."""
        return {name: value for name, value in self._asdict().items() if value}


_NONE: Final = Trail()
_current: ContextVar[Trail] = ContextVar("trail", default=_NONE)
_woken_by: ContextVar[Trail] = ContextVar("woken_by", default=_NONE)


def current() -> Trail:
    return _current.get()


def woken_by() -> Trail:
    """The trail of the wakeup that this worker's turn began with."""
    return _woken_by.get()


@contextmanager
def following(trail: Trail, **fields: Any) -> Iterator[None]:
    """Until its end, the log lines of this context have the trail's fields and these."""
    token = _current.set(trail)
    # A third of the cost of structlog's bound_contextvars, because every request does it.
    bound = bind_contextvars(**trail.fields, **fields)
    try:
        yield
    finally:
        reset_contextvars(**bound)
        _current.reset(token)


def begin_turn(headers: Mapping[str, Any]) -> None:
    """A worker got a wakeup with these headers. Forgets what the last turn of this process left."""
    clear_contextvars()
    _current.set(_NONE)
    wakeup = Trail(headers.get("request_id"), headers.get("traceparent"))
    _woken_by.set(wakeup)
    if wakeup.request_id:
        bind_contextvars(woken_by=wakeup.request_id)


def trail_of(
    notification_id: UUID, request_id: str | None = None, traceparent: str | None = None
) -> Trail:
    """A notification's, as its row has it. Without a trace of its own, its id is the trace's."""
    own = notification_id.hex
    return Trail(request_id, traceparent or f"00-{own}-{own[16:]}-00")


def parse_request_id(text: str) -> str | None:
    """None if it is not well-formed."""
    return text if _REQUEST_ID.fullmatch(text) else None


def parse_traceparent(text: str) -> str | None:
    """As version 00; None if it is not well-formed. Later versions may have more at the end."""
    found = _TRACEPARENT.fullmatch(text)
    if found is None or (found[1] == "00" and found[3]):
        return None
    return f"00-{found[2]}"


def named(one: str, several: str, ids: Collection[int | UUID]) -> dict[str, object]:
    """Fields of a log line about these: `{one: id}`, or `{several: ids}` if there are several."""
    shown = [str(each) if isinstance(each, UUID) else each for each in ids]
    return {one: shown[0]} if len(shown) == 1 else {several: shown}
