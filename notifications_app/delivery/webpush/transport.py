"""Web push (RFC 8030, 8291, 8292): one POST for each message and browser."""

import asyncio
import time
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from typing import Final

from pywebpush import WebPusher
from typing_extensions import override

from notifications_app.delivery.client import (
    KEEPALIVE,
    ConnectionSettings,
    PayloadTooLargeError,
    Request,
)
from notifications_app.delivery.client import Client as BaseClient
from notifications_app.delivery.http_client import HttpClient
from notifications_app.delivery.types import (
    BrowserDestination,
    Deferred,
    Gone,
    Message,
    Outcome,
    Rejected,
)
from notifications_app.delivery.webpush.payload import MAX_PAYLOAD, payload
from notifications_app.delivery.webpush.responses import (
    CODES,
    NAME_ATTEMPTS,
    NAME_NOT_FOUND,
    classify,
)
from notifications_app.delivery.webpush.vapid import (
    VapidKey,
    VapidKeys,
    VapidKeyUnreadableError,
    authorization,
)
from pushsvc.common import base64url
from pushsvc.common.egress import (
    AddressRefused,
    NameNotFound,
    SeparateResolver,
    tls_context,
)
from pushsvc.common.endpoints import (
    OTHER,
    Endpoint,
    EndpointNeverResolves,
    EndpointNotAllowed,
    check_endpoint,
)

__all__ = [
    "CODES",
    "MAX_PAYLOAD",
    "Client",
    "VapidKey",
    "VapidKeys",
    "build_request",
    "classify",
    "payload",
]

# WNS returns 400 to a TTL of 0.
MIN_TTL_WNS: Final = 60
# There may be many unknown hosts, so their idle connections are kept only for the current batch.
KEEPALIVE_UNKNOWN_HOST: Final = 1.0
RESOLVER_THREADS: Final = 16
_NO_KEYS: Final = {"endpoint": ""}


class BadKeysError(ValueError):
    """The subscription's keys are not a P-256 point and 16 bytes (RFC 8291 section 3)."""


def build_request(
    message: Message, destination: BrowserDestination, endpoint: Endpoint, signed: str, now: float
) -> Request:
    """The request for `destination`, encrypted with a new key (RFC 8291 section 2).

    `endpoint` is the destination's checked endpoint, `signed` the VAPID header. `now` is on the
    clock of `message.expires_at`. Raises BadKeysError or PayloadTooLargeError.
    """
    headers = {
        "Authorization": signed,
        "Content-Encoding": "aes128gcm",
        "Content-Type": "application/octet-stream",
        "TTL": str(_ttl(message, endpoint.vendor, now)),
        "Urgency": message.content.urgency,
    }
    if message.content.topic:
        headers["Topic"] = _topic(message.content.topic, endpoint.vendor)
    return Request(endpoint.url, headers, encrypt(payload(message, destination.token), destination))


def _ttl(message: Message, vendor: str, now: float) -> int:
    left = message.time_to_live(now)
    return max(left, MIN_TTL_WNS) if vendor == "wns" else left


def _topic(topic: str, vendor: str) -> str:
    """The topic, hashed if Apple would refuse it: Apple decodes topics, and returns 400 to a length
    that base64url cannot have."""
    if vendor == "apple" and len(topic) % 4 == 1:
        return base64url.encode(sha256(topic.encode()).digest()[:24])
    return topic


def encrypt(plaintext: bytes, destination: BrowserDestination) -> bytes:
    """An aes128gcm body of one record (RFC 8291). Raises BadKeysError or PayloadTooLargeError."""
    if len(plaintext) > MAX_PAYLOAD:
        raise PayloadTooLargeError(MAX_PAYLOAD)
    pusher = WebPusher(_NO_KEYS)
    try:
        # The library does not check the lengths, and decodes more slowly (pywebpush 2.5.0).
        pusher.receiver_key = _decoded(destination.p256dh, 65)
        pusher.auth_key = _decoded(destination.auth, 16)
        return bytes(pusher.encode(plaintext, content_encoding="aes128gcm")["body"])
    except ValueError as error:
        raise BadKeysError from error


def _decoded(key: str, length: int) -> bytes:
    """Decodes a key with or without padding. Raises ValueError."""
    raw = base64url.decode(key.rstrip("="))
    if len(raw) != length:
        raise ValueError("the key has another length")
    return raw


class Client(BaseClient[BrowserDestination, VapidKeys]):
    """Connections to web push services."""

    unexpected_event = "web.unexpected_error"

    @override
    def __init__(self, settings: ConnectionSettings) -> None:
        self._settings = settings
        self._resolver = SeparateResolver(RESOLVER_THREADS, settings.unknown_host_call_seconds)
        client = partial(
            HttpClient,
            tls_context(settings.ca_file),
            connections_per_origin=settings.calls_in_flight,
        )
        self._known = client(keepalive=KEEPALIVE, is_guarded=True)
        self._unknown_hosts = client(
            keepalive=KEEPALIVE_UNKNOWN_HOST, is_guarded=True, look_up=self._resolver.look_up
        )
        self._trusted = client(keepalive=KEEPALIVE)
        self._loop = asyncio.get_running_loop()

    @override
    async def close(self) -> None:
        for client in (self._known, self._unknown_hosts, self._trusted):
            await client.close()
        self._resolver.close()

    @override
    async def _send(
        self, message: Message, destination: BrowserDestination, keys: VapidKeys
    ) -> Outcome:
        endpoint = check_endpoint(
            destination.address,
            trusted_origins=self._settings.trusted_origins,
            allowed_hosts=self._settings.allowed_hosts,
        )
        key = keys.get(destination.vapid_key_id)
        if key is None:
            raise VapidKeyUnreadableError
        signed = authorization(key, endpoint.origin, time.time())
        request = build_request(message, destination, endpoint, signed, time.monotonic())
        client, seconds = self._way_to(endpoint)
        self.sent_bytes += len(request.body)
        response = await client.post(
            request.url,
            headers=request.headers,
            body=request.body,
            until=self._loop.time() + seconds,
        )
        return classify(response, datetime.fromtimestamp(time.time(), UTC))

    def _way_to(self, endpoint: Endpoint) -> tuple[HttpClient, float]:
        """The client to call the endpoint with, and the seconds that the call may take."""
        if endpoint.is_trusted:
            return self._trusted, self._settings.call_seconds
        if endpoint.service == OTHER:
            return self._unknown_hosts, self._settings.unknown_host_call_seconds
        return self._known, self._settings.call_seconds

    @override
    def _own_outcome(self, error: Exception) -> Outcome | None:
        match error:
            case NameNotFound():
                return Gone(NAME_NOT_FOUND, suspect=True, attempts=NAME_ATTEMPTS)
            case EndpointNeverResolves():
                return Gone(NAME_NOT_FOUND, "a reserved name", suspect=not error.is_certain)
            case EndpointNotAllowed():
                return Rejected("endpoint_not_allowed", error.reason, was_called=False)
            case AddressRefused():
                detail = "The host's address is not public."
                return Rejected("endpoint_not_allowed", detail, was_called=False)
            case BadKeysError():
                return Rejected("bad_keys", was_called=False)
            case VapidKeyUnreadableError():
                return Deferred("vapid_key_unreadable", was_called=False)
            case _:
                return None
