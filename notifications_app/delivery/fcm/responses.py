"""What a response of FCM means. Tests check the table row by row; docs/outcomes.md shows it.

https://firebase.google.com/docs/reference/fcm/rest/v1/ErrorCode and
https://firebase.google.com/docs/cloud-messaging/scale-fcm.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from notifications_app.delivery.fcm.payload import AddressField
from notifications_app.delivery.responses import (
    ACCEPTED,
    ANY,
    Fallback,
    ResponseClass,
    Row,
    Table,
    accepted_statuses,
    json_object,
    look_up,
    outcome_of,
    suspect_codes,
)
from notifications_app.delivery.types import Accepted, Outcome, clean_text, parse_retry_after
from pushsvc.common.egress import Response

# The reason of a response of Google that has no FcmError.
NONE: Final = ""
# An INVALID_ARGUMENT that is only about the address, in the field in which it was sent.
INVALID_ADDRESS: Final = "INVALID_ARGUMENT address"
UNAUTHENTICATED: Final = "unauthenticated"

# Seconds to wait if FCM gives no time (scale-fcm, "Handling retries").
WAITS: Final = {ResponseClass.THROTTLED: 60.0, ResponseClass.OUTAGE: 10.0}

# By status and by the code of the FcmError among the details. A 4xx without Google's error object
# has no row here: it is FOREIGN, except for 408, 413 and 429.
TABLE: Final[Table] = {
    (200, ANY): ACCEPTED,
    (400, "INVALID_ARGUMENT"): Row(ResponseClass.REJECTED, "invalid_argument"),
    (400, INVALID_ADDRESS): Row(ResponseClass.GONE, "token_invalid"),
    # Google's frontend cannot parse the request. FCM did not see it, so there is no FcmError.
    (400, NONE): Row(ResponseClass.REJECTED, "invalid_argument"),
    # The access token has expired, or the account's key was revoked.
    (401, NONE): Row(ResponseClass.MISCONFIGURED, UNAUTHENTICATED),
    # The token belongs to an iOS or web app, and the Firebase project has no key for those. Anyone
    # may subscribe such a token, so it does not blame the channel's credentials.
    (401, "THIRD_PARTY_AUTH_ERROR"): Row(ResponseClass.REJECTED, "third_party_auth"),
    (401, "APNS_AUTH_ERROR"): Row(
        ResponseClass.REJECTED, "third_party_auth"
    ),  # its name until 2019
    # The API is switched off, or the account lacks the permission cloudmessaging.messages.create.
    (403, NONE): Row(ResponseClass.MISCONFIGURED, "permission_denied"),
    # The token belongs to another project, or the channel has the wrong credentials.
    (403, "SENDER_ID_MISMATCH"): Row(ResponseClass.SUSPECT, "sender_id_mismatch"),
    (404, "UNREGISTERED"): Row(ResponseClass.GONE, "unregistered"),
    (408, ANY): Row(ResponseClass.OUTAGE, "timeout"),
    (413, ANY): Row(ResponseClass.REJECTED, "payload_too_large"),
    (429, ANY): Row(ResponseClass.THROTTLED, "throttled"),
    (500, "INTERNAL"): Row(ResponseClass.OUTAGE, "service_error"),
    (503, "UNAVAILABLE"): Row(ResponseClass.OUTAGE, "service_error"),
}
# By the hundreds of a status that the table does not have. FCM never redirects: a 3xx comes from a
# proxy.
FALLBACK: Final[Fallback] = {
    1: Row(ResponseClass.REJECTED, "unexpected_response"),
    2: Row(ResponseClass.REJECTED, "unexpected_response"),
    3: Row(ResponseClass.OUTAGE, "redirected"),
    4: Row(ResponseClass.REJECTED, "refused"),
    5: Row(ResponseClass.OUTAGE, "service_error"),
}

# Whatever the bodies of such responses are, so they need not be parsed.
ACCEPTED_STATUSES: Final = accepted_statuses(TABLE)

# The codes of outcomes on Android, with their meaning. docs/outcomes.md lists them.
CODES: Final[Mapping[str, str]] = {
    "connection_failed": "There was no connection, or it ended before a response.",
    "foreign_response": "Something between us and FCM refused (4xx without Google's error object).",
    "invalid_argument": "FCM found a field of the message invalid (400).",
    "key_unreadable": "The private key of the stored service account cannot be read.",
    "name_not_resolved": "FCM's host name could not be resolved.",
    "payload_too_large": "The message is too large for FCM (by our count, or 413).",
    "permission_denied": "The service account may not send, or the API is switched off (403).",
    "redirected": "Something between us and FCM returned a redirect, which is not followed.",
    "refused": "FCM refused with a 4xx status that has no code of its own.",
    "sender_id_mismatch": "The registration token belongs to another Firebase project (403).",
    "service_error": "FCM failed (5xx).",
    "third_party_auth": "The token belongs to an iOS or web app, and FCM has no key for it (401).",
    "throttled": "FCM requested a lower rate (429).",
    "timeout": "FCM did not respond in time.",
    "tls_failed": "FCM's certificate or TLS was not acceptable.",
    "token_invalid": "FCM did not issue the registration token or installation id (400).",
    "token_refused": "Google refused the service account an access token.",
    "token_unavailable": "Google's token endpoint could not be reached or failed.",
    "unauthenticated": "FCM refused the access token, and a new one too (401).",
    "unexpected_response": "The response has a status that FCM does not give (1xx, odd 2xx).",
    "unexpected_error": "An error of pushsvc while sending. The log names it.",
    "unregistered": "The app was removed, or its token or installation id replaced (404).",
}

# Codes of a Gone that is `suspect`.
SUSPECT_CODES: Final = suspect_codes(TABLE)
# Codes that blame the channel's credentials if many recipients get them, with the event to log. A
# single one proves nothing, because anyone may subscribe a token that gets such a response.
REFUSAL_EVENTS: Final = {"third_party_auth": "fcm.third_party_auth_by_many"}


# The names of google.rpc.Code, one of which each error object of Google has as `status`
# (https://cloud.google.com/apis/design/errors). Error objects of other servers have none.
_STATUSES: Final = frozenset(
    {
        "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND",
        "ALREADY_EXISTS", "PERMISSION_DENIED", "UNAUTHENTICATED", "RESOURCE_EXHAUSTED",
        "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED", "INTERNAL",
        "UNAVAILABLE", "DATA_LOSS",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _GoogleError:
    """Google's error object, as far as the body has one. `is_googles`: whether it has one."""

    is_googles: bool
    message: str
    details: tuple[Mapping[str, Any], ...]

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> "_GoogleError":
        error = _object(body.get("error"))
        message, details = error.get("message"), error.get("details")
        return cls(
            str(error.get("status")) in _STATUSES,
            message if isinstance(message, str) else "",
            tuple(_object(each) for each in details) if isinstance(details, list) else (),
        )

    def code(self, field: AddressField) -> str:
        """The FcmError's code, or NONE. `field`: in which the address was sent."""
        codes = (each.get("errorCode") for each in self._of_type("google.firebase.fcm.v1.FcmError"))
        code = next((code for code in codes if isinstance(code, str)), NONE)
        may_name = code in {NONE, "INVALID_ARGUMENT"}
        return INVALID_ADDRESS if may_name and self._names(field) else code

    def _names(self, field: AddressField) -> bool:
        """Whether the response is about this address field and nothing else. What it has against
        the other field is no error of the device."""
        if self.message.lower().startswith("the registration token is not a valid"):
            return field == "token"
        lists = (each.get("fieldViolations") for each in self._of_type("google.rpc.BadRequest"))
        fields = {
            _object(violation).get("field")
            for violations in lists
            if isinstance(violations, list)
            for violation in violations
            if isinstance(_object(violation).get("field"), str)
        }
        return fields == {f"message.{field}"}

    def _of_type(self, name: str) -> Iterator[Mapping[str, Any]]:
        return (each for each in self.details if str(each.get("@type")).endswith(f"/{name}"))


def classify(response: Response, now: datetime, field: AddressField) -> Outcome:
    """Total: any status, headers and body give an outcome. `now` is aware. `field`: in which the
    address was sent."""
    body = json_object(response.body)
    error = _GoogleError.of(body)
    code = error.code(field)
    row = look_up(TABLE, FALLBACK, response.status, code, is_vendors=error.is_googles)
    if row == ACCEPTED:
        return Accepted()
    words = error.message or response.body.decode("utf-8", "replace")
    wait = parse_retry_after(response.headers.get("Retry-After"), now)
    return outcome_of(
        row,
        clean_text(f"{response.status} {words}"),
        wait=WAITS.get(row.response_class) if wait is None else wait,
    )


def _object(value: object) -> Mapping[str, Any]:
    """The value if it is a JSON object, else an empty one."""
    return value if isinstance(value, dict) else {}
