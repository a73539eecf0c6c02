"""The modes of a web push device, and what they answer."""

from enum import StrEnum

from multidict import CIMultiDict

from sandbox.answering import Answer
from sandbox.behaviours import WAIT, Behaviour, Repertoire, is_success, retry_after
from sandbox.webpush import answers
from sandbox.webpush.answers import error_answer

MAX_BODY = 4096


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


REPERTOIRE = Repertoire(
    Mode,
    options={
        Mode.THROTTLED: WAIT,
        Mode.WNS_THROTTLED: WAIT,
        Mode.WNS_DROPPED: frozenset({"status"}),
        Mode.ERROR: WAIT | {"status", "body", "headers"},
        Mode.REDIRECT: frozenset({"location"}),
        Mode.SLOW: frozenset({"seconds"}),
        Mode.ENDLESS_BODY: frozenset({"status"}),
    },
    required={Mode.ERROR: "status", Mode.REDIRECT: "location", Mode.SLOW: "seconds"},
)

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


def answer_of(behaviour: Behaviour, *, accepted: Answer, now: float) -> Answer:
    """The answer of the mode. `accepted` is the answer of a mode that has none."""
    match behaviour.mode:
        case Mode.GONE:
            return answers.gone()
        case Mode.NOT_FOUND:
            return answers.not_found()
        case Mode.TOO_LARGE:
            return answers.too_large(MAX_BODY)
        case Mode.THROTTLED:
            return error_answer(429, None, "Too many requests", retry_after(behaviour, now))
        case Mode.WNS_THROTTLED:
            return Answer(406, headers=_WNS_THROTTLED_HEADERS | retry_after(behaviour, now))
        case Mode.WNS_DROPPED:
            return Answer(behaviour.status, headers=_WNS_DROPPED_HEADERS)
        case Mode.REDIRECT:
            return Answer(307, headers={"Location": behaviour.location})
        case Mode.ERROR:
            return _chosen_error(behaviour, now)
        case _:
            return accepted


def _chosen_error(behaviour: Behaviour, now: float) -> Answer:
    status = behaviour.status
    plain = error_answer(status, None, "Chosen by the sandbox's user")
    headers = CIMultiDict(plain.headers)
    headers.update(retry_after(behaviour, now))
    headers.update(behaviour.headers)
    body = plain.body if behaviour.body is None else behaviour.body
    return Answer(status, body, headers, taken=is_success(status))
