"""What a response of APNs means. Tests check the table row by row; docs/outcomes.md shows it."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final

from notifications_app.delivery.responses import (
    ACCEPTED,
    ANY,
    FOREIGN,
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

_BAD_REQUEST: Final = Row(ResponseClass.REJECTED, "bad_request")
_KEY_REFUSED: Final = Row(ResponseClass.MISCONFIGURED, "key_refused")
_WRONG_ENVIRONMENT: Final = Row(ResponseClass.MISCONFIGURED, "key_for_other_environment")
_OTHER_TOPIC: Final = Row(ResponseClass.MISCONFIGURED, "key_for_other_topic")
_TOPIC_REFUSED: Final = Row(ResponseClass.MISCONFIGURED, "topic_refused")
_UNREGISTERED: Final = Row(ResponseClass.GONE, "unregistered")
_OUTAGE: Final = Row(ResponseClass.OUTAGE, "service_error")

# Apple's documents spell the ends of these reasons in different ways, so only the beginning counts.
_BEGINNINGS: Final = ("BadEnvironmentKey", "UnrelatedKeyId")
# The form of all of Apple's reasons. Other servers write sentences.
_APPLES: Final = re.compile(r"[A-Z][A-Za-z]{2,63}")
# By status and reason (Apple, "Handling notification responses from APNs"). A 4xx without a reason
# of Apple has no row here: it is FOREIGN, except for 413 and 429.
TABLE: Final[Table] = {
    (200, ANY): ACCEPTED,
    (400, ANY): _BAD_REQUEST,
    # A token of the other environment gets the same response; then the credentials are wrong.
    (400, "BadDeviceToken"): Row(ResponseClass.SUSPECT, "bad_device_token"),
    # If the credentials name the wrong app, every token gets this response.
    (400, "DeviceTokenNotForTopic"): Row(ResponseClass.SUSPECT, "device_token_not_for_topic"),
    # The topic belongs to the credentials: no device can cause these responses.
    (400, "BadTopic"): _TOPIC_REFUSED,
    (400, "TopicDisallowed"): _TOPIC_REFUSED,
    (400, "IdleTimeout"): Row(ResponseClass.THROTTLED, "idle_timeout"),
    # 403 is about certificate, provider token and topic: no device can cause it.
    (403, ANY): _KEY_REFUSED,
    # Our provider tokens are never too old unless this machine's clock is wrong.
    (403, "ExpiredProviderToken"): Row(ResponseClass.THROTTLED, "provider_token_expired"),
    (403, "BadEnvironmentKey"): _WRONG_ENVIRONMENT,
    (403, "UnrelatedKeyId"): _OTHER_TOPIC,
    (404, ANY): _BAD_REQUEST,
    (405, ANY): _BAD_REQUEST,
    (408, ANY): Row(ResponseClass.OUTAGE, "timeout"),
    (410, ANY): _UNREGISTERED,
    (410, "ExpiredToken"): Row(ResponseClass.GONE, "expired_token"),
    (413, ANY): Row(ResponseClass.REJECTED, "payload_too_large"),
    (429, ANY): Row(ResponseClass.THROTTLED, "throttled"),
    (429, "TooManyProviderTokenUpdates"): Row(ResponseClass.THROTTLED, "provider_token_updates"),
}
# By the hundreds of a status that the table does not have.
FALLBACK: Final[Fallback] = {
    1: Row(ResponseClass.REJECTED, "unexpected_response"),
    2: Row(ResponseClass.REJECTED, "unexpected_response"),
    3: FOREIGN,  # APNs never redirects
    4: Row(ResponseClass.REJECTED, "refused"),
    5: _OUTAGE,
}
# Seconds to wait if APNs names none. Apple advises 15 minutes after a 5xx. These waits are shorter,
# because most failures end in seconds, and backoff and breakers keep the load on APNs low.
WAITS: Final[Mapping[str, float]] = {
    "foreign_response": 10.0,
    "service_error": 10.0,
    "provider_token_expired": 60.0,
    "provider_token_updates": 300.0,
}

# The codes of outcomes on iOS, with their meaning. docs/outcomes.md lists them.
CODES: Final[Mapping[str, str]] = {
    "bad_device_token": "APNs has no such device token in this environment.",
    "bad_request": "The request is malformed (by our check, or 400, 404, 405).",
    "connection_failed": "There was no connection, or it ended before a response.",
    "device_token_not_for_topic": "The device token belongs to another app than the topic's.",
    "expired_token": "The device token has expired (410).",
    "foreign_response": "Something between us and APNs responded (3xx, or 4xx without a reason).",
    "idle_timeout": "APNs closed the request because it was idle.",
    "key_for_other_environment": "The key is for another environment (production, sandbox).",
    "key_for_other_topic": "The key is for other topics than the credential's.",
    "key_refused": "APNs refused the provider token: key, key id or team id are wrong or revoked.",
    "key_unreadable": "The stored private key cannot be read.",
    "malformed_token": "The device token is not hexadecimal.",
    "name_not_resolved": "The host name of APNs could not be resolved.",
    "not_processed": "APNs returned the request unprocessed several times.",
    "payload_too_large": "The message is too large for APNs (by our count, or 413).",
    "provider_token_expired": "APNs found the provider token too old: our clock is wrong.",
    "provider_token_updates": "APNs saw too many different provider tokens.",
    "refused": "APNs refused with a 4xx status that has no code of its own.",
    "service_error": "APNs failed or is shutting down (5xx).",
    "stream_reset": "APNs reset the request without a response.",
    "throttled": "Too many notifications for this device (429).",
    "timeout": "APNs did not respond in time.",
    "tls_failed": "The certificate or TLS of APNs was not acceptable.",
    "topic_refused": "The credential's topic is malformed, or the key may not send to it.",
    "unexpected_response": "The response has a status that APNs does not give (1xx, odd 2xx).",
    "unexpected_error": "An error of pushsvc while sending. The log names it.",
    "unregistered": "The app was deleted from the device, or no longer takes notifications (410).",
}

# Codes of a Gone that is `suspect`.
SUSPECT_CODES: Final = suspect_codes(TABLE)


def classify(response: Response, now: datetime) -> Outcome:
    """Total: any status, headers and body give an outcome. `now` is aware."""
    if not response.body and _row_without_body(response.status) == ACCEPTED:
        return Accepted()
    fields = json_object(response.body)
    reason = _reason(fields)
    is_apples = _APPLES.fullmatch(reason) is not None
    row = look_up(TABLE, FALLBACK, response.status, _known(reason), is_vendors=is_apples)
    if row == ACCEPTED:
        return Accepted()
    words = reason or response.body.decode("utf-8", "replace")
    return outcome_of(
        row,
        clean_text(f"{response.status} {words}"),
        wait=_wait(response, row.code, now),
        as_of=_moment(fields.get("timestamp"), now),
    )


@lru_cache(maxsize=128)
def _row_without_body(status: int) -> Row:
    return look_up(TABLE, FALLBACK, status, "", is_vendors=False)


def _reason(fields: Mapping[str, Any]) -> str:
    reason = fields.get("reason")
    return reason if isinstance(reason, str) else ""


def _known(reason: str) -> str:
    return next((begin for begin in _BEGINNINGS if reason.startswith(begin)), reason)


def _wait(response: Response, code: str, now: datetime) -> float | None:
    wait = parse_retry_after(response.headers.get("retry-after"), now)
    return WAITS.get(code) if wait is None else wait


def _moment(timestamp: object, now: datetime) -> datetime | None:
    """When APNs last found the token dead, from milliseconds since the epoch; None if unknown.

    Never later than `now`, because a later time would end future registrations.
    """
    if not isinstance(timestamp, int | float):
        return None
    try:
        return min(datetime.fromtimestamp(timestamp / 1_000, UTC), now)
    except (ValueError, OverflowError, OSError):
        return None
