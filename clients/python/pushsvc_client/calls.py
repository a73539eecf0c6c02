"""Requests, and the rule by which one is repeated. No input or output happens here."""

import json
import random
import time
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Final, Generic, TypeVar
from urllib.parse import quote
from uuid import UUID, uuid4

import httpx

from pushsvc_client.errors import Refused, Unreachable
from pushsvc_client.schemas import NotificationOutput, NotificationStatus

T = TypeVar("T")
FINAL: Final[frozenset[NotificationStatus]] = frozenset({"sent", "failed", "cancelled"})
LARGEST_PAGE: Final = 100
# What the service's docs/errors.md calls safe to repeat.
_REPEATABLE: Final = frozenset({408, 429, 500, 502, 503, 504})
_TOO_MANY_REQUESTS: Final = 429
_IN_FLIGHT: Final = "idempotency_key_in_flight"
_FIRST_PAUSE: Final = 0.5
_LONGEST_PAUSE: Final = 30.0
_POLL_SECONDS: Final = 1.0


@dataclass(frozen=True)
class Call(Generic[T]):
    """A request, and the type of its answer. With `is_repeatable` False, a repeat might do the same
    once more."""

    method: str
    path: str
    json: object = None
    params: Mapping[str, object] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    is_repeatable: bool = True
    body: bytes | None = None  # instead of JSON

    @property
    def content(self) -> bytes | None:
        """Raises ValueError for a time without a time zone."""
        if self.json is None:
            return self.body
        return json.dumps(self.json, default=_plain).encode()

    @property
    def query(self) -> dict[str, str]:
        given = {name: value for name, value in self.params.items() if value is not None}
        return {name: _text(name, value) for name, value in given.items()}


@dataclass(frozen=True)
class Pages(Generic[T]):
    """All pages of a list or an export, or as many as hold `limit` entries."""

    path: str
    params: Mapping[str, object]
    limit: int | None
    largest: int = LARGEST_PAGE


@dataclass(frozen=True)
class Pause:
    seconds: float


@dataclass(frozen=True)
class Patience:
    """How often a call is repeated, and the most seconds that the service may ask to wait."""

    retries: int
    longest_wait: float


Answer = httpx.Response | httpx.TransportError | None
Steps = Generator[Call[Any] | Pause, Answer, T]


def attempts(call: Call[T], patience: Patience) -> Steps[httpx.Response]:
    """Yields what to do next, and is sent the result of a call. Returns a good answer. Raises
    Refused or Unreachable after the last attempt."""
    attempt = 0
    while True:
        answer = yield call
        if isinstance(answer, httpx.Response) and _is_good(call, answer):
            return answer
        seconds = _pause(answer, attempt)
        is_last = attempt >= patience.retries or seconds > patience.longest_wait
        if is_last or not _may_repeat(call, answer):
            raise _error(answer)
        yield Pause(seconds)
        attempt += 1


def answered(call: Call[T], patience: Patience) -> Steps[T]:
    """Returns the JSON of the answer, or the address to which it redirects."""
    answer = yield from attempts(call, patience)
    value: Any = answer.json() if answer.content else answer.headers.get("Location")
    return value  # type: ignore[no-any-return] # the document says that it is a T


def finished(notification_id: str, patience: Patience, seconds: float) -> Steps[NotificationOutput]:
    """Returns the notification when its status is final. Raises TimeoutError."""
    read: Call[NotificationOutput] = Call("GET", f"/notification/{part(notification_id)}")
    deadline = time.monotonic() + seconds
    while (shown := (yield from answered(read, patience)))["status"] not in FINAL:
        if time.monotonic() >= deadline:
            raise TimeoutError(f"notification {notification_id} is not finished")
        yield Pause(_POLL_SECONDS)
    return shown


class Reading(Generic[T]):
    """The position in a list. `call` reads the next page; None: there is no more."""

    def __init__(self, pages: Pages[T]) -> None:
        self._left = pages.limit
        size = pages.largest if pages.limit is None else min(pages.limit, pages.largest)
        first: Call[list[T]] = Call("GET", pages.path, params={**pages.params, "limit": size})
        # A time without a time zone is an error now, not when the first page is read.
        given = replace(first, params=first.query)
        self.call: Call[list[T]] | None = None if pages.limit == 0 else given

    def entries(self, answer: httpx.Response) -> list[T]:
        """The entries of the page that was read."""
        found = _entries(answer)[: self._left]
        if self._left is not None:
            self._left -= len(found)
        following = answer.links.get("next", {}).get("url")
        if self.call and following and self._left != 0:
            self.call = replace(self.call, params=dict(httpx.URL(following).params))
        else:
            self.call = None
        return found


def _entries(answer: httpx.Response) -> list[Any]:
    """Of a list, which is JSON, or of an export, which has an entry a line."""
    if answer.headers.get("Content-Type", "").startswith("application/x-ndjson"):
        # In a text, splitlines() would also divide at characters that JSON does not escape.
        return [json.loads(line) for line in answer.content.split(b"\n") if line]
    found: list[Any] = answer.json()
    return found


def part(text: str) -> str:
    """The text as one part of a path."""
    return quote(str(text), safe="")


def new_key() -> str:
    """An idempotency key, so that a retry sends nothing twice."""
    return str(uuid4())


def _plain(value: object) -> str:
    match value:
        case datetime() if value.tzinfo is None:
            raise ValueError(f"{value.isoformat()} has no time zone: give it a tzinfo, such as UTC")
        case datetime():
            moment = value.astimezone(UTC).isoformat(timespec="milliseconds")
            return moment.replace("+00:00", "Z")
        case UUID():
            return str(value)
    raise TypeError(f"{type(value).__name__} is not JSON")


def _text(name: str, value: object) -> str:
    match value:
        case bool():
            return str(value).lower()
        case str() | int() | float():
            return str(value)
        case datetime() | UUID():
            return _plain(value)
    raise TypeError(f"{name}={value!r}: give one value, not a {type(value).__name__}")


def _is_good(call: Call[Any], answer: httpx.Response) -> bool:
    """The service redirects only clicks. Every other redirection is a proxy's."""
    is_click = answer.status_code == 302 and call.path.startswith("/c/")
    return answer.status_code < 300 or is_click


def _may_repeat(call: Call[Any], answer: Answer) -> bool:
    if not call.is_repeatable:
        # Only if the service did nothing yet.
        if isinstance(answer, httpx.Response):
            return answer.status_code == _TOO_MANY_REQUESTS
        return isinstance(answer, httpx.ConnectError | httpx.ConnectTimeout)
    if not isinstance(answer, httpx.Response):
        return True
    return answer.status_code in _REPEATABLE or _problem(answer).get("code") == _IN_FLIGHT


def _pause(answer: Answer, attempt: int) -> float:
    """As long as the service says; otherwise longer each time, and different for each client."""
    told = retry_after(answer)
    if told is not None:
        return told
    most = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2**attempt)
    return random.uniform(most / 2, most)  # noqa: S311 - nobody gains by guessing it


def retry_after(answer: Answer) -> float | None:
    told = answer.headers.get("Retry-After", "") if isinstance(answer, httpx.Response) else ""
    return float(told) if told.isdecimal() else None


def _problem(answer: httpx.Response) -> dict[str, Any]:
    """Empty where something between us and the service answered."""
    try:
        problem = answer.json()
    except ValueError:
        return {}
    return problem if isinstance(problem, dict) and "code" in problem else {}


def _error(answer: Answer) -> Refused | Unreachable:
    if isinstance(answer, httpx.Response):
        problem = {"request_id": answer.headers.get("X-Request-ID", "")} | _problem(answer)
        return Refused(answer.status_code, problem, retry_after(answer))
    return Unreachable(str(answer))
