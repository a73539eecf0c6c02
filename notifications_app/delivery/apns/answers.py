"""What an answer of APNs means. The table is tested row by row; docs/apns.md shows it."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from enum import Enum, auto
from typing import Any, Final, assert_never

from notifications_app.delivery.types import (
    Accepted,
    Deferred,
    Gone,
    Misconfigured,
    Outcome,
    Rejected,
    clean_text,
    parse_retry_after,
)
from pushsvc.common.egress import Response


class Verdict(Enum):
    ACCEPTED = auto()
    LATER = auto()
    OUTAGE = auto()
    REJECTED = auto()
    GONE = auto()
    SUSPECT = auto()
    MISCONFIGURED = auto()


_BAD_REQUEST: Final = (Verdict.REJECTED, "bad_request")
_KEY_REFUSED: Final = (Verdict.MISCONFIGURED, "key_refused")
_WRONG_ENVIRONMENT: Final = (Verdict.MISCONFIGURED, "key_for_other_environment")
_OTHER_TOPIC: Final = (Verdict.MISCONFIGURED, "key_for_other_topic")
_TOPIC_REFUSED: Final = (Verdict.MISCONFIGURED, "topic_refused")
_UNREGISTERED: Final = (Verdict.GONE, "unregistered")
_OUTAGE: Final = (Verdict.OUTAGE, "service_error")

# By status and reason, "" for any (Apple, "Handling notification responses from APNs").
TABLE: Final[Mapping[tuple[int, str], tuple[Verdict, str]]] = {
    (200, ""): (Verdict.ACCEPTED, ""),
    (400, ""): _BAD_REQUEST,
    # Also what a token of the other environment gets, and then it is the credential that is wrong.
    (400, "BadDeviceToken"): (Verdict.SUSPECT, "bad_device_token"),
    # Also what all tokens get where the credential names the wrong app.
    (400, "DeviceTokenNotForTopic"): (Verdict.SUSPECT, "device_token_not_for_topic"),
    # The topic is the credential's; nothing that a device does can cause these.
    (400, "BadTopic"): _TOPIC_REFUSED,
    (400, "TopicDisallowed"): _TOPIC_REFUSED,
    (400, "IdleTimeout"): (Verdict.LATER, "idle_timeout"),
    # No device has a part in what 403 is about: certificate, token, topic.
    (403, ""): _KEY_REFUSED,
    # Tokens are made on a grid and never too old, unless the clock is wrong here.
    (403, "ExpiredProviderToken"): (Verdict.LATER, "provider_token_expired"),
    (404, ""): _BAD_REQUEST,
    (405, ""): _BAD_REQUEST,
    (410, ""): _UNREGISTERED,
    (410, "ExpiredToken"): (Verdict.GONE, "expired_token"),
    (413, ""): (Verdict.REJECTED, "payload_too_large"),
    (429, ""): (Verdict.LATER, "throttled"),
    (429, "TooManyProviderTokenUpdates"): (Verdict.LATER, "provider_token_updates"),
}
# Apple spells these differently in different places: the beginning decides.
PREFIXES: Final[Mapping[tuple[int, str], tuple[Verdict, str]]] = {
    (403, "BadEnvironmentKey"): _WRONG_ENVIRONMENT,
    (403, "UnrelatedKeyId"): _OTHER_TOPIC,
}
# By the status's hundreds, where the table has no row. What is outside 100 to 599 counts as 5xx.
FALLBACK: Final[Mapping[int, tuple[Verdict, str]]] = {
    1: (Verdict.REJECTED, "unexpected_answer"),
    2: (Verdict.REJECTED, "unexpected_answer"),
    3: (Verdict.REJECTED, "unexpected_answer"),
    4: (Verdict.REJECTED, "refused"),
    5: _OUTAGE,
}
# Seconds to wait where APNs names none. After 5xx Apple advises 15 minutes; but most pass in
# seconds, and growing pauses between attempts and the circuit breaker spare it as well.
WAITS: Final[Mapping[str, float]] = {
    "service_error": 10.0,
    "provider_token_expired": 60.0,
    "provider_token_updates": 300.0,
}

# What a delivery's `code` can be on iOS, for docs/apns.md.
CODES: Final[Mapping[str, str]] = {
    "bad_device_token": "APNs knows no such device token in this environment.",
    "bad_request": "The request is malformed, by our check or by that of APNs (400, 404, 405).",
    "connection_failed": "No connection, or it broke off before an answer.",
    "device_token_not_for_topic": "The device token belongs to another app than the topic's.",
    "expired_token": "The device token has expired (410).",
    "idle_timeout": "APNs closed the request for idleness.",
    "key_for_other_environment": "The key is for the other of production and sandbox.",
    "key_for_other_topic": "The key is for other topics than the credential's.",
    "key_refused": "APNs refused the provider token: key, key id or team id are wrong or revoked.",
    "key_unreadable": "The stored private key cannot be read.",
    "malformed_token": "The device token is not hexadecimal.",
    "name_not_resolved": "The host name of APNs could not be resolved.",
    "not_processed": "APNs sent the request back unread several times.",
    "payload_too_large": "The message is too large, by our count or that of APNs (413).",
    "provider_token_expired": "APNs found the provider token too old: the clock here is wrong.",
    "provider_token_updates": "APNs saw too many different provider tokens.",
    "refused": "APNs refused with a 4xx status that says nothing more definite.",
    "service_error": "APNs failed or is shutting down (5xx).",
    "stream_reset": "APNs reset the request without an answer.",
    "throttled": "Too many notifications for this device (429).",
    "timeout": "APNs did not answer in time.",
    "tls_failed": "The certificate or TLS of APNs was not acceptable.",
    "topic_refused": "The credential's topic is malformed, or the key may not send to it.",
    "unexpected_answer": "The answer has a status that APNs does not give (1xx, odd 2xx, 3xx).",
    "unexpected_error": "A fault of ours while sending; the log names it.",
    "unregistered": "The app was deleted from the device, or no longer takes notifications (410).",
}

# Codes of a Gone that is `suspect`.
SUSPECT_CODES: Final = frozenset({"bad_device_token", "device_token_not_for_topic"})
# APNs was not asked, or nobody knows whether it was.
NEVER_ASKED_CODES: Final = frozenset({"key_unreadable", "malformed_token", "unexpected_error"})


def classify(response: Response, now: datetime) -> Outcome:
    """Total: any status, headers and body give an outcome. `now` is aware."""
    said = _json(response.body)
    reason = _reason(said)
    verdict, code = _verdict(response.status, reason)
    detail = clean_text(f"{response.status} {reason or response.body.decode('utf-8', 'replace')}")
    match verdict:
        case Verdict.ACCEPTED:
            return Accepted(clean_text(response.headers.get("apns-id", "")))
        case Verdict.LATER:
            return Deferred(code, detail, _wait(response, code, now))
        case Verdict.OUTAGE:
            return Deferred(code, detail, _wait(response, code, now), outage=True)
        case Verdict.REJECTED:
            return Rejected(code, detail)
        case Verdict.GONE:
            return Gone(code, detail, _moment(said.get("timestamp"), now))
        case Verdict.SUSPECT:
            return Gone(code, detail, suspect=True)
        case Verdict.MISCONFIGURED:
            return Misconfigured(code, detail)
        case _:
            assert_never(verdict)


def _verdict(status: int, reason: str) -> tuple[Verdict, str]:
    return (
        TABLE.get((status, reason))
        or _by_prefix(status, reason)
        or TABLE.get((status, ""))
        or FALLBACK.get(status // 100, FALLBACK[5])
    )


def _by_prefix(status: int, reason: str) -> tuple[Verdict, str] | None:
    rows = PREFIXES.items()
    return next(
        (row for (code, begin), row in rows if code == status and reason.startswith(begin)), None
    )


def _reason(said: Mapping[str, Any]) -> str:
    reason = said.get("reason")
    return reason if isinstance(reason, str) else ""


def _json(body: bytes) -> Mapping[str, Any]:
    """The object in the body, or an empty one."""
    if not body.lstrip().startswith(b"{"):
        return {}
    try:
        said = json.loads(body)
    except (ValueError, RecursionError):  # RecursionError: 4 KiB of brackets
        return {}
    return said if isinstance(said, dict) else {}


def _wait(response: Response, code: str, now: datetime) -> float | None:
    asked = parse_retry_after(response.headers.get("retry-after"), now)
    return WAITS.get(code) if asked is None else asked


def _moment(timestamp: object, now: datetime) -> datetime | None:
    """When the token was last found dead, from milliseconds since the epoch; None if it does not
    say. Never later than now, or it would outlive a registration that is to come."""
    if not isinstance(timestamp, int | float):
        return None
    try:
        return min(datetime.fromtimestamp(timestamp / 1_000, UTC), now)
    except (ValueError, OverflowError, OSError):
        return None
