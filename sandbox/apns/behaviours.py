"""The modes of the APNs sandbox's devices and keys, and what they response."""

from enum import StrEnum
from typing import Final

from sandbox.apns.responses import error_response
from sandbox.behaviours import WAIT, Behaviour, Repertoire, chosen, retry_after
from sandbox.responses import BLOCKED, Response


class ApnsMode(StrEnum):
    """What the next valid requests of a device meet.

    | mode | what happens | options |
    |---|---|---|
    | accept | 200 with apns-id | |
    | no_apns_id | 200 without apns-id | |
    | endless | 200 whose stream does not end before the connection is closed | |
    | unregistered, expired_token | 410 with a timestamp, now if none is given | timestamp |
    | bad_device_token, not_for_topic | 400 BadDeviceToken, DeviceTokenNotForTopic | |
    | throttled | 429 TooManyRequests | retry_after, as_date |
    | internal_error | 500 InternalServerError | retry_after, as_date |
    | unavailable, shutdown | 503 ServiceUnavailable, Shutdown | retry_after, as_date |
    | error | any status, headers and body | status, headers, body, retry_after, as_date |
    | header_only | any status, and no body | status |
    | empty_data | an error whose body ends with an empty DATA frame | status |
    | slow | accepts after a while | seconds |
    | hang | never responds | |
    | reset | a TCP reset instead of a response | |
    | close_after_accept | takes the message, then closes without a response | |
    | garbage | bytes that are not HTTP/2 | |
    | rst_stream | RST_STREAM with INTERNAL_ERROR | |
    | refused_stream | RST_STREAM with REFUSED_STREAM: not processed | |
    | goaway | 200, then GOAWAY | |
    | goaway_first | GOAWAY, and the 200 later | seconds |
    | goaway_unprocessed | GOAWAY that says that this request was not processed | |
    | streams | SETTINGS with another number of streams, then 200 | streams |

    `retry_after` is in seconds; with `as_date` the same moment is sent as an HTTP date. A mode
    that ends the connection (endless, reset, close_after_accept, garbage) first waits until all
    earlier responses have arrived. A sender that repeats those messages did not read them.
    """

    ACCEPT = "accept"
    NO_APNS_ID = "no_apns_id"
    ENDLESS = "endless"
    UNREGISTERED = "unregistered"
    EXPIRED_TOKEN = "expired_token"  # noqa: S105 (a mode)
    BAD_DEVICE_TOKEN = "bad_device_token"  # noqa: S105 (a mode)
    NOT_FOR_TOPIC = "not_for_topic"
    THROTTLED = "throttled"
    INTERNAL_ERROR = "internal_error"
    UNAVAILABLE = "unavailable"
    SHUTDOWN = "shutdown"
    ERROR = "error"
    HEADER_ONLY = "header_only"
    EMPTY_DATA = "empty_data"
    SLOW = "slow"
    HANG = "hang"
    RESET = "reset"
    CLOSE_AFTER_ACCEPT = "close_after_accept"
    GARBAGE = "garbage"
    RST_STREAM = "rst_stream"
    REFUSED_STREAM = "refused_stream"
    GOAWAY = "goaway"
    GOAWAY_FIRST = "goaway_first"
    GOAWAY_UNPROCESSED = "goaway_unprocessed"
    STREAMS = "streams"


class KeyMode(StrEnum):
    """What the next requests with a good signature of the key meet.

    | mode | what happens |
    |---|---|
    | accept | the key is good |
    | revoked | 403 InvalidProviderToken |
    | expired | 403 ExpiredProviderToken |
    | wrong_environment | 403 BadEnvironmentKeyIdInToken |
    | unrelated | 403 UnrelatedKeyIdInToken |
    | blocked | 403 with a page of HTML, from a proxy in front of APNs |
    """

    ACCEPT = "accept"
    REVOKED = "revoked"
    EXPIRED = "expired"
    WRONG_ENVIRONMENT = "wrong_environment"
    UNRELATED = "unrelated"
    BLOCKED = "blocked"


DEVICE_REPERTOIRE: Final = Repertoire(
    ApnsMode,
    options={
        ApnsMode.UNREGISTERED: frozenset({"timestamp"}),
        ApnsMode.EXPIRED_TOKEN: frozenset({"timestamp"}),
        ApnsMode.INTERNAL_ERROR: WAIT,
        ApnsMode.SHUTDOWN: WAIT,
        ApnsMode.HEADER_ONLY: frozenset({"status"}),
        ApnsMode.EMPTY_DATA: frozenset({"status"}),
        ApnsMode.GOAWAY_FIRST: frozenset({"seconds"}),
        ApnsMode.STREAMS: frozenset({"streams"}),
    },
    required={
        ApnsMode.HEADER_ONLY: "status",
        ApnsMode.EMPTY_DATA: "status",
        ApnsMode.STREAMS: "streams",
    },
)
KEY_REPERTOIRE: Final = Repertoire(KeyMode)

_CHOSEN_BODY: Final = '{"reason":"ChosenByTheUser"}'
_REASONS: Final = {
    ApnsMode.UNREGISTERED: "Unregistered",
    ApnsMode.EXPIRED_TOKEN: "ExpiredToken",
    ApnsMode.BAD_DEVICE_TOKEN: "BadDeviceToken",
    ApnsMode.NOT_FOR_TOPIC: "DeviceTokenNotForTopic",
    ApnsMode.THROTTLED: "TooManyRequests",
    ApnsMode.INTERNAL_ERROR: "InternalServerError",
    ApnsMode.UNAVAILABLE: "ServiceUnavailable",
    ApnsMode.SHUTDOWN: "Shutdown",
}
_KEY_REASONS: Final = {
    KeyMode.REVOKED: "InvalidProviderToken",
    KeyMode.EXPIRED: "ExpiredProviderToken",
    KeyMode.WRONG_ENVIRONMENT: "BadEnvironmentKeyIdInToken",
    KeyMode.UNRELATED: "UnrelatedKeyIdInToken",
}


def response_of(behaviour: Behaviour, now: float) -> Response:
    """The response of the mode; 200 if it has none. `now` is Unix time in seconds."""
    mode = ApnsMode(behaviour.mode)
    if mode in _REASONS:
        return error_response(_REASONS[mode], behaviour.timestamp, retry_after(behaviour, now), now)
    if mode in {ApnsMode.ERROR, ApnsMode.HEADER_ONLY, ApnsMode.EMPTY_DATA}:
        is_empty = mode == ApnsMode.HEADER_ONLY
        return chosen(behaviour, Response(0, "" if is_empty else _CHOSEN_BODY), now)
    return Response(200, taken=True)


def key_rejection(behaviour: Behaviour) -> Response | None:
    """The response that rejects the key, or None."""
    if behaviour.mode == KeyMode.BLOCKED:
        return BLOCKED
    reason = _KEY_REASONS.get(KeyMode(behaviour.mode))
    return None if reason is None else error_response(reason)
