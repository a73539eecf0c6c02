"""The behaviours of the parts of a sandbox, and the parts that misbehave on demand.

A behaviour is a mode with its options. It applies to the next `times` valid requests, or to all.
Each sandbox has its own modes. A mode is either a response or an act on the connection
(`sandbox.wire`).
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from email.utils import formatdate
from enum import StrEnum
from typing import Any, ClassVar, Final, Generic, TypeVar

from multidict import CIMultiDict

from sandbox.receipts import Receipt, ReceiptCounts
from sandbox.responses import Response

R = TypeVar("R", bound=Receipt)

ACCEPT = "accept"
WAIT = frozenset({"retry_after", "as_date"})
_MAX_NUMBER = 10**9
_MAX_MILLISECONDS = 10**15
_PRINTABLE = re.compile(r"[\x20-\x7e]*")
_ENCODABLE = re.compile(r"[^\ud800-\udfff]*")


@dataclass(slots=True)
class Behaviour:
    """A mode with its options. `remaining`: for how many more requests; None means all."""

    mode: str = ACCEPT
    remaining: int | None = None
    seconds: float = 0.0
    status: int = 201
    retry_after: int | None = None
    as_date: bool = False
    headers: Mapping[str, str] = field(default_factory=dict)
    body: str | None = None
    location: str = ""
    names_field: bool = False
    timestamp: int | None = None
    streams: int = 1


def _is_number(value: object, low: float, high: float) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and low <= value <= high


def _is_whole_number(value: object, low: int, high: int) -> bool:
    return isinstance(value, int) and _is_number(value, low, high)


def _is_printable(value: object) -> bool:
    return isinstance(value, str) and _PRINTABLE.fullmatch(value) is not None


def _is_header_map(value: object) -> bool:
    return isinstance(value, Mapping) and all(
        _is_printable(part) for item in value.items() for part in item
    )


def _is_body(value: object) -> bool:
    if isinstance(value, str):
        return _ENCODABLE.fullmatch(value) is not None
    return isinstance(value, dict)


def _is_flag(value: object) -> bool:
    return isinstance(value, bool)


@dataclass(frozen=True, slots=True)
class _Option:
    expected: str
    holds: Callable[[object], bool]


_OPTIONS = {
    "seconds": _Option("seconds, 0 or more", lambda v: _is_number(v, 0, _MAX_NUMBER)),
    "status": _Option("a status of 200 to 599", lambda v: _is_whole_number(v, 200, 599)),
    "retry_after": _Option(
        "whole seconds, 0 or more", lambda v: _is_whole_number(v, 0, _MAX_NUMBER)
    ),
    "as_date": _Option("true or false", _is_flag),
    "headers": _Option("names and values of printable ASCII", _is_header_map),
    "body": _Option("a text or a JSON object", _is_body),
    "location": _Option("a URL in printable ASCII", _is_printable),
    "names_field": _Option("true or false", _is_flag),
    "timestamp": _Option(
        "milliseconds since the epoch", lambda v: _is_whole_number(v, 0, _MAX_MILLISECONDS)
    ),
    "streams": _Option("a number of streams", lambda v: _is_whole_number(v, 0, _MAX_NUMBER)),
}


# The options of the modes that several sandboxes have.
_SHARED: Final = {
    "throttled": WAIT,
    "unavailable": WAIT,
    "error": WAIT | {"status", "body", "headers"},
    "slow": frozenset({"seconds"}),
    "endless_body": frozenset({"status"}),
}
_REQUIRED: Final = {"error": "status", "slow": "seconds"}


@dataclass(frozen=True, slots=True)
class Repertoire:
    """All modes. `options` and `required`: the options that a mode of only this sandbox allows, and
    the one that it requires."""

    modes: type[StrEnum]
    options: dict[str, frozenset[str]] = field(default_factory=dict)
    required: dict[str, str] = field(default_factory=dict)

    def behaviour(self, mode: str, times: object, options: Mapping[str, object]) -> Behaviour:
        """A checked behaviour. Raises ValueError with a sentence for the caller."""
        try:
            known = self.modes(mode)
        except ValueError:
            raise ValueError(f"mode must be one of {', '.join(self.modes)}") from None
        required = (_REQUIRED | self.required).get(known)
        if required and required not in options:
            raise ValueError(f"mode {mode} needs the option {required}")
        values: dict[str, Any] = {
            name: self._checked_option(known, name, value) for name, value in options.items()
        }
        return Behaviour(known, _checked_times(times), **values)

    def _checked_option(self, mode: StrEnum, name: str, value: object) -> object:
        if name not in (_SHARED | self.options).get(mode, frozenset()):
            raise ValueError(f"mode {mode} has no option {name}")
        option = _OPTIONS[name]
        if not option.holds(value):
            raise ValueError(f"{name} must be {option.expected}")
        return json.dumps(value) if isinstance(value, dict) and name == "body" else value


def _checked_times(times: object) -> int | None:
    if times is None:
        return None
    if not isinstance(times, int) or not _is_whole_number(times, 1, _MAX_NUMBER):
        raise ValueError("times must be a whole number, 1 or more")
    return times


@dataclass(slots=True, eq=False, kw_only=True)
class Behaving(Generic[R]):
    """A part of a sandbox that misbehaves on demand. `receipts`: of all requests, oldest first.

    Any thread may call its methods while the server runs: each reads or writes one attribute or
    list.
    """

    repertoire: ClassVar[Repertoire]

    receipts: list[R] = field(default_factory=list)
    behaviour: Behaviour = field(default_factory=Behaviour)

    def behave(self, mode: str, *, times: int | None = None, **options: object) -> None:
        """Response the next `times` valid requests (None: all) with `mode`, then accept again.

        Replaces what was set before. Raises ValueError for options that the mode does not have.
        """
        self.behaviour = self.repertoire.behaviour(mode, times, options)

    def next_behaviour(self) -> Behaviour:
        """The behaviour for the current request. Uses up one of its times."""
        behaviour = self.behaviour
        if behaviour.remaining is None:
            return behaviour
        if behaviour.remaining <= 0:
            return Behaviour()
        behaviour.remaining -= 1
        return behaviour

    def totals(self) -> ReceiptCounts:
        return ReceiptCounts.of(self.receipts)


def is_success(status: int) -> bool:
    return 200 <= status < 300


def retry_after(behaviour: Behaviour, now: float) -> dict[str, str]:
    """The chosen Retry-After header, if any. `now` is Unix time in seconds."""
    seconds = behaviour.retry_after
    if seconds is None:
        return {}
    text = formatdate(now + seconds, usegmt=True) if behaviour.as_date else str(seconds)
    return {"Retry-After": text}


def chosen(behaviour: Behaviour, plain: Response, now: float) -> Response:
    """The response of the mode `error`. `plain` has the body and headers that the user left out."""
    headers = CIMultiDict(plain.headers)
    headers.update(retry_after(behaviour, now))
    headers.update(behaviour.headers)
    body = plain.body if behaviour.body is None else behaviour.body
    return Response(behaviour.status, body, headers, taken=is_success(behaviour.status))
