"""One HTTP/1.1 connection (RFC 9112) with one request at a time. llhttp, the parser of Node.js,
parses the responses."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, cast

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser
from typing_extensions import override

from pushsvc.common.egress import MAX_RESPONSE_BODY, Response

# Bytes of one response besides the part of its body that is read: headers, framing, and the rest of
# a body that is not much longer.
_MORE: Final = 60 * 1024
MAX_RESPONSE: Final = MAX_RESPONSE_BODY + _MORE

_SWITCHING_PROTOCOLS: Final = 101


class NoResponseError(ConnectionError):
    """The connection ended before a response, or the data was not a valid response."""


class Writing:
    """The requests that begin in one turn of the event loop, on any connections.

    Writing wakes the receiver, and the next message would be encrypted with cold caches. So they
    are written together, when all are encrypted.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._unwritten: list[tuple[Connection, bytes]] = []

    def add(self, connection: "Connection", request: bytes) -> None:
        if not self._unwritten:
            self._loop.call_soon(self._write)
        self._unwritten.append((connection, request))

    def _write(self) -> None:
        unwritten, self._unwritten = self._unwritten, []
        for connection, request in unwritten:
            connection.write(request)


class Connection(asyncio.Protocol):
    """For one request at a time. It never sends a request twice. Of a response, it reads at most
    `max_body` bytes of the body."""

    def __init__(self, writing: Writing, max_body: int = MAX_RESPONSE_BODY) -> None:
        self._loop = asyncio.get_running_loop()
        self._parser = HttpResponseParser(self)
        # Otherwise a line end without CR, or an unusual header, would hide an accepted message.
        self._parser.set_dangerous_leniencies(
            lenient_headers=True, lenient_optional_cr_before_lf=True
        )
        self._transport: asyncio.Transport | None = None
        self._future: asyncio.Future[Response] | None = None
        self._until = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._status = 0
        self._headers: list[tuple[bytes, bytes]] = []
        self._writing = writing
        self._max_body = max_body
        self._body = bytearray()
        self._left = max_body + _MORE
        self._is_whole = True
        self.ended = asyncio.Event()
        self.idle_since = 0.0

    @property
    def is_reusable(self) -> bool:
        """Whether another request may follow."""
        transport = self._transport
        return self._is_whole and transport is not None and not transport.is_closing()

    async def send(self, request: bytes, until: float) -> Response:
        """Sends a whole request and returns the response. `until` is on the loop's clock. Requires
        `is_reusable`.

        Raises OSError or TimeoutError if no status arrived. If the status arrived, the body is the
        part that arrived.
        """
        self._status, self._body, self._left = 0, bytearray(), self._max_body + _MORE
        self._headers = []
        self._is_whole = False
        self._future = self._loop.create_future()
        self._until = until
        if self._timer is None or until < self._timer.when():
            self._time_out_at(until)
        self._writing.add(self, request)
        try:
            return await self._future
        finally:
            self._future = None
            if not self._is_whole:
                self.abort()

    def write(self, request: bytes) -> None:
        """For Writing alone."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(request)

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    # What asyncio calls

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    @override
    def data_received(self, data: bytes) -> None:
        if self._future is None:  # no request is in flight
            self.abort()
            return
        taken = data[: self._left]  # it may contain the status
        self._left -= len(taken)
        try:
            self._parser.feed_data(taken)
        except (HttpParserError, HttpParserUpgrade) as error:
            self._end(NoResponseError(type(error).__name__))
            return
        is_enough = len(self._body) == self._max_body and not self._future.done()
        if len(taken) < len(data) or is_enough:
            self._end(NoResponseError("too long"))

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self._end(exc or NoResponseError("closed"))
        if self._timer:
            self._timer.cancel()
        self.ended.set()

    def _time_out_at(self, until: float) -> None:
        """The timer stays when a response arrives in time, as nearly all do. Then it serves a later
        request."""
        if self._timer:
            self._timer.cancel()
        self._timer = self._loop.call_at(until, self._time_out)

    def _time_out(self) -> None:
        self._timer = None
        if self._future is None:
            return
        if self._loop.time() < self._until:
            self._time_out_at(self._until)
        else:
            self._end(TimeoutError())

    def _end(self, error: Exception) -> None:
        """Ends an incomplete response. The response counts if its status arrived."""
        self._is_whole = False
        if self._future is None or self._future.done():
            return
        if self._status:
            self._future.set_result(self._response(is_whole=False))
        else:
            self._future.set_exception(error)

    # What the parser calls

    def on_message_begin(self) -> None:
        if self._status:  # a second response to one request
            self._is_whole = False

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._status:  # else it is a trailer
            self._headers.append((name, value))

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        if status >= 200 or status == _SWITCHING_PROTOCOLS:
            self._status = status
        else:  # an interim response (RFC 9110 section 15.2)
            self._headers = []

    def on_body(self, part: bytes) -> None:
        self._body += part[: self._max_body - len(self._body)]

    def on_message_complete(self) -> None:
        if self._status and self._future and not self._future.done():
            self._is_whole = self._parser.should_keep_alive()
            self._future.set_result(self._response(is_whole=True))

    def _response(self, *, is_whole: bool) -> Response:
        return Response(self._status, _Headers(self._headers), bytes(self._body), is_whole)


class _Headers(Mapping[str, str]):
    """Header fields, without regard to the case of their names. They are decoded when they are
    read, because those of an accepted message are not read."""

    def __init__(self, fields: Sequence[tuple[bytes, bytes]]) -> None:
        self._fields = fields

    @override
    def __getitem__(self, name: str) -> str:
        """The first value."""
        wanted = name.lower().encode("latin-1")
        for each, value in self._fields:
            if each.lower() == wanted:
                return value.decode("latin-1")
        raise KeyError(name)

    @override
    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys(name.decode("latin-1") for name, _ in self._fields))

    @override
    def __len__(self) -> int:
        return sum(1 for _ in self)
