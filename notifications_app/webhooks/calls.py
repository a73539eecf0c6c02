"""Calls of webhooks: one signed POST for each attempt, and what its response means.

Owners choose the addresses, so calls go through the guard of `pushsvc.common.egress`: https on port
443 of a public address, no redirects, a short time, and only the beginning of the response.
"""

import asyncio
import socket
import ssl
import time
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache, partial
from typing import TYPE_CHECKING, Final
from uuid import UUID

import structlog
from django.conf import settings

from channels_app.models import WebhookFormat
from notifications_app.delivery.event_loop import EventLoopThread
from notifications_app.delivery.types import parse_retry_after
from notifications_app.webhooks import chats, signing
from pushsvc.common import metrics
from pushsvc.common.egress import AddressRefused, Response, SeparateResolver, tls_context
from pushsvc.common.endpoints import EndpointNotAllowed, check_endpoint
from pushsvc.common.store.crypto import SecretUnreadable

if TYPE_CHECKING:
    from notifications_app.delivery.http_client import HttpClient

logger = structlog.stdlib.get_logger(__name__)

CALL_SECONDS: Final = 15.0
AT_ONCE: Final = 4  # calls of one webhook
LONGEST_WAIT: Final = 86_400.0  # seconds for which a receiver can ask
_KEEPALIVE: Final = 30.0
# More than an account has calls at once, so that names that never resolve delay no other account.
_RESOLVER_THREADS: Final = 128
_SHOWN: Final = 200  # characters of a response
_GONE: Final = 410


@dataclass(frozen=True)
class Call:
    """A claimed message for a webhook. `attempts` includes this call. Only the claim with the
    newest `lease_number` may write. `is_troubled`: the last call of the webhook failed or was
    slow."""

    message_id: UUID
    webhook_id: UUID
    lease_number: int
    attempts: int
    url: str = field(repr=False)
    format: str
    body: bytes = field(repr=False)
    secrets: Sequence[str] = field(repr=False)
    account_id: UUID
    is_troubled: bool


@dataclass(frozen=True)
class Answer:
    """`words`: for people. `retry_after`: seconds that the receiver asked for, at most
    LONGEST_WAIT. `seconds`: the call's time."""

    is_delivered: bool
    words: str
    is_gone: bool = False
    retry_after: float | None = None
    seconds: float = 0.0


class Caller:
    """Makes one turn's calls in its own event loop, at most `most` at once. Close it when the turn
    ends."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._thread = EventLoopThread()
        self._resolvers = [SeparateResolver(_RESOLVER_THREADS, CALL_SECONDS) for _ in range(2)]
        self._usual, self._troubled, self._trusted = self._thread.run(self._clients())

    def begin(self, call: Call) -> Future[Answer]:
        """Begins the call. The result never raises."""
        return asyncio.run_coroutine_threadsafe(self._call(call), self._thread.loop)

    def close(self) -> None:
        for client in (self._usual, self._troubled, self._trusted):
            self._thread.run(client.close())
        for resolver in self._resolvers:
            resolver.close()
        self._thread.stop()

    async def _clients(self) -> "list[HttpClient]":
        """For webhooks, for troubled ones, whose names may never resolve, and for origins that the
        operator trusts."""
        # Imported here, so that only the processes that call webhooks load an HTTP client.
        from notifications_app.delivery.http_client import HttpClient

        tls = _tls(settings.PROVIDER_CA_FILE)
        # No request waits for another: many webhooks may have one origin.
        make = partial(HttpClient, tls, connections_per_origin=self._most, keepalive=_KEEPALIVE)
        guarded = [make(is_guarded=True, look_up=each.look_up) for each in self._resolvers]
        return [*guarded, make()]

    async def _call(self, call: Call) -> Answer:
        begun = time.monotonic()
        try:
            answer = _answer_of(await self._post(call))
        except Exception as error:  # noqa: BLE001 - anything that a server of others can cause
            answer = Answer(is_delivered=False, words=_words(error))
        seconds = time.monotonic() - begun
        outcome = "delivered" if answer.is_delivered else "failed"
        metrics.WEBHOOK_SECONDS.observe(seconds, outcome)
        return replace(answer, seconds=seconds)

    async def _post(self, call: Call) -> Response:
        endpoint = check_endpoint(
            call.url, trusted_origins=settings.WEBHOOK_TRUSTED_ORIGINS, allowed_hosts=()
        )
        usual = self._troubled if call.is_troubled else self._usual
        client = self._trusted if endpoint.is_trusted else usual
        message_id = f"msg_{call.message_id.hex}"
        format_ = WebhookFormat(call.format)
        body = chats.body_for(format_, call.body)
        if format_ == WebhookFormat.STANDARD and not call.secrets:
            raise SecretUnreadable
        headers = signing.headers(message_id, body, int(time.time()), call.secrets)
        until = asyncio.get_running_loop().time() + CALL_SECONDS
        return await client.post(endpoint.url, headers=headers, body=body, until=until)


@cache
def _tls(ca_file: str) -> ssl.SSLContext:
    """Kept for the process, because reading the authorities takes longer than a call."""
    return tls_context(ca_file)


def _answer_of(response: Response) -> Answer:
    if 200 <= response.status < 300:
        return Answer(is_delivered=True, words=str(response.status))
    said = response.body[:_SHOWN].decode(errors="replace")
    shown = " ".join("".join(each if each.isprintable() else " " for each in said).split())
    now = datetime.fromtimestamp(time.time(), UTC)
    return Answer(
        is_delivered=False,
        words=f"{response.status}: {shown}" if shown else str(response.status),
        is_gone=response.status == _GONE,
        retry_after=parse_retry_after(response.headers.get("Retry-After"), now, LONGEST_WAIT),
    )


def _words(error: Exception) -> str:
    match error:
        case EndpointNotAllowed():
            return "no call: " + error.reason.replace("The endpoint", "The address")
        case AddressRefused():
            return "no call: the host's address is not public"
        case SecretUnreadable():
            return "no call: the secret cannot be read"
        case chats.NotForChats():
            return "no call: a chat gets only alerts"
        case TimeoutError():
            return f"no response within {CALL_SECONDS:.0f} seconds"
        case socket.gaierror():
            return "the host's name could not be resolved"
        case ssl.SSLError():
            return "the TLS handshake failed"
        case OSError():
            return "the connection failed"
        case _:
            # Neither text nor traceback is logged: both may contain the address.
            logger.error("webhook.unexpected_error", error=type(error).__name__)
            return "the request could not be sent"
