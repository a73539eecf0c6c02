"""APNs (Apple, "Sending notification requests to APNs"): one request for each message and device.

Of aioapns the request and its vocabulary are used; its connections and its provider token are
replaced by ours, see `apns_connection`, `apns_pool` and `apns_token`.
"""

import asyncio
import json
import logging
import math
import re
import socket
import ssl
import time
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final, NamedTuple
from uuid import uuid5

from aioapns import NotificationRequest, PushType
from hpack import HeaderTuple, NeverIndexedHeaderTuple

from notifications_app.delivery.apns.answers import CODES, classify
from notifications_app.delivery.apns.connection import (
    ConnectionLostError,
    Headers,
    NotProcessedError,
    StreamResetError,
)
from notifications_app.delivery.apns.pool import NoConnectionError, Pool
from notifications_app.delivery.apns.provider_token import (
    ApnsKey,
    ApnsKeyUnreadableError,
    authorization,
)
from notifications_app.delivery.apns.server import Server, tls_for_http2
from notifications_app.delivery.types import (
    Deferred,
    Message,
    Misconfigured,
    Outcome,
    Rejected,
    Target,
    stored_texts,
)

__all__ = [
    "CODES",
    "MAX_PAYLOAD",
    "ApnsKey",
    "AppKey",
    "Client",
    "build_request",
    "classify",
    "payload",
]

logger = logging.getLogger(__name__)

MAX_PAYLOAD: Final = 4_096
PRIORITIES: Final = {"very-low": 1, "low": 5, "normal": 10, "high": 10}
SERVERS: Final = {
    "production": Server("api.push.apple.com", 443),
    "sandbox": Server("api.sandbox.push.apple.com", 443),
}
# Of so many keys and environments connections are kept; beyond, those unused longest are closed.
MAX_POOLS: Final = 100

# No device has this token: APNs refuses it, once it has accepted the key.
NO_DEVICE: Final = "0" * 64
_DEVICE_TOKEN: Final = re.compile(r"[0-9A-Fa-f]{1,200}")
# What is no header field would leave the connection's compression in disorder.
_FIELD: Final = re.compile(r"[\x21-\x7e]{1,255}")


@dataclass(frozen=True, slots=True)
class AppKey:
    """A key with the app that it is for: `topic`, the app's bundle id, and `environment`, where the
    app is registered (production or sandbox). `version` counts the channel's app_key."""

    key: ApnsKey
    topic: str
    environment: str
    version: int = 0

    @classmethod
    def parse(cls, secret: str, version: int) -> "AppKey":
        """From the JSON that the channel's credential is stored as. Raises ValueError."""
        stored = stored_texts(secret, ("key", "key_id", "team_id", "topic", "environment"))
        key = ApnsKey(stored["key"], stored["key_id"], stored["team_id"])
        return cls(key, stored["topic"], _environment(stored["environment"]), version)


def _environment(name: str) -> str:
    if name not in SERVERS:
        raise ValueError("the environment is neither production nor sandbox")
    return name


class _Way(NamedTuple):
    """What the requests of a connection have in common; `signed`: the provider token."""

    key: ApnsKey
    environment: str
    signed: str

    def is_followed_by(self, other: "_Way") -> bool:
        return (self.key, self.environment) == (other.key, other.environment)


class MalformedTokenError(ValueError):
    """The device token is not hexadecimal, and would be another path."""


class MalformedFieldError(ValueError):
    """The credential's topic or the message's is not printable ASCII."""


class PayloadTooLargeError(ValueError):
    """More than MAX_PAYLOAD bytes."""


def payload(message: Message, token: str) -> bytes:
    """What the app gets: JSON, compact and in UTF-8, because each byte counts."""
    return _encoded(_content(message, token))


def _content(message: Message, token: str) -> dict[str, Any]:
    alert = {"title": message.content.title, "body": message.content.body}
    fields = {
        "notification_id": str(message.notification_id),
        "url": message.content.url,
        "icon": message.content.icon,
        "image": message.content.image,
        "data": dict(message.content.data),
        "token": token,
    }
    return {"aps": {"alert": _given(alert), "mutable-content": 1}} | _given(fields)


def _given(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value}


def _encoded(content: dict[str, Any]) -> bytes:
    return json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()


def build_request(
    message: Message, target: Target, app_key: AppKey, now: float
) -> NotificationRequest:
    """The notification for `target`; `now` is on the clock of `message.expires_at`.

    Its id depends on message and device alone, so that it is the same in every attempt.
    Raises MalformedTokenError or MalformedFieldError.
    """
    if not _DEVICE_TOKEN.fullmatch(target.address):
        raise MalformedTokenError
    collapse_id = message.content.topic or str(message.notification_id)
    if not (_FIELD.fullmatch(collapse_id) and _FIELD.fullmatch(app_key.topic)):
        raise MalformedFieldError
    return NotificationRequest(
        target.address,
        _content(message, target.token),
        notification_id=str(uuid5(message.notification_id, str(target.subscription_id))),
        time_to_live=max(1, math.ceil(message.expires_at - now)) if message.content.ttl else 0,
        priority=PRIORITIES[message.content.urgency],
        collapse_key=collapse_id,
        push_type=PushType.ALERT,
        apns_topic=app_key.topic,
    )


def encode(
    request: NotificationRequest, *, authority: str, signed: str, now: float
) -> tuple[Headers, bytes]:
    """Header fields and body, for the server `authority`; `now` in seconds since the epoch.

    A time to live of 0 becomes the expiration "0", which has APNs try once and store nothing;
    aioapns would write the present second. Raises PayloadTooLargeError.
    """
    body = _encoded(request.message)
    if len(body) > MAX_PAYLOAD:
        raise PayloadTooLargeError
    expiration = int(now) + request.time_to_live if request.time_to_live else 0
    push_type = request.push_type or PushType.ALERT
    fields = {
        ":method": "POST",
        ":scheme": "https",
        ":authority": authority,
        "authorization": signed,
        "apns-topic": request.apns_topic or "",
        "apns-push-type": push_type.value,
        "apns-priority": str(request.priority),
        "apns-expiration": str(expiration),
        "apns-collapse-id": str(request.collapse_key),
    }
    # These two are not worth a place in HPACK's table, and one is secret (RFC 7541 section 7.1.3).
    path = NeverIndexedHeaderTuple(b":path", f"/3/device/{request.device_token}".encode())
    own_id = NeverIndexedHeaderTuple(b"apns-id", request.notification_id.encode())
    shared = [HeaderTuple(name.encode(), value.encode()) for name, value in fields.items()]
    return [path, *shared, own_id], body


class Client:
    """Connections to APNs, shared by all channels of a key. Made and used inside one running event
    loop. A connection has one provider token for as long as it lives: APNs takes no second one on
    it within 20 minutes, and it may have been made just before ours changes.

    `server`: "host:port" in place of Apple's, for both environments (ValueError if it is none);
    `ca_file`: authorities trusted beside the system's. `call_timeout` is in seconds and spans a
    whole call, the wait for a connection and for room on it included. A server that allows so few
    requests at once that calls wait gets up to `max_connections` for each key.
    """

    def __init__(
        self,
        *,
        server: str = "",
        ca_file: str = "",
        call_timeout: float = 10.0,
        max_connections: int = 4,
    ) -> None:
        self._servers = dict.fromkeys(SERVERS, Server.parse(server)) if server else SERVERS
        self._tls = tls_for_http2(ca_file)
        self._call_timeout = call_timeout
        self._max_connections = max_connections
        self._pools: OrderedDict[_Way, Pool] = OrderedDict()
        self._closing: set[asyncio.Task[None]] = set()

    async def send(self, message: Message, target: Target, app_key: AppKey) -> Outcome:
        """One attempt, one outcome. Raises nothing but CancelledError."""
        try:
            return await self._send(message, target, app_key)
        except Exception as error:  # noqa: BLE001 - one recipient must not stop its batch
            return _outcome_of(error)

    async def close(self) -> None:
        for pool in self._pools.values():
            self._close_soon(pool)
        if self._closing:
            await asyncio.wait(self._closing)

    async def _send(self, message: Message, target: Target, app_key: AppKey) -> Outcome:
        request = build_request(message, target, app_key, time.monotonic())
        now = time.time()
        way = _Way(app_key.key, app_key.environment, authorization(app_key.key, now))
        authority = self._servers[way.environment].authority
        headers, body = encode(request, authority=authority, signed=way.signed, now=now)
        async with asyncio.timeout(self._call_timeout):
            response = await self._pool_of(way).post(headers, body)
        return classify(response, datetime.fromtimestamp(time.time(), UTC))

    def _pool_of(self, way: _Way) -> Pool:
        pool = self._pools.get(way)
        if pool is None:
            server = self._servers[way.environment]
            pool = Pool(partial(server.connect, self._tls), self._max_connections)
            self._close_unused(way)
            self._pools[way] = pool
        self._pools.move_to_end(way)
        return pool

    def _close_unused(self, coming: _Way) -> None:
        """Makes room: for MAX_POOLS, and where the token has changed. What is in use stays."""
        idle = [way for way, pool in self._pools.items() if pool.is_idle]
        spare = max(0, len(self._pools) + 1 - MAX_POOLS)
        outdated = [way for way in idle if way.is_followed_by(coming)]
        for way in {*idle[:spare], *outdated}:
            self._close_soon(self._pools.pop(way))

    def _close_soon(self, pool: Pool) -> None:
        task = asyncio.create_task(pool.close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)


def _outcome_of(error: BaseException | None) -> Outcome:
    """What it means that there is no answer."""
    match error:
        case MalformedTokenError():
            return Rejected("malformed_token")
        case MalformedFieldError():
            return Rejected("bad_request", "a topic is not printable ASCII")
        case PayloadTooLargeError():
            return Rejected("payload_too_large", f"more than {MAX_PAYLOAD} bytes")
        case ApnsKeyUnreadableError():
            return Misconfigured("key_unreadable")
        case NoConnectionError():
            return _outcome_of(error.__cause__)
        case NotProcessedError():
            return Deferred("not_processed", str(error), outage=True)
        case StreamResetError():
            return Deferred("stream_reset", str(error), outage=True)
        case TimeoutError():
            return Deferred("timeout", outage=True)
        case socket.gaierror():
            return Deferred("name_not_resolved", outage=True)
        case ssl.SSLError():
            return Deferred("tls_failed", outage=True)
        case ConnectionLostError() | OSError():
            return Deferred("connection_failed", type(error).__name__, outage=True)
        case _:
            # Neither text nor traceback: they may hold the device token.
            logger.error("ios.unexpected_error", extra={"error": type(error).__name__})
            return Deferred("unexpected_error", type(error).__name__)
