"""What FCM's answer means. The table is tested row by row; docs/fcm.md shows it.

https://firebase.google.com/docs/reference/fcm/rest/v1/ErrorCode and
https://firebase.google.com/docs/cloud-messaging/scale-fcm.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
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
    THROTTLED = auto()
    OUTAGE = auto()
    REJECTED = auto()
    GONE = auto()
    SUSPECT = auto()
    MISCONFIGURED = auto()


# Instead of an FcmError's code: there is none, or whatever it is.
NONE: Final = ""
ANY: Final = "*"
# INVALID_ARGUMENT that is about the registration token and nothing else.
INVALID_TOKEN: Final = "INVALID_ARGUMENT message.token"  # noqa: S105
UNAUTHENTICATED: Final = "unauthenticated"

# Seconds to wait where FCM does not say (scale-fcm, "Handling retries").
RETRY_AFTER_THROTTLED: Final = 60.0
RETRY_AFTER_OUTAGE: Final = 10.0

# By status and by the code of the FcmError among the details.
TABLE: Final[Mapping[tuple[int, str], tuple[Verdict, str]]] = {
    (200, ANY): (Verdict.ACCEPTED, ""),
    (400, "INVALID_ARGUMENT"): (Verdict.REJECTED, "invalid_argument"),
    (400, INVALID_TOKEN): (Verdict.GONE, "token_invalid"),
    # Google's frontend cannot read the request: the error has no FcmError then.
    (400, NONE): (Verdict.REJECTED, "invalid_argument"),
    # The access token: expired, or the account's key was revoked.
    (401, NONE): (Verdict.MISCONFIGURED, UNAUTHENTICATED),
    # The app is one for iOS or the web, and the Firebase project lacks Apple's or the web push key.
    # Anyone may subscribe such a token, hence never a fault of the channel.
    (401, "THIRD_PARTY_AUTH_ERROR"): (Verdict.REJECTED, "third_party_auth"),
    (401, "APNS_AUTH_ERROR"): (Verdict.REJECTED, "third_party_auth"),  # its name until 2019
    # The API is switched off, or the account lacks the permission cloudmessaging.messages.create.
    (403, NONE): (Verdict.MISCONFIGURED, "permission_denied"),
    # A token of another project: for ever, unless it was we who mixed up the credentials.
    (403, "SENDER_ID_MISMATCH"): (Verdict.SUSPECT, "sender_id_mismatch"),
    (404, "UNREGISTERED"): (Verdict.GONE, "unregistered"),
    (408, ANY): (Verdict.OUTAGE, "timeout"),
    (413, ANY): (Verdict.REJECTED, "payload_too_large"),
    (429, ANY): (Verdict.THROTTLED, "throttled"),
    (500, "INTERNAL"): (Verdict.OUTAGE, "service_error"),
    (503, "UNAVAILABLE"): (Verdict.OUTAGE, "service_error"),
}
# By the status's hundreds, where the table has no row (RFC 9110 section 15). What is outside 100 to
# 599 counts as 5xx there. FCM never redirects: whatever does stands between it and us.
FALLBACK: Final[Mapping[int, tuple[Verdict, str]]] = {
    1: (Verdict.REJECTED, "unexpected_answer"),
    2: (Verdict.REJECTED, "unexpected_answer"),
    3: (Verdict.OUTAGE, "redirected"),
    4: (Verdict.REJECTED, "refused"),
    5: (Verdict.OUTAGE, "service_error"),
}

# What a delivery's `code` can be on Android, for docs/fcm.md.
CODES: Final[Mapping[str, str]] = {
    "connection_failed": "No connection, or it broke off before an answer.",
    "invalid_argument": "FCM found a field of the message invalid (400).",
    "key_unreadable": "The private key of the stored service account cannot be read.",
    "name_not_resolved": "FCM's host name could not be resolved.",
    "payload_too_large": "The message is too large, by our count or FCM's.",
    "permission_denied": "The service account may not send, or the API is switched off (403).",
    "redirected": "Something between us and FCM answered with a redirect, which is not followed.",
    "refused": "FCM refused with a 4xx status that says nothing more definite.",
    "sender_id_mismatch": "The registration token belongs to another Firebase project (403).",
    "service_error": "FCM failed (5xx).",
    "third_party_auth": "The token is one for iOS or web, for which FCM lacks the key (401).",
    "throttled": "FCM asked to slow down (429).",
    "timeout": "FCM did not answer in time.",
    "tls_failed": "FCM's certificate or TLS was not acceptable.",
    "token_invalid": "The registration token is not one of FCM's (400).",
    "token_refused": "Google refused the service account an access token.",
    "token_unavailable": "Google's token endpoint could not be reached or failed.",
    "unauthenticated": "FCM refused the access token, a new one too (401).",
    "unexpected_answer": "The answer has a status that FCM does not give (1xx, odd 2xx).",
    "unexpected_error": "A fault of ours while sending; the log names it.",
    "unregistered": "The app was removed, or its token replaced (404).",
}

# Codes of a Gone that is `suspect`.
SUSPECT_CODES: Final = frozenset({"sender_id_mismatch"})
# FCM was not asked, or nobody knows whether it was.
NEVER_ASKED_CODES: Final = frozenset({"key_unreadable", "unexpected_error"})
# Codes that blame the channel's keys, each with the event to log when FCM gives it to many. One
# token proves nothing: anyone may subscribe one that is answered so.
REFUSAL_EVENTS: Final = {"third_party_auth": "fcm.third_party_auth_by_many"}


@dataclass(frozen=True, slots=True)
class _Said:
    """Google's error object, as far as it is one."""

    message: str
    details: tuple[Mapping[str, Any], ...]

    @classmethod
    def of(cls, body: bytes) -> "_Said":
        error = _object(_json(body).get("error"))
        message, details = error.get("message"), error.get("details")
        return cls(
            message if isinstance(message, str) else "",
            tuple(_object(each) for each in details) if isinstance(details, list) else (),
        )

    @property
    def code(self) -> str:
        """Of the FcmError, NONE without one."""
        codes = (each.get("errorCode") for each in self._of_type("google.firebase.fcm.v1.FcmError"))
        code = next((code for code in codes if isinstance(code, str)), NONE)
        may_name = code in {NONE, "INVALID_ARGUMENT"}
        return INVALID_TOKEN if may_name and self._names_token() else code

    def _names_token(self) -> bool:
        if self.message.lower().startswith("the registration token is not a valid"):
            return True
        lists = (each.get("fieldViolations") for each in self._of_type("google.rpc.BadRequest"))
        fields = {
            _object(violation).get("field")
            for violations in lists
            if isinstance(violations, list)
            for violation in violations
            if isinstance(_object(violation).get("field"), str)
        }
        return fields == {"message.token"}

    def _of_type(self, name: str) -> Iterator[Mapping[str, Any]]:
        return (each for each in self.details if str(each.get("@type")).endswith(f"/{name}"))


def classify(response: Response, now: datetime) -> Outcome:
    """Total: any status, headers and body give an outcome. `now` is aware."""
    said = _Said.of(response.body)
    verdict, code = _verdict(response.status, said.code)
    words = said.message or response.body.decode("utf-8", "replace")
    detail = clean_text(f"{response.status} {words}")
    wait = parse_retry_after(response.headers.get("Retry-After"), now)
    match verdict:
        case Verdict.ACCEPTED:
            return Accepted(_provider_id(response.body))
        case Verdict.THROTTLED:
            return Deferred(code, detail, RETRY_AFTER_THROTTLED if wait is None else wait)
        case Verdict.OUTAGE:
            return Deferred(code, detail, RETRY_AFTER_OUTAGE if wait is None else wait, outage=True)
        case Verdict.REJECTED:
            return Rejected(code, detail)
        case Verdict.GONE:
            return Gone(code, detail)
        case Verdict.SUSPECT:
            return Gone(code, detail, suspect=True)
        case Verdict.MISCONFIGURED:
            return Misconfigured(code, detail)
        case _:
            assert_never(verdict)


def _verdict(status: int, code: str) -> tuple[Verdict, str]:
    return (
        TABLE.get((status, code))
        or TABLE.get((status, ANY))
        or FALLBACK.get(status // 100, FALLBACK[5])
    )


def _provider_id(body: bytes) -> str:
    """The last part of the message's name, `projects/…/messages/…`."""
    name = _json(body).get("name")
    return clean_text(name.rsplit("/", 1)[-1]) if isinstance(name, str) else ""


def _json(body: bytes) -> Mapping[str, Any]:
    try:
        return _object(json.loads(body))
    except (ValueError, RecursionError):  # RecursionError: 4 KiB of brackets
        return {}


def _object(value: object) -> Mapping[str, Any]:
    """The JSON object, or an empty one where the value is none."""
    return value if isinstance(value, dict) else {}
