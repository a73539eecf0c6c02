"""What the response of a web push service means. Tests check the table row by row;
docs/outcomes.md shows it."""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from notifications_app.delivery.responses import (
    ACCEPTED,
    ANY,
    Fallback,
    ResponseClass,
    Row,
    Table,
    json_object,
    look_up,
    outcome_of,
    suspect_codes,
)
from notifications_app.delivery.types import Accepted, Outcome, clean_text, parse_retry_after
from pushsvc.common.egress import Response

_THROTTLED: Final = Row(ResponseClass.THROTTLED, "throttled")
_DROPPED: Final = Row(ResponseClass.REJECTED, "dropped")
_OTHER_KEY: Final = Row(ResponseClass.SUSPECT, "vapid_key_mismatch")
_REFUSED_KEY: Final = Row(ResponseClass.SUSPECT, "vapid_refused")
_UNAUTHORIZED: Final = Row(ResponseClass.REJECTED, "unauthorized")
_DEAD: Final = Row(ResponseClass.GONE, "endpoint_gone")

# The reason of a 401 or 403 whose text says that the subscription has another VAPID key.
OTHER_KEY: Final = "other_key"

# By status, and by the service's own reason for it (`_reason`).
TABLE: Final[Table] = {
    # RFC 8030 section 5 says 201, section 5.1 says 202 if a receipt was asked for. WNS returns 200
    # or 201 even for messages that it does not deliver (Microsoft, "Push notification service
    # request and response headers").
    **{
        (status, reason): row
        for status in (200, 201, 202, 204)
        for reason, row in (
            (ANY, ACCEPTED),
            ("dropped", _DROPPED),
            ("channelthrottled", _THROTTLED),
            ("appthrottled", _THROTTLED),
        )
    },
    (400, ANY): Row(ResponseClass.REJECTED, "bad_request"),
    # The subscription has another VAPID key, or we used the wrong one (Apple, "Sending web push
    # notifications in web apps and browsers").
    (400, "vapidpkhashmismatch"): _OTHER_KEY,
    (403, "vapidpkhashmismatch"): _OTHER_KEY,
    # The same of autopush, FCM and WNS (`_names_other_key`). No message with our key will arrive.
    (401, OTHER_KEY): _REFUSED_KEY,
    (403, OTHER_KEY): _REFUSED_KEY,
    # WNS: the channel's address belongs to another sender (Microsoft, "Troubleshooting push
    # notifications"). It returns 401 to our token's errors.
    (403, "dropped"): _REFUSED_KEY,
    # RFC 8292 section 4.2. All else may be an error of our token, such as a wrong clock, which says
    # nothing about the subscription. Autopush returns 401, FCM and Apple 403. Anyone may subscribe
    # an endpoint that returns this, so it does not blame the channel's keys.
    (401, ANY): _UNAUTHORIZED,
    (403, ANY): _UNAUTHORIZED,
    # RFC 8030 section 7.3 says 404. Autopush (errno 103, 105, 106), FCM and Apple return 410.
    (404, ANY): _DEAD,
    (410, ANY): _DEAD,
    # WNS limits the rate with 406, with or without its header (Microsoft, "Troubleshooting push
    # notifications": "exceeded its throttle limit").
    (406, ANY): _THROTTLED,
    (408, ANY): Row(ResponseClass.OUTAGE, "timeout"),
    # RFC 8030 section 7.2. Autopush reaches Firefox for Android over FCM, and returns this (errno
    # 104) to messages for it that are not too large for other browsers.
    (413, ANY): Row(ResponseClass.REJECTED, "size_refused"),
    (429, ANY): _THROTTLED,  # RFC 8030 section 8.4
}
# By the hundreds of a status that the table does not have.
FALLBACK: Final[Fallback] = {
    1: Row(ResponseClass.REJECTED, "unexpected_response"),
    2: Row(ResponseClass.REJECTED, "unexpected_response"),
    3: Row(ResponseClass.REJECTED, "redirected"),
    4: Row(ResponseClass.REJECTED, "refused"),
    5: Row(ResponseClass.OUTAGE, "service_error"),
}

# The host's name does not exist. A resolver may be wrong about this for a while, for one name or
# for all. So several attempts must find it, and several sends before the subscription expires
# (pipeline/expiry.py).
NAME_NOT_FOUND: Final = "name_not_found"
NAME_ATTEMPTS: Final = 3

# The codes of outcomes on the web, with their meaning. docs/outcomes.md lists them.
CODES: Final[Mapping[str, str]] = {
    "bad_keys": "The browser's keys are invalid, so nothing can be encrypted for it.",
    "bad_request": "The push service found the request malformed (400).",
    "connection_failed": "There was no connection, or it ended before a response.",
    "dropped": "The push service took the message and discarded it at once (WNS).",
    "endpoint_gone": "The push service no longer has the subscription (404, 410).",
    "endpoint_not_allowed": "The endpoint, or the address behind its name, is not allowed.",
    NAME_NOT_FOUND: "The push service's host name does not exist.",
    "name_not_resolved": "The push service's host name could not be resolved.",
    "payload_too_large": "The message is too large for any push service (by our count).",
    "redirected": "The push service returned a redirect, which is never followed.",
    "refused": "The push service refused with a 4xx status that has no code of its own.",
    "service_error": "The push service failed (5xx).",
    "size_refused": "The push service takes only smaller messages for this browser (413).",
    "throttled": "The push service requested a lower rate (429; 406 of WNS).",
    "timeout": "The push service did not respond in time.",
    "tls_failed": "The push service's certificate or TLS was not acceptable.",
    "unauthorized": "The push service refused our VAPID token for another reason (401, 403).",
    "unexpected_response": "The response has a status that no push service gives (1xx, odd 2xx).",
    "unexpected_error": "An error of pushsvc while sending. The log names it.",
    "vapid_key_mismatch": "The subscription was made with another VAPID key (Apple).",
    "vapid_key_unreadable": "The channel's VAPID key is missing or cannot be read.",
    "vapid_refused": "The subscription was made with another VAPID key (401, 403).",
}

# Codes of a Gone that is `suspect`, and those of them that several sends must find.
SUSPECT_CODES: Final = suspect_codes(TABLE) | {NAME_NOT_FOUND}
REPEATED_CODES: Final = frozenset({NAME_NOT_FOUND})
# Codes that blame the channel's keys if many recipients get them, with the event to log. A single
# one proves nothing, because anyone may subscribe an endpoint that gives such a response.
REFUSAL_EVENTS: Final = {
    "unauthorized": "vapid.refused_by_many",
    "vapid_refused": "vapid.refused_by_many",
}
# FCM's texts (403), and autopush's (401, `VapidError::KeyMismatch`, which it checks before it reads
# the token).
_NAMES_OTHER_KEY: Final = re.compile(
    r"do(es)? not correspond|MismatchSenderId|VAPID public key mismatch",
    re.IGNORECASE,
)
# What autopush says of our token or request with the same errno 109: the other texts of its
# VapidError, and those of its JWT library.
_ERROR_OF_TOKEN: Final = re.compile(
    r"expir|token|signature|audience|subject|claim|missing|scheme|algorithm|jwt|json|base64|error"
    r"|invalid vapid|\b(exp|aud|sub)\b",
    re.IGNORECASE,
)
_MOZILLAS_ERRNO: Final = 109


def classify(response: Response, now: datetime) -> Outcome:
    """Total: any status, headers and body give an outcome. `now` is aware."""
    fields = json_object(response.body)
    row = look_up(TABLE, FALLBACK, response.status, _reason(response, fields))
    if row == ACCEPTED:
        return Accepted()
    wait = parse_retry_after(response.headers.get("Retry-After"), now)
    return outcome_of(row, _detail(response, fields), wait=wait)


def _reason(response: Response, fields: Mapping[str, Any]) -> str:
    """WNS's notification status or Apple's reason, in lower case, or OTHER_KEY.

    Autopush's other numbers are ignored, because they say no more than the status.
    """
    if response.status in (401, 403) and _names_other_key(response, fields):
        return OTHER_KEY
    reason = response.headers.get("X-WNS-NotificationStatus") or fields.get("reason")
    return reason.strip().lower() if isinstance(reason, str) else ""


def _names_other_key(response: Response, fields: Mapping[str, Any]) -> bool:
    message = fields.get("message")
    text = message if isinstance(message, str) else response.body.decode("utf-8", "replace")
    if _NAMES_OTHER_KEY.search(text):
        return True
    is_mozillas = response.status == 401 and fields.get("errno") == _MOZILLAS_ERRNO
    return is_mozillas and not (isinstance(message, str) and _ERROR_OF_TOKEN.search(message))


def _detail(response: Response, fields: Mapping[str, Any]) -> str:
    """The service's own text, with its error number if it has one."""
    words = (
        response.headers.get("X-WNS-Error-Description"),
        fields.get("reason"),
        f"errno {fields['errno']}" if isinstance(fields.get("errno"), int) else None,
        fields.get("message"),
    )
    found = [word for word in words if isinstance(word, str) and word]
    if not found:
        found = [response.body.decode("utf-8", "replace")]
    return clean_text(f"{response.status} {': '.join(found)}")
