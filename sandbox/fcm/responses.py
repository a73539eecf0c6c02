"""The responses of the FCM sandbox.

Errors are Google's error object (https://cloud.google.com/apis/design/errors) with the details
that FCM adds (https://firebase.google.com/docs/reference/fcm/rest/v1/ErrorCode). Errors of the
token endpoint are OAuth's (RFC 6749 section 5.2). The texts are those that senders report.
"""

import json
from collections.abc import Mapping

from sandbox.responses import Response

_TYPES = "type.googleapis.com"
_JSON = {"Content-Type": "application/json; charset=UTF-8"}
EMPTY = Response(200, headers=_JSON)

_BAD_ADDRESS = {
    "token": "Invalid registration token",
    "fid": "Invalid Firebase installation ID",
}

Detail = Mapping[str, object]


def ok(body: Mapping[str, object], *, taken: bool = False) -> Response:
    return Response(200, json.dumps(body), _JSON, taken)


def error(
    status: int,
    name: str,
    message: str,
    *details: Detail,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """`name` is a name of google.rpc.Code."""
    body = {"code": status, "message": message, "status": name, "details": details}
    return Response(status, json.dumps({"error": body}), _JSON | dict(headers or {}))


def fcm_error(code: str) -> Detail:
    return {"@type": f"{_TYPES}/google.firebase.fcm.v1.FcmError", "errorCode": code}


def _violation(field: str, description: str) -> Detail:
    violations = [{"field": field, "description": description}]
    return {"@type": f"{_TYPES}/google.rpc.BadRequest", "fieldViolations": violations}


def _error_info(reason: str) -> Detail:
    return {
        "@type": f"{_TYPES}/google.rpc.ErrorInfo",
        "reason": reason,
        "domain": "googleapis.com",
        "metadata": {"service": "fcm.googleapis.com"},
    }


def unreadable(description: str, field: str = "") -> Response:
    """The response of Google's frontend if the JSON does not have the request's type."""
    return error(400, "INVALID_ARGUMENT", description, _violation(field, description))


def invalid_argument(field: str, description: str) -> Response:
    """The response of FCM if it rejects the message."""
    details = fcm_error("INVALID_ARGUMENT"), _violation(field, description)
    return error(400, "INVALID_ARGUMENT", description, *details)


def bad_address(field: str, *, names_field: bool = False) -> Response:
    """The response for a bad address. FCM names a token in the error's message or, with
    `names_field`, in a field violation. What it returns for a FID is not documented: here it is a
    field violation."""
    code = fcm_error("INVALID_ARGUMENT")
    if names_field or field != "token":
        text = "Request contains an invalid argument."
        detail = _violation(f"message.{field}", _BAD_ADDRESS[field])
        return error(400, "INVALID_ARGUMENT", text, detail, code)
    text = "The registration token is not a valid FCM registration token"
    return error(400, "INVALID_ARGUMENT", text, code)


def unregistered() -> Response:
    text = "Requested entity was not found."
    return error(404, "NOT_FOUND", text, fcm_error("UNREGISTERED"))


def sender_id_mismatch() -> Response:
    return error(403, "PERMISSION_DENIED", "SenderId mismatch", fcm_error("SENDER_ID_MISMATCH"))


def third_party_auth() -> Response:
    text = "Auth error from APNS or Web Push Service"
    return error(401, "UNAUTHENTICATED", text, fcm_error("THIRD_PARTY_AUTH_ERROR"))


def quota_exceeded(headers: Mapping[str, str]) -> Response:
    text = "Quota exceeded for quota metric 'Message send requests' per minute."
    return error(429, "RESOURCE_EXHAUSTED", text, fcm_error("QUOTA_EXCEEDED"), headers=headers)


def internal(headers: Mapping[str, str]) -> Response:
    text = "Internal error encountered."
    return error(500, "INTERNAL", text, fcm_error("INTERNAL"), headers=headers)


def unavailable(headers: Mapping[str, str]) -> Response:
    text = "The service is currently unavailable."
    return error(503, "UNAVAILABLE", text, fcm_error("UNAVAILABLE"), headers=headers)


def unauthenticated(reason: str = "ACCESS_TOKEN_EXPIRED") -> Response:
    text = (
        "Request had invalid authentication credentials. Expected OAuth 2 access token, login "
        "cookie or other valid authentication credential."
    )
    headers = {"WWW-Authenticate": 'Bearer realm="https://accounts.google.com/"'}
    return error(401, "UNAUTHENTICATED", text, _error_info(reason), headers=headers)


def insufficient_scope() -> Response:
    text = "Request had insufficient authentication scopes."
    reason = "ACCESS_TOKEN_SCOPE_INSUFFICIENT"
    return error(403, "PERMISSION_DENIED", text, _error_info(reason))


def permission_denied(project: str) -> Response:
    text = (
        "Permission 'cloudmessaging.messages.create' denied on resource "
        f"'//cloudresourcemanager.googleapis.com/projects/{project}' (or it may not exist)."
    )
    return error(403, "PERMISSION_DENIED", text, _error_info("IAM_PERMISSION_DENIED"))


def service_disabled(project: str) -> Response:
    text = (
        f"Firebase Cloud Messaging API has not been used in project {project} before or it is "
        "disabled."
    )
    return error(403, "PERMISSION_DENIED", text, _error_info("SERVICE_DISABLED"))


def oauth_error(
    status: int, code: str, description: str, headers: Mapping[str, str] | None = None
) -> Response:
    body = {"error": code, "error_description": description}
    return Response(status, json.dumps(body), _JSON | dict(headers or {}))


def invalid_grant(description: str) -> Response:
    return oauth_error(400, "invalid_grant", description)
