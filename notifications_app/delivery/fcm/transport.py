"""Android (FCM HTTP v1): one POST for each message and registration token.

We make the call, because firebase-admin's clients block the event loop or take nine times the
processor time.
https://firebase.google.com/docs/reference/fcm/rest/v1/projects.messages.
"""

import asyncio
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from typing_extensions import override

from notifications_app.delivery.answers import AnswerClass
from notifications_app.delivery.client import (
    KEEPALIVE,
    PayloadTooLargeError,
    Request,
    compact_json,
)
from notifications_app.delivery.client import Client as BaseClient
from notifications_app.delivery.fcm.access_token import (
    TOKEN_URI,
    AccessTokens,
    AccountUnreadableError,
    ServiceAccount,
)
from notifications_app.delivery.fcm.answers import CODES, UNAUTHENTICATED, WAITS, classify
from notifications_app.delivery.fcm.message import encoded
from notifications_app.delivery.types import Message, Misconfigured, Outcome, Target
from pushsvc.common.egress import tls_context
from pushsvc.common.http_client import HttpClient

__all__ = [
    "API_BASE",
    "CODES",
    "MAX_PAYLOAD",
    "TOKEN_URI",
    "AccountUnreadableError",
    "Client",
    "ServiceAccount",
    "build_request",
    "classify",
    "payload",
    "unusable_data_names",
]

API_BASE: Final = "https://fcm.googleapis.com"
MAX_PAYLOAD: Final = 4_096
MAX_TTL: Final = 2_419_200
# Reserved names in `data`: our own, those that FCM refuses ("from", "google.…", "gcm.…"), and those
# that its Android library does not pass to the app ("message_type", "collapse_key").
_OWN_NAMES: Final = frozenset({"notification_id", "url", "icon", "token"})
_RESERVED_NAMES: Final = frozenset({"from", "message_type", "collapse_key"})
_RESERVED_PREFIXES: Final = ("google.", "gcm.")
# A token that no app has. FCM refuses it only after it has accepted the account.
NO_DEVICE: Final = "pushsvc-credential-test"


def unusable_data_names(data: Mapping[str, str]) -> list[str]:
    """The names in a sender's `data` that are reserved on Android."""
    return [
        name
        for name in data
        if name in _OWN_NAMES | _RESERVED_NAMES or name.startswith(_RESERVED_PREFIXES)
    ]


def payload(message: Message, token: str) -> bytes:
    """What the app gets, notification and data, as JSON without absent fields.

    Google does not document what its limit counts. This is more than all names and values.
    """
    # The size depends neither on the address nor on the time to live.
    return _app_part(encoded(message, Target(message.notification_id, "-", token), 0))


def build_request(
    message: Message, target: Target, project_url: str, access_token: str, now: float
) -> Request:
    """The request for `target`. `project_url` is the project's URL, without a method. `now` is on
    the clock of `message.expires_at`. Raises PayloadTooLargeError."""
    whole = encoded(message, target, min(message.time_to_live(now), MAX_TTL))
    body = compact_json({"message": whole})
    if len(body) > MAX_PAYLOAD and len(_app_part(whole)) > MAX_PAYLOAD:
        raise PayloadTooLargeError(MAX_PAYLOAD)
    headers = {
        "Authorization": f"Bearer {access_token}",
        "Content-Type": "application/json; charset=UTF-8",
        # Asks for errors with details, as Google's libraries do.
        "X-GOOG-API-FORMAT-VERSION": "2",
    }
    return Request(f"{project_url}/messages:send", headers, body)


def _app_part(whole: Mapping[str, Any]) -> bytes:
    return compact_json({name: whole[name] for name in ("notification", "data")})


class Client(BaseClient[Target, ServiceAccount]):
    """Connections to FCM and to Google's token endpoint.

    `ca_file` names authorities that are trusted beside the system's. `call_timeout`, in seconds,
    limits a whole call with its wait for an access token. Callers keep fewer than
    `connections_per_origin` calls in flight; more would wait, within their timeouts.
    """

    unexpected_event = "android.unexpected_error"
    outage_wait = WAITS[AnswerClass.OUTAGE]

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
        self._loop = asyncio.get_running_loop()
        self._http = HttpClient(
            tls_context(ca_file),
            connections_per_origin=connections_per_origin,
            keepalive=KEEPALIVE,
        )
        # Half of the time, so that a call that waits for a token still learns why it gets none.
        self._tokens = AccessTokens(self._http, token_uri, call_timeout / 2)

    @override
    async def close(self) -> None:
        await self._tokens.close()
        await self._http.close()

    @override
    async def _send(self, message: Message, target: Target, account: ServiceAccount) -> Outcome:
        """Misconfigured is only about the account: FCM did not take the message."""
        until = self._loop.time() + self._call_timeout
        outcome = await self._try(message, target, account, until)
        if not _is_unauthenticated(outcome):
            return outcome
        # The token was revoked early, or our clock stood still: a new one shows which.
        return await self._try(message, target, account, until)

    async def _try(
        self, message: Message, target: Target, account: ServiceAccount, until: float
    ) -> Outcome:
        token = await self._tokens.get(account, until)
        if not isinstance(token, str):
            return token
        url = f"{self._api_base}/v1/projects/{account.project_id}"
        request = build_request(message, target, url, token, time.monotonic())
        response = await self._http.post(
            request.url, headers=request.headers, body=request.body, until=until
        )
        outcome = classify(response, datetime.fromtimestamp(time.time(), UTC))
        if _is_unauthenticated(outcome):
            self._tokens.refuse(account, token)
        return outcome


def _is_unauthenticated(outcome: Outcome) -> bool:
    return isinstance(outcome, Misconfigured) and outcome.code == UNAUTHENTICATED
