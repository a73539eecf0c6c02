"""What a push service's answer means. The table is tested row by row; docs/webpush.md shows it."""

import json
from collections.abc import Mapping
from datetime import datetime
from enum import Enum, auto
from typing import Any, Final, assert_never

from notifications_app.delivery.types import (
    Accepted,
    Deferred,
    Gone,
    Outcome,
    Rejected,
    clean_text,
    parse_retry_after,
)
from pushsvc.common.egress import Response


class Verdict(Enum):
    ACCEPTED = auto()
    THROTTLED = auto()
    OUTAGE = auto()
    REJECTED = auto()
    GONE = auto()
    SUSPECT = auto()


_ACCEPTED: Final = (Verdict.ACCEPTED, "")
_THROTTLED: Final = (Verdict.THROTTLED, "throttled")
_DROPPED: Final = (Verdict.REJECTED, "dropped")
_OTHER_KEY: Final = (Verdict.SUSPECT, "vapid_key_mismatch")
_REFUSED_VAPID: Final = (Verdict.REJECTED, "vapid_refused")
_DEAD: Final = (Verdict.GONE, "endpoint_gone")

# By status, and by what the service adds to it in words of its own (`_reason`), "" for any.
TABLE: Final[Mapping[tuple[int, str], tuple[Verdict, str]]] = {
    # RFC 8030 section 5 says 201; section 5.1 says 202 where a receipt was asked for. WNS answers
    # 200 or 201 also for what it does not deliver (Microsoft, "Push notification service request
    # and response headers").
    **{
        (status, reason): verdict
        for status in (200, 201, 202, 204)
        for reason, verdict in (
            ("", _ACCEPTED),
            ("dropped", _DROPPED),
            ("channelthrottled", _THROTTLED),
            ("appthrottled", _THROTTLED),
        )
    },
    (400, ""): (Verdict.REJECTED, "bad_request"),
    # Apple, "Sending web push notifications in web apps and browsers": the subscription was made
    # with another VAPID key. That is so for ever, unless it was we who mixed up keys.
    (400, "vapidpkhashmismatch"): _OTHER_KEY,
    (403, "vapidpkhashmismatch"): _OTHER_KEY,
    # RFC 8292 section 4.2. Autopush says 401 (errno 109) for all faults of VAPID, FCM mostly 403.
    # Anyone may subscribe an endpoint that answers so, hence never a fault of the channel.
    (401, ""): _REFUSED_VAPID,
    (403, ""): _REFUSED_VAPID,
    # RFC 8030 section 7.3 says 404; autopush 410 (errno 103, 105, 106), FCM and Apple 410.
    (404, ""): _DEAD,
    (410, ""): _DEAD,
    # WNS limits the rate with 406.
    (406, "channelthrottled"): _THROTTLED,
    (406, "appthrottled"): _THROTTLED,
    (408, ""): (Verdict.OUTAGE, "timeout"),
    (413, ""): (Verdict.REJECTED, "payload_too_large"),  # RFC 8030 section 7.2
    (429, ""): _THROTTLED,  # RFC 8030 section 8.4
}
# By the status's hundreds, where the table has no row (RFC 9110 section 15). What is outside 100 to
# 599 counts as 5xx there.
FALLBACK: Final[Mapping[int, tuple[Verdict, str]]] = {
    1: (Verdict.REJECTED, "unexpected_answer"),
    2: (Verdict.REJECTED, "unexpected_answer"),
    3: (Verdict.REJECTED, "redirected"),
    4: (Verdict.REJECTED, "refused"),
    5: (Verdict.OUTAGE, "service_error"),
}

# What a delivery's `code` can be on the web, for docs/webpush.md.
CODES: Final[Mapping[str, str]] = {
    "bad_keys": "The browser's keys cannot be encrypted to.",
    "bad_request": "The push service found the request malformed (400).",
    "connection_failed": "No connection, or it broke off before an answer.",
    "dropped": "The push service took the message and discarded it at once (WNS).",
    "endpoint_gone": "The push service no longer knows the subscription (404, 410).",
    "endpoint_not_allowed": "The endpoint, or the address it leads to, is not one we send to.",
    "name_not_resolved": "The push service's host name could not be resolved.",
    "payload_too_large": "The message is too large, by our count or the push service's (413).",
    "redirected": "The push service answered with a redirect, which is never followed.",
    "refused": "The push service refused with a 4xx status that says nothing more definite.",
    "service_error": "The push service failed (5xx).",
    "throttled": "The push service asked to slow down (429; 406 of WNS).",
    "timeout": "The push service did not answer in time.",
    "tls_failed": "The push service's certificate or TLS was not acceptable.",
    "unexpected_answer": "The answer has a status that no push service gives (1xx, odd 2xx).",
    "unexpected_error": "A fault of ours while sending; the log names it.",
    "vapid_key_mismatch": "The subscription was made with another VAPID key (Apple).",
    "vapid_key_unreadable": "The channel's VAPID key is missing or cannot be read.",
    "vapid_refused": "The push service refused our VAPID signature (401, 403).",
}

# Codes of a Gone that is `suspect`.
SUSPECT_CODES: Final = frozenset({"vapid_key_mismatch"})
# The push service was not asked, or nobody knows whether it was.
NEVER_ASKED_CODES: Final = frozenset(
    {"bad_keys", "endpoint_not_allowed", "unexpected_error", "vapid_key_unreadable"}
)
# Codes that blame the channel's keys, each with the event to log when a push service gives it to
# many. One endpoint proves nothing: anyone may subscribe one that answers so.
REFUSAL_EVENTS: Final = {"vapid_refused": "vapid.refused_by_many"}


def classify(response: Response, now: datetime) -> Outcome:
    """Total: any status, headers and body give an outcome. `now` is aware."""
    said = _json(response.body)
    verdict, code = _verdict(response.status, _reason(response.headers, said))
    if verdict is Verdict.ACCEPTED:
        return Accepted(_provider_id(response.headers))
    detail = _detail(response, said)
    retry_after = parse_retry_after(response.headers.get("Retry-After"), now)
    match verdict:
        case Verdict.THROTTLED:
            return Deferred(code, detail, retry_after)
        case Verdict.OUTAGE:
            return Deferred(code, detail, retry_after, outage=True)
        case Verdict.REJECTED:
            return Rejected(code, detail)
        case Verdict.GONE:
            return Gone(code, detail)
        case Verdict.SUSPECT:
            return Gone(code, detail, suspect=True)
        case _:
            assert_never(verdict)


def _verdict(status: int, reason: str) -> tuple[Verdict, str]:
    return (
        TABLE.get((status, reason))
        or TABLE.get((status, ""))
        or FALLBACK.get(status // 100, FALLBACK[5])
    )


def _reason(headers: Mapping[str, str], said: Mapping[str, Any]) -> str:
    """WNS's notification status or Apple's reason, in lower case.

    Autopush's errno is not among them: it tells apart nothing that its status does not.
    """
    reason = headers.get("X-WNS-NotificationStatus") or said.get("reason")
    return reason.strip().lower() if isinstance(reason, str) else ""


def _json(body: bytes) -> Mapping[str, Any]:
    """The object in the body, or an empty one."""
    if not body.lstrip().startswith(b"{"):
        return {}
    try:
        said = json.loads(body)
    except (ValueError, RecursionError):  # RecursionError: 4 KiB of brackets
        return {}
    return said if isinstance(said, dict) else {}


def _provider_id(headers: Mapping[str, str]) -> str:
    """Apple's and WNS's id; elsewhere the last segment of the message's own address, which alone
    does not let anyone delete the message."""
    given = headers.get("apns-id") or headers.get("X-WNS-MSG-ID")
    return clean_text(given or headers.get("Location", "").rsplit("/", 1)[-1])


def _detail(response: Response, said: Mapping[str, Any]) -> str:
    """The service's own words, with its number for the fault where it has one."""
    words = (
        response.headers.get("X-WNS-Error-Description"),
        said.get("reason"),
        f"errno {said['errno']}" if isinstance(said.get("errno"), int) else None,
        said.get("message"),
    )
    found = [word for word in words if isinstance(word, str) and word]
    if not found:
        found = [response.body.decode("utf-8", "replace")]
    return clean_text(f"{response.status} {': '.join(found)}")
