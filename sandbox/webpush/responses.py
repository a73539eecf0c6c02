"""The responses of the web push sandbox.

Errors have the format, numbers and headers of Mozilla's autopush (autopush-rs: docs/src/errors.md,
autoendpoint/src/error.rs). Errors without a number there have `errno: null`.
"""

import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Final

from sandbox.responses import RejectedError, Response

_MORE_INFO = "http://autopush.readthedocs.io/en/latest/http.html#error-codes"


def rejected(
    status: int, errno: int | None, message: str, headers: Mapping[str, str] | None = None
) -> RejectedError:
    return RejectedError(error_response(status, errno, message, headers))


def error_response(
    status: int, errno: int | None, message: str, headers: Mapping[str, str] | None = None
) -> Response:
    body = {
        "code": status,
        "errno": errno,
        "error": _phrase(status),
        "message": message,
        "more_info": _MORE_INFO,
    }
    return Response(
        status, json.dumps(body), {"Content-Type": "application/json"} | dict(headers or {})
    )


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""


def not_found() -> Response:
    return error_response(404, 102, "Invalid token")


def gone() -> Response:
    return error_response(410, 106, "No such subscription", {"Cache-Control": "max-age=86400"})


def too_large(limit: int) -> Response:
    return error_response(413, 104, f"Body is larger than {limit} bytes")


def too_large_for_bridge(excess: int) -> Response:
    """autopush-rs: autoendpoint/src/routers/mod.rs."""
    return error_response(
        413,
        104,
        "This message is intended for a constrained device and is limited in size. "
        f"Converted buffer is too long by {excess} bytes",
    )


# The responses of other services to a restricted subscription with another VAPID key.
KEY_MISMATCHES: Final[Mapping[str, Response]] = {
    # Apple, "Sending web push notifications in web apps and browsers", table of reasons.
    "apple": Response(
        400, '{"reason":"VapidPkHashMismatch"}', {"Content-Type": "application/json"}
    ),
    # autopush-rs, autoendpoint/src/headers/vapid.rs (`VapidError::KeyMismatch`).
    "mozilla": error_response(401, 109, "VAPID public key mismatch"),
    # Microsoft, "Troubleshooting push notifications", 403; the texts are those that senders report.
    "wns": Response(
        403,
        headers={
            "X-WNS-NotificationStatus": "dropped",
            "X-WNS-Error-Description": "Channel URL incompatible with caller app",
        },
    ),
}
