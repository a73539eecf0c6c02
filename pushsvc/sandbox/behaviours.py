"""How a device's push resource can be told to misbehave.

A behaviour is chosen by `Mode`, tuned by the options of that mode, and holds for the next `times`
valid requests or for ever. A mode either is an answer (`answer_of`) or acts on the connection
(`pushsvc.sandbox.wire`).
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from email.utils import formatdate
from enum import StrEnum
from typing import Any

from multidict import CIMultiDict

from pushsvc.sandbox import answers
from pushsvc.sandbox.answers import Answer, error_answer

MAX_BODY = 4096
_MAX_NUMBER = 10**9
_PRINTABLE = re.compile(r"[\x20-\x7e]*")
_ENCODABLE = re.compile(r"[^\ud800-\udfff]*")


class Mode(StrEnum):
    """What the next valid requests of a device meet.

    | mode | what happens | options |
    |---|---|---|
    | accept | 201 with Location and TTL | |
    | gone, not_found | 410 with errno 106, 404 with errno 102 | |
    | throttled | 429 | retry_after, as_date |
    | wns_throttled | Microsoft's 406 for a throttled channel | retry_after, as_date |
    | wns_dropped | Microsoft's 201 for a message that it threw away | status |
    | too_large | 413 with errno 104 | |
    | error | any status, headers and body | status, headers, body, retry_after, as_date |
    | redirect | 307 | location |
    | slow | accepts after a while | seconds |
    | hang | never answers | |
    | reset | a TCP reset instead of an answer | |
    | close_after_accept | takes the message, then closes without an answer | |
    | endless_body | an answer whose body never ends | status |
    | garbage | bytes that are not HTTP | |

    `retry_after` is in seconds; with `as_date` the same moment is sent as an HTTP date.
    """

    ACCEPT = "accept"
    GONE = "gone"
    NOT_FOUND = "not_found"
    THROTTLED = "throttled"
    WNS_THROTTLED = "wns_throttled"
    WNS_DROPPED = "wns_dropped"
    TOO_LARGE = "too_large"
    ERROR = "error"
    REDIRECT = "redirect"
    SLOW = "slow"
    HANG = "hang"
    RESET = "reset"
    CLOSE_AFTER_ACCEPT = "close_after_accept"
    ENDLESS_BODY = "endless_body"
    GARBAGE = "garbage"


@dataclass(slots=True)
class Behaviour:
    """A mode with its options. `remaining` counts the requests left; None is for ever."""

    mode: Mode = Mode.ACCEPT
    remaining: int | None = None
    seconds: float = 0.0
    status: int = 201
    retry_after: int | None = None
    as_date: bool = False
    headers: Mapping[str, str] = field(default_factory=dict)
    body: str | None = None
    location: str = ""


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
    "as_date": _Option("true or false", lambda v: isinstance(v, bool)),
    "headers": _Option("names and values of printable ASCII", _is_header_map),
    "body": _Option("a text or a JSON object", _is_body),
    "location": _Option("a URL in printable ASCII", _is_printable),
}
_WAIT = frozenset({"retry_after", "as_date"})
_OPTIONS_OF_MODE = {
    Mode.THROTTLED: _WAIT,
    Mode.WNS_THROTTLED: _WAIT,
    Mode.WNS_DROPPED: frozenset({"status"}),
    Mode.ERROR: _WAIT | {"status", "body", "headers"},
    Mode.REDIRECT: frozenset({"location"}),
    Mode.SLOW: frozenset({"seconds"}),
    Mode.ENDLESS_BODY: frozenset({"status"}),
}
_REQUIRED = {Mode.ERROR: "status", Mode.REDIRECT: "location", Mode.SLOW: "seconds"}


def behaviour_from(mode: str, times: object, options: Mapping[str, object]) -> Behaviour:
    """Build a behaviour from outside values; raise ValueError with a sentence for the caller."""
    try:
        known_mode = Mode(mode)
    except ValueError:
        raise ValueError(f"mode must be one of {', '.join(Mode)}") from None
    required = _REQUIRED.get(known_mode)
    if required and required not in options:
        raise ValueError(f"mode {mode} needs the option {required}")
    values: dict[str, Any] = {
        name: _checked_option(known_mode, name, value) for name, value in options.items()
    }
    return Behaviour(known_mode, _checked_times(times), **values)


def _checked_times(times: object) -> int | None:
    if times is None:
        return None
    if not isinstance(times, int) or not _is_whole_number(times, 1, _MAX_NUMBER):
        raise ValueError("times must be a whole number, 1 or more")
    return times


def _checked_option(mode: Mode, name: str, value: object) -> object:
    if name not in _OPTIONS_OF_MODE.get(mode, frozenset()):
        raise ValueError(f"mode {mode} has no option {name}")
    option = _OPTIONS[name]
    if not option.holds(value):
        raise ValueError(f"{name} must be {option.expected}")
    return json.dumps(value) if isinstance(value, dict) and name == "body" else value


def answer_of(behaviour: Behaviour, *, accepted: Answer, now: float) -> Answer:
    """The answer of a mode that is one; `accepted` is what the service says when all is well."""
    match behaviour.mode:
        case Mode.GONE:
            return answers.gone()
        case Mode.NOT_FOUND:
            return answers.not_found()
        case Mode.TOO_LARGE:
            return answers.too_large(MAX_BODY)
        case Mode.THROTTLED:
            return error_answer(429, None, "Too many requests", _retry_after(behaviour, now))
        case Mode.WNS_THROTTLED:
            return Answer(406, headers=_WNS_THROTTLED_HEADERS | _retry_after(behaviour, now))
        case Mode.WNS_DROPPED:
            return Answer(behaviour.status, headers=_WNS_DROPPED_HEADERS)
        case Mode.REDIRECT:
            return Answer(307, headers={"Location": behaviour.location})
        case Mode.ERROR:
            return _chosen_error(behaviour, now)
        case _:
            return accepted


# Header names and values: Microsoft, "Push notification service request and response headers".
_WNS_THROTTLED_HEADERS = {
    "X-WNS-NotificationStatus": "channelThrottled",
    "X-WNS-Error-Description": "The channel is throttled",
    "X-WNS-Msg-ID": "5B1C2D3E4F506172",
    "X-WNS-Debug-Trace": "SANDBOX",
}
_WNS_DROPPED_HEADERS = {
    "X-WNS-NotificationStatus": "dropped",
    "X-WNS-DeviceConnectionStatus": "disconnected",
    "X-WNS-Msg-ID": "5B1C2D3E4F506172",
}


def _chosen_error(behaviour: Behaviour, now: float) -> Answer:
    status = behaviour.status
    plain = error_answer(status, None, "Chosen by the sandbox's user")
    headers = CIMultiDict(plain.headers)
    headers.update(_retry_after(behaviour, now))
    headers.update(behaviour.headers)
    body = plain.body if behaviour.body is None else behaviour.body
    return Answer(status, body, headers, taken=is_success(status))


def is_success(status: int) -> bool:
    return 200 <= status < 300


def _retry_after(behaviour: Behaviour, now: float) -> dict[str, str]:
    seconds = behaviour.retry_after
    if seconds is None:
        return {}
    text = formatdate(now + seconds, usegmt=True) if behaviour.as_date else str(seconds)
    return {"Retry-After": text}
