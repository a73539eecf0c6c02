"""The behaviours of the parts of a sandbox.

A behaviour is a mode with its options. It applies to the next `times` valid requests, or to all.
Each sandbox has its own modes. A mode is either an answer or an act on the connection
(`sandbox.wire`).
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from email.utils import formatdate
from enum import StrEnum
from typing import Any

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


@dataclass(frozen=True, slots=True)
class Repertoire:
    """All modes, the options that each allows, and the option that it requires."""

    modes: type[StrEnum]
    options: Mapping[str, frozenset[str]]
    required: Mapping[str, str]

    def behaviour(self, mode: str, times: object, options: Mapping[str, object]) -> Behaviour:
        """A checked behaviour. Raises ValueError with a sentence for the caller."""
        try:
            known = self.modes(mode)
        except ValueError:
            raise ValueError(f"mode must be one of {', '.join(self.modes)}") from None
        required = self.required.get(known)
        if required and required not in options:
            raise ValueError(f"mode {mode} needs the option {required}")
        values: dict[str, Any] = {
            name: self._checked_option(known, name, value) for name, value in options.items()
        }
        return Behaviour(known, _checked_times(times), **values)

    def _checked_option(self, mode: StrEnum, name: str, value: object) -> object:
        if name not in self.options.get(mode, frozenset()):
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


def is_success(status: int) -> bool:
    return 200 <= status < 300


def retry_after(behaviour: Behaviour, now: float) -> dict[str, str]:
    """The chosen Retry-After header, if any. `now` is Unix time in seconds."""
    seconds = behaviour.retry_after
    if seconds is None:
        return {}
    text = formatdate(now + seconds, usegmt=True) if behaviour.as_date else str(seconds)
    return {"Retry-After": text}
