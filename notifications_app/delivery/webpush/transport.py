"""Web push (RFC 8030, 8291, 8292): one POST for each message and browser."""

import json
import logging
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from typing import Final

import aiohttp
from pywebpush import WebPusher

from notifications_app.delivery.types import (
    BrowserTarget,
    Deferred,
    Message,
    Outcome,
    Rejected,
)
from notifications_app.delivery.webpush.answers import CODES, classify
from notifications_app.delivery.webpush.vapid import (
    VapidKey,
    VapidKeys,
    VapidKeyUnreadableError,
    authorization,
)
from pushsvc.common import base64url
from pushsvc.common.egress import (
    SeparateResolver,
    guarded_session,
    is_refusal,
    plain_session,
    post,
    tls_context,
)
from pushsvc.common.endpoints import OTHER, Endpoint, EndpointNotAllowed, check_endpoint

__all__ = [
    "CODES",
    "MAX_PAYLOAD",
    "Client",
    "Request",
    "VapidKey",
    "VapidKeys",
    "build_request",
    "classify",
    "payload",
]

logger = logging.getLogger(__name__)

# RFC 8291 section 4: a body of 4,096 bytes less header (86), delimiter (1) and tag (16).
MAX_PAYLOAD: Final = 3_993
# WNS answers 400 to a TTL of 0.
MIN_TTL_WNS: Final = 60
CONNECT_TIMEOUT: Final = 5.0
# Idle connections: long enough for the next batch to find them, but to strangers, who may be many
# different ones, only so long that a batch finds its own.
KEEPALIVE: Final = 30.0
KEEPALIVE_OTHER: Final = 1.0
RESOLVER_THREADS: Final = 16


@dataclass(frozen=True, slots=True)
class Request:
    url: str = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)


class BadKeysError(ValueError):
    """The subscription's keys are no P-256 point and 16 bytes (RFC 8291 section 3)."""


class PayloadTooLargeError(ValueError):
    """More than MAX_PAYLOAD bytes."""


def payload(message: Message, token: str) -> bytes:
    """What the service worker gets, before encryption: a JSON object without absent fields."""
    fields = {
        "notification_id": str(message.notification_id),
        "title": message.content.title,
        "body": message.content.body,
        "icon": message.content.icon,
        "url": message.content.url,
        "image": message.content.image,
        "data": dict(message.content.data),
        "token": token,
    }
    given = {name: value for name, value in fields.items() if value}
    return json.dumps(given, ensure_ascii=False, separators=(",", ":")).encode()


def build_request(
    message: Message, target: BrowserTarget, endpoint: Endpoint, signed: str, now: float
) -> Request:
    """The request for `target`, whose checked endpoint is `endpoint`, with VAPID header `signed`;
    encrypted with a fresh key (RFC 8291 section 2). `now` is on the clock of `message.expires_at`.

    Raises BadKeysError or PayloadTooLargeError.
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
    return Request(endpoint.url, headers, encrypt(payload(message, target.token), target))


def _ttl(message: Message, vendor: str, now: float) -> int:
    left = max(1, math.ceil(message.expires_at - now)) if message.content.ttl else 0
    return max(left, MIN_TTL_WNS) if vendor == "wns" else left


def _topic(topic: str, vendor: str) -> str:
    """Apple decodes topics, and answers 400 where a length cannot be base64url."""
    if vendor == "apple" and len(topic) % 4 == 1:
        return base64url.encode(sha256(topic.encode()).digest()[:24])
    return topic


def _length(key: str) -> int:
    """In bytes, of a key with or without padding. Raises ValueError."""
    return len(base64url.decode(key.rstrip("=")))


def encrypt(plaintext: bytes, target: BrowserTarget) -> bytes:
    """An aes128gcm body of one record (RFC 8291). Raises BadKeysError or PayloadTooLargeError."""
    if len(plaintext) > MAX_PAYLOAD:
        raise PayloadTooLargeError
    keys = {"p256dh": target.p256dh, "auth": target.auth}
    try:
        # The library checks neither (pywebpush 2.5.0).
        if _length(target.p256dh) != 65 or _length(target.auth) != 16:
            raise BadKeysError
        pusher = WebPusher({"endpoint": target.address, "keys": keys})
        return bytes(pusher.encode(plaintext, content_encoding="aes128gcm")["body"])
    except ValueError as error:
        raise BadKeysError from error


class Client:
    """Connections to push services. Made and used inside one running event loop.

    `trusted_origins` and `allowed_hosts` as in `check_endpoint`; `ca_file`: authorities trusted
    beside the system's. Timeouts are in seconds and span a whole call; `other_timeout` is for push
    services that are neither known nor trusted. A call that finds `connections_per_origin` others
    under way to its origin waits for one to end, within its own timeout, so callers keep below.
    """

    def __init__(
        self,
        *,
        trusted_origins: frozenset[str],
        allowed_hosts: tuple[str, ...],
        ca_file: str = "",
        call_timeout: float = 10.0,
        other_timeout: float = 5.0,
        connections_per_origin: int = 100,
    ) -> None:
        self._trusted_origins = trusted_origins
        self._allowed_hosts = allowed_hosts
        self._limits = _limits(call_timeout)
        self._other_limits = _limits(other_timeout)
        self._other_resolver = SeparateResolver(RESOLVER_THREADS, other_timeout)
        tls = tls_context(ca_file)
        self._known = guarded_session(
            tls, connections_per_origin=connections_per_origin, keepalive=KEEPALIVE
        )
        self._other = guarded_session(
            tls,
            connections_per_origin=connections_per_origin,
            keepalive=KEEPALIVE_OTHER,
            resolver=self._other_resolver,
        )
        self._trusted = plain_session(
            tls, connections_per_origin=connections_per_origin, keepalive=KEEPALIVE
        )

    async def send(self, message: Message, target: BrowserTarget, keys: VapidKeys) -> Outcome:
        """One attempt, one outcome. Raises nothing but CancelledError."""
        try:
            return await self._send(message, target, keys)
        except Exception as error:  # noqa: BLE001 - one recipient must not stop its batch
            return _outcome_of(error)

    async def close(self) -> None:
        for session in (self._known, self._other, self._trusted):
            await session.close()
        await self._other_resolver.close()

    async def _send(self, message: Message, target: BrowserTarget, keys: VapidKeys) -> Outcome:
        endpoint = check_endpoint(
            target.address,
            trusted_origins=self._trusted_origins,
            allowed_hosts=self._allowed_hosts,
        )
        key = keys.get(target.vapid_key_id)
        if key is None:
            raise VapidKeyUnreadableError
        signed = authorization(key, endpoint.origin, time.time())
        request = build_request(message, target, endpoint, signed, time.monotonic())
        session, limits = self._way_to(endpoint)
        response = await post(
            session, request.url, headers=request.headers, body=request.body, limits=limits
        )
        return classify(response, datetime.fromtimestamp(time.time(), UTC))

    def _way_to(self, endpoint: Endpoint) -> tuple[aiohttp.ClientSession, aiohttp.ClientTimeout]:
        if endpoint.is_trusted:
            return self._trusted, self._limits
        if endpoint.service == OTHER:
            return self._other, self._other_limits
        return self._known, self._limits


def _limits(total: float) -> aiohttp.ClientTimeout:
    # By default aiohttp rounds timeouts over 5 s up to whole seconds of the loop's clock.
    return aiohttp.ClientTimeout(total=total, sock_connect=CONNECT_TIMEOUT, ceil_threshold=math.inf)


def _outcome_of(error: Exception) -> Outcome:
    """What it means that there is no answer."""
    match error:
        case EndpointNotAllowed():
            return Rejected("endpoint_not_allowed", error.reason)
        case BadKeysError():
            return Rejected("bad_keys")
        case PayloadTooLargeError():
            return Rejected("payload_too_large", f"more than {MAX_PAYLOAD} bytes")
        case VapidKeyUnreadableError():
            return Deferred("vapid_key_unreadable")
        case _ if is_refusal(error):
            return Rejected("endpoint_not_allowed", "The host's address is not public.")
        case TimeoutError():
            return Deferred("timeout", outage=True)
        case aiohttp.ClientConnectorDNSError():
            return Deferred("name_not_resolved", outage=True)
        case aiohttp.ClientSSLError():
            return Deferred("tls_failed", outage=True)
        case aiohttp.ClientError() | OSError():
            return Deferred("connection_failed", type(error).__name__, outage=True)
        case _:
            # Neither text nor traceback: they may hold the endpoint.
            logger.error("web.unexpected_error", extra={"error": type(error).__name__})
            return Deferred("unexpected_error", type(error).__name__)
