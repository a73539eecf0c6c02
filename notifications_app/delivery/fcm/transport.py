"""Android (FCM HTTP v1): one POST for each message and registration token.

firebase-admin builds and encodes the message; the call is ours, because its own clients block or
cost nine times the CPU. https://firebase.google.com/docs/reference/fcm/rest/v1/projects.messages.
"""

import asyncio
import json
import logging
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

import aiohttp
from firebase_admin import messaging
from firebase_admin._messaging_encoder import MessageEncoder

from notifications_app.delivery.fcm.access_token import (
    TOKEN_URI,
    AccessTokens,
    AccountUnreadableError,
    ServiceAccount,
)
from notifications_app.delivery.fcm.answers import (
    CODES,
    RETRY_AFTER_OUTAGE,
    UNAUTHENTICATED,
    classify,
)
from notifications_app.delivery.types import (
    Deferred,
    Message,
    Misconfigured,
    Outcome,
    Rejected,
    Target,
)
from pushsvc.common.egress import plain_session, post, tls_context

__all__ = [
    "API_BASE",
    "CODES",
    "MAX_PAYLOAD",
    "TOKEN_URI",
    "AccountUnreadableError",
    "Client",
    "Request",
    "ServiceAccount",
    "build_request",
    "classify",
    "payload",
    "unusable_data_names",
]

logger = logging.getLogger(__name__)

API_BASE: Final = "https://fcm.googleapis.com"
MAX_PAYLOAD: Final = 4_096
MAX_TTL: Final = 2_419_200
CONNECT_TIMEOUT: Final = 5.0
# Idle connections: long enough for the next batch to find them.
KEEPALIVE: Final = 30.0
# Names in `data` that are ours, that FCM refuses ("from", "google.…", "gcm.…"), or that its Android
# library keeps from the app ("message_type", "collapse_key").
_OWN_NAMES: Final = frozenset({"notification_id", "url", "icon", "token"})
_RESERVED_NAMES: Final = frozenset({"from", "message_type", "collapse_key"})
_RESERVED_PREFIXES: Final = ("google.", "gcm.")
# No app has this registration token: FCM refuses it, once it has accepted the account.
NO_DEVICE: Final = "pushsvc-credential-test"
_ENCODER: Final = MessageEncoder()


@dataclass(frozen=True, slots=True)
class Request:
    url: str
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)


class PayloadTooLargeError(ValueError):
    """More than MAX_PAYLOAD bytes."""


def unusable_data_names(data: Mapping[str, str]) -> list[str]:
    """Names that a sender's `data` cannot have on Android."""
    return [
        name
        for name in data
        if name in _OWN_NAMES | _RESERVED_NAMES or name.startswith(_RESERVED_PREFIXES)
    ]


def payload(message: Message, token: str) -> bytes:
    """What the app gets, notification and data, as JSON without absent fields.

    Google does not say what its limit counts; this is more than all names and values together.
    """
    # Its size depends on neither.
    return _app_part(_encoded(message, Target(message.notification_id, "-", token), 0))


def build_request(
    message: Message, target: Target, project_url: str, access_token: str, now: float
) -> Request:
    """The request for `target`; `project_url` is FCM's for the project, without a method. `now` is
    on the clock of `message.expires_at`. Raises PayloadTooLargeError."""
    encoded = _encoded(message, target, _ttl(message, now))
    body = _json({"message": encoded})
    if len(body) > MAX_PAYLOAD and len(_app_part(encoded)) > MAX_PAYLOAD:
        raise PayloadTooLargeError
    headers = {
        "Authorization": f"Bearer {access_token}",
        "Content-Type": "application/json; charset=UTF-8",
        # Errors with their details, as Google's own libraries ask for them.
        "X-GOOG-API-FORMAT-VERSION": "2",
    }
    return Request(f"{project_url}/messages:send", headers, body)


def _encoded(message: Message, target: Target, ttl: int) -> dict[str, Any]:
    built = messaging.Message(
        notification=messaging.Notification(
            title=message.content.title or None,
            body=message.content.body,
            image=message.content.image or message.content.icon or None,
        ),
        data=_data(message, target.token),
        android=messaging.AndroidConfig(
            collapse_key=message.content.topic or None,
            priority="high" if message.content.urgency in {"normal", "high"} else "normal",
            ttl=ttl,
            # One notification is shown once, however often it arrives.
            notification=messaging.AndroidNotification(tag=str(message.notification_id)),
        ),
    )
    # As an argument it is deprecated, in favour of installation ids, which apps do not send us.
    built.token = target.address
    encoded: dict[str, Any] = _ENCODER.default(built)
    # The library writes small letters; FCM's reference has only capitals.
    encoded["android"]["priority"] = encoded["android"]["priority"].upper()
    return encoded


def _data(message: Message, token: str) -> dict[str, str]:
    """Our names win over the sender's."""
    own = {
        "notification_id": str(message.notification_id),
        "url": message.content.url,
        "icon": message.content.icon,
        "token": token,
    }
    return {**message.content.data, **{name: value for name, value in own.items() if value}}


def _app_part(encoded: Mapping[str, Any]) -> bytes:
    return _json({name: encoded[name] for name in ("notification", "data")})


def _ttl(message: Message, now: float) -> int:
    return min(max(1, math.ceil(message.expires_at - now)), MAX_TTL) if message.content.ttl else 0


def _json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


class Client:
    """Connections to FCM and to Google's token endpoint. Made and used inside one event loop.

    `ca_file`: authorities trusted beside the system's. `call_timeout`, in seconds, spans a whole
    call, the wait for an access token included. A call that finds `connections_per_origin` others
    under way waits for one to end, within its own timeout, so callers keep below.
    """

    def __init__(
        self,
        *,
        api_base: str = API_BASE,
        token_uri: str = TOKEN_URI,
        ca_file: str = "",
        call_timeout: float = 10.0,
        connections_per_origin: int = 100,
    ) -> None:
        self._api_base = api_base.rstrip("/")
        self._call_timeout = call_timeout
        self._limits = _limits(call_timeout)
        self._session = plain_session(
            tls_context(ca_file),
            connections_per_origin=connections_per_origin,
            keepalive=KEEPALIVE,
        )
        # Half, so that who waits for a token still learns why there is none.
        self._tokens = AccessTokens(self._session, token_uri, _limits(call_timeout / 2))

    async def send(self, message: Message, target: Target, account: ServiceAccount) -> Outcome:
        """One attempt, one outcome. Raises nothing but CancelledError.

        Misconfigured is about the credentials alone: the message was not taken.
        """
        try:
            async with asyncio.timeout(self._call_timeout):
                return await self._send(message, target, account)
        except Exception as error:  # noqa: BLE001 - one recipient must not stop its batch
            return _outcome_of(error)

    async def close(self) -> None:
        await self._tokens.close()
        await self._session.close()

    async def _send(self, message: Message, target: Target, account: ServiceAccount) -> Outcome:
        outcome = await self._try(message, target, account)
        if not _is_unauthenticated(outcome):
            return outcome
        # Revoked before its time, or our clock stood still: with a new one it is known which.
        return await self._try(message, target, account)

    async def _try(self, message: Message, target: Target, account: ServiceAccount) -> Outcome:
        token = await self._tokens.get(account)
        if not isinstance(token, str):
            return token
        url = f"{self._api_base}/v1/projects/{account.project_id}"
        request = build_request(message, target, url, token, time.monotonic())
        response = await post(
            self._session,
            request.url,
            headers=request.headers,
            body=request.body,
            limits=self._limits,
        )
        outcome = classify(response, datetime.fromtimestamp(time.time(), UTC))
        if _is_unauthenticated(outcome):
            self._tokens.refuse(account, token)
        return outcome


def _is_unauthenticated(outcome: Outcome) -> bool:
    return isinstance(outcome, Misconfigured) and outcome.code == UNAUTHENTICATED


def _limits(total: float) -> aiohttp.ClientTimeout:
    # By default aiohttp rounds timeouts over 5 s up to whole seconds of the loop's clock.
    return aiohttp.ClientTimeout(total=total, sock_connect=CONNECT_TIMEOUT, ceil_threshold=math.inf)


def _outcome_of(error: Exception) -> Outcome:
    """What it means that there is no answer."""
    match error:
        case PayloadTooLargeError():
            return Rejected("payload_too_large", f"more than {MAX_PAYLOAD} bytes")
        case TimeoutError():
            return _unreached("timeout")
        case aiohttp.ClientConnectorDNSError():
            return _unreached("name_not_resolved")
        case aiohttp.ClientSSLError():
            return _unreached("tls_failed")
        case aiohttp.ClientError() | OSError():
            return _unreached("connection_failed", type(error).__name__)
        case _:
            # Neither text nor traceback: they may hold the registration token.
            logger.error("android.unexpected_error", extra={"error": type(error).__name__})
            return Deferred("unexpected_error", type(error).__name__)


def _unreached(code: str, detail: str = "") -> Deferred:
    return Deferred(code, detail, RETRY_AFTER_OUTAGE, outage=True)
