"""The modes of a web push device, and what they response."""

from enum import StrEnum

from sandbox.behaviours import WAIT, Behaviour, Repertoire, chosen, retry_after
from sandbox.responses import Response
from sandbox.webpush import responses
from sandbox.webpush.responses import error_response

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
    | hang | never responds | |
    | reset | a TCP reset instead of a response | |
    | close_after_accept | takes the message, then closes without a response | |
    | endless_body | a response whose body never ends | status |
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
        Mode.WNS_THROTTLED: WAIT,
        Mode.WNS_DROPPED: frozenset({"status"}),
        Mode.REDIRECT: frozenset({"location"}),
    },
    required={Mode.REDIRECT: "location"},
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


def response_of(behaviour: Behaviour, *, accepted: Response, now: float) -> Response:
    """The response of the mode. `accepted` is the response of a mode that has none."""
    match behaviour.mode:
        case Mode.GONE:
            return responses.gone()
        case Mode.NOT_FOUND:
            return responses.not_found()
        case Mode.TOO_LARGE:
            return responses.too_large(MAX_BODY)
        case Mode.THROTTLED:
            return error_response(429, None, "Too many requests", retry_after(behaviour, now))
        case Mode.WNS_THROTTLED:
            return Response(406, headers=_WNS_THROTTLED_HEADERS | retry_after(behaviour, now))
        case Mode.WNS_DROPPED:
            return Response(behaviour.status, headers=_WNS_DROPPED_HEADERS)
        case Mode.REDIRECT:
            return Response(307, headers={"Location": behaviour.location})
        case Mode.ERROR:
            plain = error_response(behaviour.status, None, "Chosen by the sandbox's user")
            return chosen(behaviour, plain, now)
        case _:
            return accepted
