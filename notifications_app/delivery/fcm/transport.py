"""Android (FCM HTTP v1): one POST for each message and registration token or installation id.

The call is made without firebase-admin's clients, because these block the event loop or take nine
times the processor time.
https://firebase.google.com/docs/reference/fcm/rest/v1/projects.messages.
"""

import asyncio
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final

from typing_extensions import override

from notifications_app.delivery.client import (
    CACHED_MESSAGES,
    KEEPALIVE,
    ConnectionSettings,
    PayloadTooLargeError,
    Request,
)
from notifications_app.delivery.client import Client as BaseClient
from notifications_app.delivery.fcm.access_token import (
    TOKEN_URI,
    AccessTokens,
)
from notifications_app.delivery.fcm.message import request_body
from notifications_app.delivery.fcm.payload import MAX_PAYLOAD, address_field, payload
from notifications_app.delivery.fcm.responses import (
    ACCEPTED_STATUSES,
    CODES,
    UNAUTHENTICATED,
    WAITS,
    classify,
)
from notifications_app.delivery.fcm.service_account import AccountUnreadableError, ServiceAccount
from notifications_app.delivery.http_client import HttpClient
from notifications_app.delivery.responses import ResponseClass
from notifications_app.delivery.types import (
    Accepted,
    Destination,
    Message,
    Misconfigured,
    Outcome,
)
from pushsvc.common.egress import tls_context

__all__ = [
    "CODES",
    "MAX_PAYLOAD",
    "TOKEN_URI",
    "AccountUnreadableError",
    "Client",
    "ServiceAccount",
    "build_request",
    "classify",
    "payload",
]

MAX_TTL: Final = 2_419_200


def build_request(
    message: Message, destination: Destination, project_url: str, access_token: str, now: float
) -> Request:
    """The request for `destination`. `project_url` is the project's URL, without a method. `now` is
    on the clock of `message.expires_at`. Raises PayloadTooLargeError."""
    body = request_body(message, destination, min(message.time_to_live(now), MAX_TTL))
    if len(body) > MAX_PAYLOAD and len(payload(message, destination.token)) > MAX_PAYLOAD:
        raise PayloadTooLargeError(MAX_PAYLOAD)
    return Request(f"{project_url}/messages:send", _headers(access_token), body)


@lru_cache(maxsize=CACHED_MESSAGES)
def _headers(access_token: str) -> Mapping[str, str]:
    return {
        "Authorization": f"Bearer {access_token}",
        "Content-Type": "application/json; charset=UTF-8",
        # Asks for errors with details, as Google's libraries do.
        "X-GOOG-API-FORMAT-VERSION": "2",
    }


class Client(BaseClient[Destination, ServiceAccount]):
    """Connections to FCM and to Google's token endpoint."""

    unexpected_event = "android.unexpected_error"
    outage_wait = WAITS[ResponseClass.OUTAGE]

    @override
    def __init__(self, settings: ConnectionSettings) -> None:
        self._api_base = settings.fcm_api_base
        self._call_timeout = settings.call_seconds
        self._loop = asyncio.get_running_loop()
        self._http = HttpClient(
            tls_context(settings.ca_file),
            connections_per_origin=settings.calls_in_flight,
            keepalive=KEEPALIVE,
        )
        # Half of the time, so that a call that waits for a token can still return why it failed.
        self._tokens = AccessTokens(self._http, settings.google_token_uri, self._call_timeout / 2)

    @override
    def renew(self, account: ServiceAccount) -> None:
        self._tokens.renew(account)

    @override
    async def close(self) -> None:
        await self._tokens.close()
        await self._http.close()

    @override
    async def _send(
        self, message: Message, destination: Destination, account: ServiceAccount
    ) -> Outcome:
        """Tries once more with a new access token if FCM refused the token, and so the message."""
        until = self._loop.time() + self._call_timeout
        outcome = await self._try(message, destination, account, until)
        if not _is_unauthenticated(outcome):
            return outcome
        # The token was revoked early, or this process was paused. A new token shows which.
        return await self._try(message, destination, account, until)

    @override
    async def _validate(
        self, message: Message, destination: Destination, account: ServiceAccount
    ) -> Outcome:
        until = self._loop.time() + self._call_timeout
        return await self._try(message, destination, account, until, validate_only=True)

    async def _try(
        self,
        message: Message,
        destination: Destination,
        account: ServiceAccount,
        until: float,
        *,
        validate_only: bool = False,
    ) -> Outcome:
        token = self._tokens.at_hand(account) or await self._tokens.get(account, until)
        if not isinstance(token, str):
            return token
        url = f"{self._api_base}/v1/projects/{account.project_id}"
        request = build_request(message, destination, url, token, time.monotonic())
        body = b'{"validate_only":true,' + request.body[1:] if validate_only else request.body
        self.sent_bytes += len(body)
        response = await self._http.post(
            request.url, headers=request.headers, body=body, until=until
        )
        if response.status in ACCEPTED_STATUSES:
            return Accepted()
        now = datetime.fromtimestamp(time.time(), UTC)
        outcome = classify(response, now, address_field(destination.address))
        if _is_unauthenticated(outcome):
            self._tokens.refuse(account, token)
        return outcome


def _is_unauthenticated(outcome: Outcome) -> bool:
    return isinstance(outcome, Misconfigured) and outcome.code == UNAUTHENTICATED
