"""Requests over HTTP/1.1 on kept connections, with the few features that our calls need.

It follows no redirects, stores no cookies, decompresses no bodies, and reads no proxies or
passwords from the environment.
"""

import asyncio
import ssl
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Final
from urllib.parse import urlsplit

from aiohappyeyeballs import AddrInfoType

from notifications_app.delivery.http_connection import Connection, Writing
from pushsvc.common.egress import (
    MAX_RESPONSE_BODY,
    LookUp,
    MakeSocket,
    Response,
    any_socket,
    connect,
    look_up,
    public_socket,
)

ADDRESSES_OF_A_FAMILY: Final = 2

# For how many origins and batches a client keeps the encoded header fields.
_CACHED_FIELDS: Final = 64
_PORTS: Final = {"http": 80, "https": 443}


class ClientClosedError(ConnectionError):
    """The client was closed before the request was sent."""


class HttpClient:
    """A client for one event loop.

    `connections_per_origin`: how many requests to an origin may be in flight, each on its own
    connection; others wait in a queue. `keepalive`: seconds for which an idle connection stays
    open. `is_guarded`: anyone can name the hosts, so the client uses only https and only public
    addresses. `max_body`: bytes of a response's body that are read.
    """

    def __init__(
        self,
        tls: ssl.SSLContext,
        *,
        connections_per_origin: int,
        keepalive: float,
        is_guarded: bool = False,
        look_up: LookUp = look_up,
        max_body: int = MAX_RESPONSE_BODY,
    ) -> None:
        self._tls = tls
        self._connections_per_origin = connections_per_origin
        self._keepalive = keepalive
        self._is_guarded = is_guarded
        self._look_up = look_up
        self._max_body = max_body
        self._loop = asyncio.get_running_loop()
        self._origins: dict[str, _Origin] = {}
        self._writing = Writing()
        # Encoded once, because all requests of a batch to one origin have the same.
        self._fields = lru_cache(maxsize=_CACHED_FIELDS)(_encoded)
        self._sweep: asyncio.TimerHandle | None = None
        self._is_closed = False

    async def post(
        self, url: str, *, headers: Mapping[str, str], body: bytes, until: float
    ) -> Response:
        """Sends one request to exactly this `url`, which has no fragment. Never sends it twice. A
        redirect is a response like any other.

        `until`, on the loop's clock, limits all waits, including the wait in the queue. Raises
        OSError or TimeoutError if no status arrived, and ValueError if the request would be
        malformed. If the status arrived, the body is the part that arrived.
        """
        length = f"Content-Length: {len(body)}\r\n"
        place, head = self._begun("POST", url, headers, length)
        return await place.send(head + body, until)

    async def get(self, url: str, *, headers: Mapping[str, str], until: float) -> Response:
        """As `post`, without a body. Of a long response, only the beginning is read."""
        place, head = self._begun("GET", url, headers)
        return await place.send(head, until)

    def _begun(
        self, method: str, url: str, headers: Mapping[str, str], length: str = ""
    ) -> "tuple[_Origin, bytes]":
        """The place of a request, and its bytes before the body. `length`: as a header field."""
        if self._is_closed:
            raise ClientClosedError
        origin, path = split(url)
        place = self._origins.get(origin) or self._add(origin)
        _check(path)
        if " " in path:
            raise ValueError("a character that no path may have")
        fields = self._fields(place.authority, tuple(headers.items()))
        return place, f"{method} {path} HTTP/1.1\r\n{fields}{length}\r\n".encode()

    async def close(self) -> None:
        """Closes all connections, which ends the requests in flight."""
        self._is_closed = True
        if self._sweep:
            self._sweep.cancel()
        origins, self._origins = self._origins, {}
        for origin in origins.values():
            await origin.close()

    def _add(self, text: str) -> "_Origin":
        if self._is_guarded and not text.startswith("https://"):
            raise ValueError("not https")
        place = self._origins[text] = _Origin(
            text,
            self._tls,
            room=self._connections_per_origin,
            keepalive=self._keepalive,
            make_socket=public_socket if self._is_guarded else any_socket,
            look_up=self._look_up,
            make_connection=partial(Connection, self._writing, self._max_body),
        )
        if self._sweep is None:
            self._sweep = self._loop.call_later(self._keepalive, self._end_idle)
        return place

    def _end_idle(self) -> None:
        """Closes idle connections, and removes origins without a connection or a request."""
        for text, origin in list(self._origins.items()):
            origin.end_idle()
            if origin.is_unused:
                del self._origins[text]
        again = self._loop.call_later(self._keepalive, self._end_idle) if self._origins else None
        self._sweep = again


class _Origin:
    """The connections to one origin, and the requests that wait for them."""

    def __init__(
        self,
        text: str,
        tls: ssl.SSLContext,
        *,
        room: int,
        keepalive: float,
        make_socket: MakeSocket,
        look_up: LookUp,
        make_connection: Callable[[], Connection],
    ) -> None:
        parts = urlsplit(text)
        self.authority = parts.netloc
        self._host = parts.hostname or ""
        self._port = parts.port or _PORTS[parts.scheme]
        self._tls = tls if parts.scheme == "https" else None
        self._keepalive = keepalive
        self._make_socket = make_socket
        self._look_up = look_up
        self._make_connection = make_connection
        self._loop = asyncio.get_running_loop()
        self._room = room
        self._in_flight = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._connections: set[Connection] = set()
        # The connection that was used last is used next, so that the others become idle.
        self._idle: list[Connection] = []
        self._looking_up: asyncio.Task[Sequence[AddrInfoType]] | None = None
        self._is_closed = False

    @property
    def is_unused(self) -> bool:
        return not (self._in_flight or self._connections)

    async def send(self, request: bytes, until: float) -> Response:
        if self._in_flight < self._room:
            self._in_flight += 1
        else:
            await self._wait_in_line(until)
        try:
            if self._is_closed:
                raise ClientClosedError
            connection = self._take_idle()
            if connection is None:
                async with asyncio.timeout_at(until):
                    connection = await self._connected()
            try:
                return await connection.send(request, until)
            finally:
                self._give_back(connection)
        finally:
            self._leave()

    async def close(self) -> None:
        self._is_closed = True
        if self._looking_up:
            self._looking_up.cancel()
        for connection in self._connections:
            connection.abort()
        for connection in list(self._connections):
            await connection.ended.wait()

    def end_idle(self) -> None:
        """Closes connections that have been idle for too long, or that the server has closed."""
        for connection in self._idle:
            if not self._is_fresh(connection):
                self._end(connection)
        self._idle = [each for each in self._idle if each in self._connections]

    async def _wait_in_line(self, until: float) -> None:
        """Waits for the place of a request that ends."""
        turn: asyncio.Future[None] = self._loop.create_future()
        self._waiting.append(turn)
        try:
            async with asyncio.timeout_at(until):
                await turn
        except BaseException:
            if turn.done() and not turn.cancelled():
                self._leave()
            raise

    def _leave(self) -> None:
        """Passes the place of a request to the next one in line."""
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self._in_flight -= 1

    def _take_idle(self) -> Connection | None:
        while self._idle:
            connection = self._idle.pop()
            if self._is_fresh(connection):
                return connection
            self._end(connection)
        return None

    def _give_back(self, connection: Connection) -> None:
        if connection.is_reusable:
            connection.idle_since = self._loop.time()
            self._idle.append(connection)
        else:
            self._end(connection)

    def _is_fresh(self, connection: Connection) -> bool:
        idle = self._loop.time() - connection.idle_since
        return connection.is_reusable and idle < self._keepalive

    def _end(self, connection: Connection) -> None:
        connection.abort()
        self._connections.discard(connection)

    async def _connected(self) -> Connection:
        connection = await connect(
            self._make_connection,
            few(await self._addresses()),
            host=self._host,
            tls=self._tls,
            make_socket=self._make_socket,
        )
        if self._is_closed:
            connection.abort()
            raise ClientClosedError
        self._connections.add(connection)
        return connection

    async def _addresses(self) -> Sequence[AddrInfoType]:
        """The addresses of the host. Concurrent requests share a look-up."""
        if self._looking_up is None:
            self._looking_up = self._loop.create_task(self._look_up(self._host, self._port))
            self._looking_up.add_done_callback(self._looked_up)
        return await asyncio.shield(self._looking_up)

    def _looked_up(self, task: asyncio.Task[Sequence[AddrInfoType]]) -> None:
        self._looking_up = None
        if not task.cancelled():
            task.exception()  # otherwise asyncio logs it if no request waits for it any more


def few(addresses: Sequence[AddrInfoType]) -> Sequence[AddrInfoType]:
    """The first ADDRESSES_OF_A_FAMILY for IPv6, and as many for IPv4.

    Each address that does not respond occupies an open file for the whole timeout, and the owner of
    the host's name decides how many addresses it has.
    """
    seen: Counter[int] = Counter()
    found = []
    for address in addresses:
        seen[address[0]] += 1
        if seen[address[0]] <= ADDRESSES_OF_A_FAMILY:
            found.append(address)
    return found


def split(url: str) -> tuple[str, str]:
    """Splits a URL into the origin, and path with query."""
    end = url.find("/", len("https://"))
    return (url, "/") if end < 0 else (url[:end], url[end:])


def _encoded(authority: str, headers: Sequence[tuple[str, str]]) -> str:
    """The header fields that requests have in common. Raises ValueError."""
    lines = [
        f"Host: {authority}",
        "User-Agent: pushsvc",
        *[f"{name}: {value}" for name, value in headers],
    ]
    _check("".join(lines))
    return "".join(f"{line}\r\n" for line in lines)


def _check(text: str) -> None:
    """Raises ValueError if the text could become another header field or request."""
    if not (text.isascii() and text.isprintable()):
        raise ValueError("a character that no request may have there")
