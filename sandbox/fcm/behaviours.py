"""The modes of a device of the FCM sandbox, of a project and of its token endpoint."""

from enum import StrEnum

from sandbox.behaviours import WAIT, Behaviour, Repertoire, chosen, retry_after
from sandbox.fcm import responses
from sandbox.responses import BLOCKED, Response


class FcmMode(StrEnum):
    """What the next valid messages to a device meet.

    | mode | what happens | options |
    |---|---|---|
    | accept | 200 with the message's name | |
    | unregistered | 404 UNREGISTERED | |
    | bad_token | 400 INVALID_ARGUMENT that names the token or FID | names_field |
    | invalid_argument | 400 INVALID_ARGUMENT that names another field | |
    | sender_mismatch | 403 SENDER_ID_MISMATCH | |
    | third_party_auth | 401 THIRD_PARTY_AUTH_ERROR | |
    | throttled | 429 QUOTA_EXCEEDED | retry_after, as_date |
    | internal | 500 INTERNAL | retry_after, as_date |
    | unavailable | 503 UNAVAILABLE | retry_after, as_date |
    | error | any status, headers and body | status, headers, body, retry_after, as_date |
    | slow | accepts after a while | seconds |
    | hang | never responds | |
    | reset | a TCP reset instead of a response | |
    | close_after_accept | takes the message, then closes without a response | |
    | endless_body | a response whose body never ends | status |
    | garbage | bytes that are not HTTP | |

    `retry_after` is in seconds; with `as_date` the same moment is sent as an HTTP date. With
    `names_field`, a field violation names a bad token; without it, the message does.
    """

    ACCEPT = "accept"
    UNREGISTERED = "unregistered"
    BAD_TOKEN = "bad_token"  # noqa: S105
    INVALID_ARGUMENT = "invalid_argument"
    SENDER_MISMATCH = "sender_mismatch"
    THIRD_PARTY_AUTH = "third_party_auth"
    THROTTLED = "throttled"
    INTERNAL = "internal"
    UNAVAILABLE = "unavailable"
    ERROR = "error"
    SLOW = "slow"
    HANG = "hang"
    RESET = "reset"
    CLOSE_AFTER_ACCEPT = "close_after_accept"
    ENDLESS_BODY = "endless_body"
    GARBAGE = "garbage"


class ProjectMode(StrEnum):
    """What the next messages of a project meet before FCM looks at them.

    | mode | what happens |
    |---|---|
    | accept | they go on to their devices |
    | unauthenticated | 401: the access token is rejected |
    | permission_denied | 403: the account lacks the permission |
    | service_disabled | 403: the API is switched off |
    | blocked | 403 with a page of HTML, from a proxy in front of FCM |
    | unavailable | 503 UNAVAILABLE, with the options retry_after and as_date |
    """

    ACCEPT = "accept"
    UNAUTHENTICATED = "unauthenticated"
    PERMISSION_DENIED = "permission_denied"
    SERVICE_DISABLED = "service_disabled"
    BLOCKED = "blocked"
    UNAVAILABLE = "unavailable"


class TokenMode(StrEnum):
    """What the next requests for an access token meet.

    | mode | what happens | options |
    |---|---|---|
    | accept | 200 with an access token | |
    | invalid_grant | 400: the account was deleted or its key revoked | |
    | unauthorized_client | 401 | |
    | blocked | 403 with a page of HTML, from a proxy in front of the token endpoint | |
    | throttled, unavailable | 429, 503 | retry_after, as_date |
    | error | any status, headers and body | status, headers, body, retry_after, as_date |
    | slow | responds after a while | seconds |
    | hang, reset, garbage | as with a device | |
    """

    ACCEPT = "accept"
    INVALID_GRANT = "invalid_grant"
    UNAUTHORIZED_CLIENT = "unauthorized_client"
    BLOCKED = "blocked"
    THROTTLED = "throttled"
    UNAVAILABLE = "unavailable"
    ERROR = "error"
    SLOW = "slow"
    HANG = "hang"
    RESET = "reset"
    GARBAGE = "garbage"


DEVICE = Repertoire(
    FcmMode, {FcmMode.BAD_TOKEN: frozenset({"names_field"}), FcmMode.INTERNAL: WAIT}
)
PROJECT = Repertoire(ProjectMode)
TOKEN = Repertoire(TokenMode)


def device_response(
    behaviour: Behaviour, *, field: str, accepted: Response, now: float
) -> Response:
    """The response of the mode. `field`: of the message's address. `accepted` is the response of
    a mode that has none."""
    wait = retry_after(behaviour, now)
    match behaviour.mode:
        case FcmMode.UNREGISTERED:
            return responses.unregistered()
        case FcmMode.BAD_TOKEN:
            return responses.bad_address(field, names_field=behaviour.names_field)
        case FcmMode.INVALID_ARGUMENT:
            return responses.invalid_argument("message.notification", "Chosen by the user")
        case FcmMode.SENDER_MISMATCH:
            return responses.sender_id_mismatch()
        case FcmMode.THIRD_PARTY_AUTH:
            return responses.third_party_auth()
        case FcmMode.THROTTLED:
            return responses.quota_exceeded(wait)
        case FcmMode.INTERNAL:
            return responses.internal(wait)
        case FcmMode.UNAVAILABLE:
            return responses.unavailable(wait)
        case FcmMode.ERROR:
            return chosen(behaviour, responses.EMPTY, now)
        case _:
            return accepted


def project_response(behaviour: Behaviour, project: str, *, now: float) -> Response | None:
    """The response of the mode, or None if the message reaches its device."""
    match behaviour.mode:
        case ProjectMode.UNAUTHENTICATED:
            return responses.unauthenticated("ACCESS_TOKEN_EXPIRED")
        case ProjectMode.PERMISSION_DENIED:
            return responses.permission_denied(project)
        case ProjectMode.SERVICE_DISABLED:
            return responses.service_disabled(project)
        case ProjectMode.BLOCKED:
            return BLOCKED
        case ProjectMode.UNAVAILABLE:
            return responses.unavailable(retry_after(behaviour, now))
        case _:
            return None


def token_response(behaviour: Behaviour, *, now: float) -> Response | None:
    """The response of the mode, or None if it grants an access token."""
    wait = retry_after(behaviour, now)
    match behaviour.mode:
        case TokenMode.INVALID_GRANT:
            return responses.invalid_grant("Invalid grant: account not found")
        case TokenMode.UNAUTHORIZED_CLIENT:
            return responses.oauth_error(401, "unauthorized_client", "Unauthorized")
        case TokenMode.BLOCKED:
            return BLOCKED
        case TokenMode.THROTTLED:
            return responses.oauth_error(429, "rate_limit_exceeded", "Too many requests", wait)
        case TokenMode.UNAVAILABLE:
            return responses.oauth_error(503, "temporarily_unavailable", "Try again", wait)
        case TokenMode.ERROR:
            return chosen(behaviour, responses.EMPTY, now)
        case _:
            return None
