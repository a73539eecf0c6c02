"""The base of the transports' clients: limits of a call, and outcomes of calls that failed."""

import json
import socket
import ssl
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, Generic, TypeVar

import structlog

from notifications_app.delivery.types import Deferred, Destination, Message, Outcome, Rejected

logger = structlog.stdlib.get_logger(__name__)

DestinationT = TypeVar("DestinationT", bound=Destination, contravariant=True)
KeysT = TypeVar("KeysT", contravariant=True)

# How many messages a transport caches. A batch has one for each language of its content; web
# processes check several contents at once.
CACHED_MESSAGES: Final = 64
# An idle connection is kept long enough for the next batch to use it.
KEEPALIVE: Final = 30.0
_ENCODER: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


@dataclass(slots=True)  # not frozen, because each message makes one, which takes longer
class Request:
    """One POST over HTTP/1.1."""

    url: str = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class ConnectionSettings:
    """How an installation reaches the push services.

    `trusted_origins` and `allowed_hosts` are those of `check_endpoint`. `ca_file` names authorities
    that are trusted in addition to the system's. `apns_server`: "host:port" in place of Apple's
    servers. Seconds limit a whole call. Callers keep fewer than `calls_in_flight` calls in flight;
    more to one origin would wait, within their time. `apns_connections`: for each key, if the
    server allows few requests at once.
    """

    trusted_origins: frozenset[str]
    allowed_hosts: tuple[str, ...]
    ca_file: str
    fcm_api_base: str
    google_token_uri: str
    apns_server: str
    call_seconds: float
    unknown_host_call_seconds: float
    calls_in_flight: int
    apns_connections: int = 4


class PayloadTooLargeError(ValueError):
    """The payload has more than `limit` bytes."""

    def __init__(self, limit: int) -> None:
        super().__init__(limit)
        self.limit = limit


class Client(ABC, Generic[DestinationT, KeysT]):
    """The connections of one platform. Create and use it inside one running event loop."""

    # The event to log for an error that should not occur.
    unexpected_event: ClassVar[str]
    # Seconds to wait after a call without a response. None leaves it to the pipeline.
    outage_wait: ClassVar[float | None] = None
    # The sum over the bodies of all calls.
    sent_bytes: int = 0

    @abstractmethod
    def __init__(self, settings: ConnectionSettings) -> None: ...

    async def send(self, message: Message, destination: DestinationT, keys: KeysT) -> Outcome:
        """Makes one attempt and returns its outcome. Raises only CancelledError.

        `keys`: the channel's credentials or VAPID keys.
        """
        try:
            return await self._send(message, destination, keys)
        except Exception as error:  # noqa: BLE001 - one recipient must not stop its batch
            return self._own_outcome(error) or self._outcome_of_error(error)

    async def validate(self, message: Message, destination: DestinationT, keys: KeysT) -> Outcome:
        """As `send`, but nobody gets the message. Only FCM can do this."""
        try:
            return await self._validate(message, destination, keys)
        except Exception as error:  # noqa: BLE001 - as in `send`
            return self._own_outcome(error) or self._outcome_of_error(error)

    def renew(self, keys: KeysT) -> None:
        """Drops connections and access tokens that are kept for these keys, because a new one of
        each was accepted where the kept ones were refused. Calls in flight go on."""

    @abstractmethod
    async def close(self) -> None: ...

    @abstractmethod
    async def _send(self, message: Message, destination: DestinationT, keys: KeysT) -> Outcome: ...

    async def _validate(self, message: Message, destination: DestinationT, keys: KeysT) -> Outcome:
        raise NotImplementedError

    def _own_outcome(self, _error: Exception) -> Outcome | None:
        """The outcome of an error that is specific to this transport; None for other errors."""
        return None

    def _outcome_of_error(self, error: Exception) -> Outcome:
        match error:
            case PayloadTooLargeError():
                detail = f"more than {error.limit} bytes"
                return Rejected("payload_too_large", detail, was_called=False)
            case TimeoutError():
                return self._outage("timeout")
            case socket.gaierror():
                return self._outage("name_not_resolved")
            case ssl.SSLError():
                return self._outage("tls_failed")
            case OSError():
                return self._outage("connection_failed", type(error).__name__)
            case _:
                # Neither text nor traceback is logged: both may contain the address.
                name = type(error).__name__
                logger.error(self.unexpected_event, error=name)
                return Deferred("unexpected_error", name, was_called=False)

    def _outage(self, code: str, detail: str = "") -> Deferred:
        return Deferred(code, detail, self.outage_wait, outage=True)


def compact_json(value: object) -> bytes:
    """UTF-8 without spaces: payloads have a limit in bytes."""
    return _ENCODER.encode(value).encode()


def with_token(fields: bytes, token: str) -> bytes:
    """The JSON object `fields`, which is not empty, with the tracking token if there is one."""
    return fields[:-1] + b',"token":' + compact_json(token) + b"}" if token else fields


def without_empty(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value}
