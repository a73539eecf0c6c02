"""The modes of a device of the FCM sandbox, of a project and of its token endpoint."""

from collections.abc import Mapping
from enum import StrEnum

from sandbox.answering import BLOCKED, Answer
from sandbox.behaviours import WAIT, Behaviour, Repertoire, is_success, retry_after
from sandbox.fcm import answers


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
    | hang | never answers | |
    | reset | a TCP reset instead of an answer | |
    | close_after_accept | takes the message, then closes without an answer | |
    | endless_body | an answer whose body never ends | status |
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
    | unauthenticated | 401: the access token is refused |
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
    | slow | answers after a while | seconds |
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


_CHOSEN = WAIT | {"status", "body", "headers"}
DEVICE = Repertoire(
    FcmMode,
    options={
        FcmMode.BAD_TOKEN: frozenset({"names_field"}),
        FcmMode.THROTTLED: WAIT,
        FcmMode.INTERNAL: WAIT,
        FcmMode.UNAVAILABLE: WAIT,
        FcmMode.ERROR: _CHOSEN,
        FcmMode.SLOW: frozenset({"seconds"}),
        FcmMode.ENDLESS_BODY: frozenset({"status"}),
    },
    required={FcmMode.ERROR: "status", FcmMode.SLOW: "seconds"},
)
PROJECT = Repertoire(ProjectMode, options={ProjectMode.UNAVAILABLE: WAIT}, required={})
TOKEN = Repertoire(
    TokenMode,
    options={
        TokenMode.THROTTLED: WAIT,
        TokenMode.UNAVAILABLE: WAIT,
        TokenMode.ERROR: _CHOSEN,
        TokenMode.SLOW: frozenset({"seconds"}),
    },
    required={TokenMode.ERROR: "status", TokenMode.SLOW: "seconds"},
)


def device_answer(behaviour: Behaviour, *, field: str, accepted: Answer, now: float) -> Answer:
    """The answer of the mode. `field`: of the message's address. `accepted` is the answer of a mode
    that has none."""
    wait = retry_after(behaviour, now)
    match behaviour.mode:
        case FcmMode.UNREGISTERED:
            return answers.unregistered()
        case FcmMode.BAD_TOKEN:
            return answers.bad_address(field, names_field=behaviour.names_field)
        case FcmMode.INVALID_ARGUMENT:
            return answers.invalid_argument("message.notification", "Chosen by the user")
        case FcmMode.SENDER_MISMATCH:
            return answers.sender_id_mismatch()
        case FcmMode.THIRD_PARTY_AUTH:
            return answers.third_party_auth()
        case FcmMode.THROTTLED:
            return answers.quota_exceeded(wait)
        case FcmMode.INTERNAL:
            return answers.internal(wait)
        case FcmMode.UNAVAILABLE:
            return answers.unavailable(wait)
        case FcmMode.ERROR:
            return _chosen(behaviour, wait)
        case _:
            return accepted


def project_answer(behaviour: Behaviour, project: str, *, now: float) -> Answer | None:
    """The answer of the mode, or None if the message reaches its device."""
    match behaviour.mode:
        case ProjectMode.UNAUTHENTICATED:
            return answers.unauthenticated("ACCESS_TOKEN_EXPIRED")
        case ProjectMode.PERMISSION_DENIED:
            return answers.permission_denied(project)
        case ProjectMode.SERVICE_DISABLED:
            return answers.service_disabled(project)
        case ProjectMode.BLOCKED:
            return BLOCKED
        case ProjectMode.UNAVAILABLE:
            return answers.unavailable(retry_after(behaviour, now))
        case _:
            return None


def token_answer(behaviour: Behaviour, *, now: float) -> Answer | None:
    """The answer of the mode, or None if it grants an access token."""
    wait = retry_after(behaviour, now)
    match behaviour.mode:
        case TokenMode.INVALID_GRANT:
            return answers.invalid_grant("Invalid grant: account not found")
        case TokenMode.UNAUTHORIZED_CLIENT:
            return answers.oauth_error(401, "unauthorized_client", "Unauthorized")
        case TokenMode.BLOCKED:
            return BLOCKED
        case TokenMode.THROTTLED:
            return answers.oauth_error(429, "rate_limit_exceeded", "Too many requests", wait)
        case TokenMode.UNAVAILABLE:
            return answers.oauth_error(503, "temporarily_unavailable", "Try again", wait)
        case TokenMode.ERROR:
            return _chosen(behaviour, wait)
        case _:
            return None


def _chosen(behaviour: Behaviour, wait: Mapping[str, str]) -> Answer:
    status = behaviour.status
    return Answer(
        status,
        behaviour.body or "",
        {"Content-Type": "application/json; charset=UTF-8", **wait, **behaviour.headers},
        taken=is_success(status),
    )
