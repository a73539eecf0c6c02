"""iOS (APNs): one request for each message and device.

aioapns provides the class of the request and its constants. `connection`, `pool` and
`provider_token` replace its connections and its provider token. Apple, "Sending notification
requests to APNs".
"""

import asyncio
import re
import time
from collections import OrderedDict
from datetime import UTC, datetime
from functools import lru_cache, partial
from hashlib import sha1
from typing import Any, Final, NamedTuple
from uuid import UUID

from aioapns import NotificationRequest, PushType
from hpack import HeaderTuple, NeverIndexedHeaderTuple
from typing_extensions import override

from notifications_app.delivery.apns.app_key import HOSTS, AppKey
from notifications_app.delivery.apns.connection import (
    Headers,
    NotProcessedError,
    StreamResetError,
)
from notifications_app.delivery.apns.payload import MAX_PAYLOAD, payload
from notifications_app.delivery.apns.pool import NoConnectionError, Pool
from notifications_app.delivery.apns.provider_token import (
    ApnsKey,
    ApnsKeyUnreadableError,
    authorization,
)
from notifications_app.delivery.apns.responses import CODES, classify
from notifications_app.delivery.apns.server import Server, tls_for_http2
from notifications_app.delivery.client import (
    CACHED_MESSAGES,
    ConnectionSettings,
    PayloadTooLargeError,
)
from notifications_app.delivery.client import Client as BaseClient
from notifications_app.delivery.types import (
    Destination,
    Message,
    Misconfigured,
    Outcome,
    Rejected,
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

PRIORITIES: Final = {"very-low": 1, "low": 5, "normal": 10, "high": 10}
SERVERS: Final = {name: Server(host, 443) for name, host in HOSTS.items()}
# How many keys and environments may have open connections. The least recently used are closed.
MAX_POOLS: Final = 100

_SHARED: Final = (
    b":method",
    b":scheme",
    b":authority",
    b"authorization",
    b"apns-topic",
    b"apns-push-type",
    b"apns-priority",
    b"apns-expiration",
    b"apns-collapse-id",
)
_DEVICE_TOKEN: Final = re.compile(r"[0-9A-Fa-f]{1,200}")
# Other characters would corrupt the header compression of the whole connection.
_FIELD: Final = re.compile(r"[\x21-\x7e]{1,255}")


class _ConnectionKey(NamedTuple):
    """What all requests of a connection have in common. `signed` is the provider token."""

    key: ApnsKey
    environment: str
    signed: str

    def is_followed_by(self, other: "_ConnectionKey") -> bool:
        return (self.key, self.environment) == (other.key, other.environment)


class MalformedTokenError(ValueError):
    """The device token is not hexadecimal. In a URL it could change the path."""


class MalformedFieldError(ValueError):
    """A field for a header, such as the credentials' topic, is not printable ASCII."""


def build_request(
    message: Message, destination: Destination, app_key: AppKey, now: float
) -> NotificationRequest:
    """The request for `destination`. Its message is already JSON, encoded as aioapns would encode
    it. `now` is on the clock of `message.expires_at`.

    The id depends only on notification and device, so every attempt has the same id. Raises
    MalformedTokenError or MalformedFieldError.
    """
    if not _DEVICE_TOKEN.fullmatch(destination.address):
        raise MalformedTokenError
    collapse_id = _collapse_id(message.common or message)
    if not _is_field(app_key.topic):
        raise MalformedFieldError
    encoded: Any = payload(message, destination.token)
    return NotificationRequest(
        destination.address,
        encoded,
        notification_id=_request_id(message.notification_id, destination.subscription_id),
        time_to_live=message.time_to_live(now),
        priority=PRIORITIES[message.content.urgency],
        collapse_key=collapse_id,
        push_type=PushType.ALERT,
        apns_topic=app_key.topic,
    )


@lru_cache(maxsize=CACHED_MESSAGES)
def _collapse_id(message: Message) -> str:
    collapse_id = message.content.topic or str(message.root_id or message.notification_id)
    if not _is_field(collapse_id):
        raise MalformedFieldError
    return collapse_id


@lru_cache(maxsize=CACHED_MESSAGES)
def _is_field(text: str) -> bool:
    return bool(_FIELD.fullmatch(text))


def _request_id(notification_id: UUID, subscription_id: UUID) -> str:
    """Returns `str(uuid5(notification_id, str(subscription_id)))` in a quarter of the time."""
    named = notification_id.bytes + str(subscription_id).encode()
    digits = sha1(named, usedforsecurity=False).hexdigest()
    variant = "89ab"[int(digits[16], 16) % 4]
    return f"{digits[:8]}-{digits[8:12]}-5{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:32]}"


def encode(
    request: NotificationRequest, *, authority: str, signed: str, now: float
) -> tuple[Headers, bytes]:
    """Header fields and body for the server `authority`. `now` is in seconds since the epoch.

    A time to live of 0 becomes the expiration "0": APNs then tries once and stores nothing. aioapns
    would write the current second. Raises PayloadTooLargeError.
    """
    body: Any = request.message
    if len(body) > MAX_PAYLOAD:
        raise PayloadTooLargeError(MAX_PAYLOAD)
    expiration = int(now) + request.time_to_live if request.time_to_live else 0
    push_type = request.push_type or PushType.ALERT
    shared = _shared_fields(
        authority,
        signed,
        request.apns_topic or "",
        push_type.value,
        str(request.priority),
        str(expiration),
        str(request.collapse_key),
    )
    # These two differ in every request, and one is secret, so neither enters HPACK's table (RFC
    # 7541 section 7.1.3).
    path = NeverIndexedHeaderTuple(b":path", f"/3/device/{request.device_token}".encode())
    own_id = NeverIndexedHeaderTuple(b"apns-id", request.notification_id.encode())
    return [path, *shared, own_id], body


@lru_cache(maxsize=CACHED_MESSAGES)
def _shared_fields(authority: str, signed: str, *values: str) -> tuple[HeaderTuple, ...]:
    """The fields that the requests of a batch have in common; `values` in the order of _SHARED."""
    fields = zip(_SHARED, ("POST", "https", authority, signed, *values), strict=True)
    return tuple(HeaderTuple(name, value.encode()) for name, value in fields)


class Client(BaseClient[Destination, AppKey]):
    """Connections to APNs. All channels with the same key share them.

    A connection keeps one provider token until it is closed, because APNs accepts no second token
    on a connection within 20 minutes.
    """

    unexpected_event = "ios.unexpected_error"

    @override
    def __init__(self, settings: ConnectionSettings) -> None:
        """Raises ValueError if `apns_server` is malformed."""
        server = settings.apns_server
        self._servers = dict.fromkeys(SERVERS, Server.parse(server)) if server else SERVERS
        self._tls = tls_for_http2(settings.ca_file)
        self._call_timeout = settings.call_seconds
        self._max_connections = settings.apns_connections
        self._loop = asyncio.get_running_loop()
        self._pools: OrderedDict[_ConnectionKey, Pool] = OrderedDict()
        self._closing: set[asyncio.Task[None]] = set()

    @override
    def renew(self, app_key: AppKey) -> None:
        """The provider token stays: Apple allows no second one within 20 minutes."""
        for key, pool in self._pools.items():
            if (key.key, key.environment) == (app_key.key, app_key.environment):
                pool.renew()

    @override
    async def close(self) -> None:
        for pool in self._pools.values():
            self._close_soon(pool)
        if self._closing:
            await asyncio.wait(self._closing)

    @override
    async def _send(self, message: Message, destination: Destination, app_key: AppKey) -> Outcome:
        request = build_request(message, destination, app_key, time.monotonic())
        now = time.time()
        key = _ConnectionKey(app_key.key, app_key.environment, authorization(app_key.key, now))
        authority = self._servers[key.environment].authority
        headers, body = encode(request, authority=authority, signed=key.signed, now=now)
        self.sent_bytes += len(body)
        until = self._loop.time() + self._call_timeout
        response = await self._pool_of(key).post(headers, body, until)
        return classify(response, datetime.fromtimestamp(time.time(), UTC))

    def _pool_of(self, key: _ConnectionKey) -> Pool:
        pool = self._pools.get(key)
        if pool is None:
            server = self._servers[key.environment]
            pool = Pool(partial(server.connect, self._tls), self._max_connections)
            self._close_unused(key)
            self._pools[key] = pool
        self._pools.move_to_end(key)
        return pool

    def _close_unused(self, coming: _ConnectionKey) -> None:
        """Closes idle pools: those beyond MAX_POOLS, and those whose provider token is outdated."""
        idle = [key for key, pool in self._pools.items() if pool.is_idle]
        spare = max(0, len(self._pools) + 1 - MAX_POOLS)
        outdated = [key for key in idle if key.is_followed_by(coming)]
        for key in {*idle[:spare], *outdated}:
            self._close_soon(self._pools.pop(key))

    def _close_soon(self, pool: Pool) -> None:
        task = asyncio.create_task(pool.close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    @override
    def _own_outcome(self, error: Exception) -> Outcome | None:
        match error:
            case MalformedTokenError():
                return Rejected("malformed_token", was_called=False)
            case MalformedFieldError():
                return Rejected("bad_request", "a topic is not printable ASCII", was_called=False)
            case ApnsKeyUnreadableError():
                return Misconfigured("key_unreadable", was_called=False)
            case NoConnectionError():
                return self._outcome_of_error(error.cause)
            case NotProcessedError():
                return self._outage("not_processed", str(error))
            case StreamResetError():
                return self._outage("stream_reset", str(error))
            case _:
                return None
