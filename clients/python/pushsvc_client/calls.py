"""Requests, and the rule by which one is repeated. No input or output happens here."""

import random
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote
from uuid import uuid4

import httpx

from pushsvc_client.errors import Refused, Unreachable
from pushsvc_client.types import Message

# What the service's docs/errors.md calls safe to repeat.
_REPEATABLE: Final = frozenset({408, 429, 500, 502, 503, 504})
_IN_FLIGHT: Final = "idempotency_key_in_flight"
_FIRST_PAUSE: Final = 0.5
_LONGEST_PAUSE: Final = 30.0


@dataclass(frozen=True)
class Call:
    """A request that is safe to repeat, as each of ours is."""

    method: str
    path: str
    json: Mapping[str, Any] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    params: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Pause:
    seconds: float


Answer = httpx.Response | httpx.TransportError | None
Attempts = Generator[Call | Pause, Answer, Any]


def attempts(call: Call, retries: int) -> Attempts:
    """Yields what to do next, and is sent the result of a call. Returns the JSON of a good
    answer. Raises Refused or Unreachable after the last attempt."""
    for attempt in range(retries + 1):
        answer = yield call
        if isinstance(answer, httpx.Response) and answer.is_success:
            return answer.json() if answer.content else None
        if attempt == retries or not _may_repeat(answer):
            break
        yield Pause(_pause(answer, attempt))
    raise _error(answer)


def _may_repeat(answer: Answer) -> bool:
    if not isinstance(answer, httpx.Response):
        return True
    return answer.status_code in _REPEATABLE or _problem(answer).get("code") == _IN_FLIGHT


def _pause(answer: Answer, attempt: int) -> float:
    """As long as the service says; otherwise longer each time, and different for each client."""
    told = answer.headers.get("Retry-After", "") if isinstance(answer, httpx.Response) else ""
    if told.isdecimal():
        return float(told)
    most = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2**attempt)
    return random.uniform(most / 2, most)  # noqa: S311 - nobody gains by guessing it


def _problem(answer: httpx.Response) -> dict[str, Any]:
    try:
        problem = answer.json()
    except ValueError:  # from a proxy between us and the service
        return {}
    return problem if isinstance(problem, dict) else {}


def _error(answer: Answer) -> Refused | Unreachable:
    if isinstance(answer, httpx.Response):
        return Refused(answer.status_code, _problem(answer))
    return Unreachable(str(answer))


# --- the service's requests -----------------------------------------------------------------------


def _part(text: str) -> str:
    return quote(text, safe="")


def send(message: Message, idempotency_key: str | None) -> Call:
    """With a new idempotency key if none is given, so that a retry sends nothing twice."""
    headers = {"Idempotency-Key": idempotency_key or str(uuid4())}
    return Call("POST", "/send-notification", dict(message), headers)


def notification(notification_id: str) -> Call:
    return Call("GET", f"/notification/{_part(notification_id)}")


def details(notification_id: str) -> Call:
    return Call("GET", f"/notification/{_part(notification_id)}/details")


def pause(notification_id: str) -> Call:
    return Call("POST", f"/notification/{_part(notification_id)}/pause")


def resume(notification_id: str) -> Call:
    return Call("POST", f"/notification/{_part(notification_id)}/resume")


def stop(notification_id: str) -> Call:
    return Call("POST", f"/notification/{_part(notification_id)}/stop")


def notifications(channel_id: str, limit: int, offset: int) -> Call:
    return Call(
        "GET", f"/notifications/{_part(channel_id)}", params={"limit": limit, "offset": offset}
    )


def cancel(notification_id: str) -> Call:
    return Call("DELETE", f"/cancel-notification/{_part(notification_id)}")


def channel(channel_id: str) -> Call:
    return Call("GET", f"/channel/{_part(channel_id)}")


def platforms(channel_id: str) -> Call:
    return Call("GET", f"/channel/{_part(channel_id)}/platforms")


def subscribe(channel_id: str, device: Mapping[str, Any]) -> Call:
    return Call("POST", "/subscribe", device, {"X-Channel-ID": channel_id})


def unsubscribe(channel_id: str, device: Mapping[str, Any]) -> Call:
    return Call("POST", "/unsubscribe", device, {"X-Channel-ID": channel_id})
