"""One HTTP/2 connection to the APNs sandbox: reads requests, responds, misbehaves.

GOAWAY frames bypass h2, which sends and reads nothing after one.
"""

import asyncio
import fcntl
import logging
import socket
import struct
import sys
import termios
from collections.abc import Callable, Set
from dataclasses import dataclass, field
from typing import Final, cast

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.events import (
    ConnectionTerminated,
    DataReceived,
    Event,
    PingAckReceived,
    RequestReceived,
    StreamEnded,
    StreamReset,
)
from h2.exceptions import H2Error
from h2.settings import SettingCodes
from hyperframe.frame import GoAwayFrame
from typing_extensions import override

from sandbox.apns.behaviours import ApnsMode
from sandbox.apns.checks import MAX_PAYLOAD, ApnsRequest
from sandbox.apns.confirming import Resets, Unconfirmed
from sandbox.apns.send import ApnsResource, PreparedResponse
from sandbox.apns.tokens import Identity

logger = logging.getLogger(__name__)

STREAMS_BEFORE_TOKEN: Final = 1
STREAMS: Final = 1_000

_LINGER_SECONDS: Final = 0.3
_GARBAGE: Final = b"HTTP/1.1 400 Bad Request\r\nServer: no APNs\r\n\r\n"
_LOOK_AGAIN_SECONDS: Final = 0.002
_PING: Final = b"sandbox?"
# struct linger: on, for zero seconds, which makes close() send RST
_LINGER_NOT: Final = struct.pack("ii", 1, 0)


@dataclass(slots=True)
class _Incoming:
    headers: list[tuple[str, str]]
    body: bytearray = field(default_factory=bytearray)


@dataclass(slots=True)
class _Outgoing:
    """`ends_apart`: a separate empty DATA frame ends the stream."""

    prepared: PreparedResponse
    unsent: bytes
    ends_apart: bool


class ApnsConnection(asyncio.Protocol):
    """A connection. It is in `living` while it is open."""

    def __init__(
        self, resource: ApnsResource, number: int, living: "set[ApnsConnection]", streams: int
    ) -> None:
        self._resource = resource
        self._number = number
        self._living = living
        self._streams = streams
        self._identity = Identity(resource.registry.keys)
        self._h2 = H2Connection(H2Configuration(client_side=False, header_encoding=None))
        self._incoming: dict[int, _Incoming] = {}
        self._open: set[int] = set()
        self._unsent: dict[int, _Outgoing] = {}
        self._unconfirmed = Unconfirmed(self._ping)
        self._resets = Resets()
        self._timers: set[asyncio.TimerHandle] = set()
        self._ended = asyncio.Event()
        self._highest_taken = 0
        self._last_stream: int | None = None
        self._is_opened_up = False
        self._is_cut = False
        self._acts: dict[ApnsMode, Callable[[int, PreparedResponse], None]] = {
            ApnsMode.SLOW: self._later,
            ApnsMode.ENDLESS: self._respond_without_end,
            ApnsMode.HANG: lambda _, __: None,
            ApnsMode.RESET: self._reset,
            ApnsMode.CLOSE_AFTER_ACCEPT: self._close_after_accept,
            ApnsMode.GARBAGE: self._write_garbage,
            ApnsMode.RST_STREAM: self._rst_stream,
            ApnsMode.REFUSED_STREAM: self._reject_stream,
            ApnsMode.GOAWAY: self._respond_and_go,
            ApnsMode.GOAWAY_FIRST: self._go_and_respond,
            ApnsMode.GOAWAY_UNPROCESSED: self._go_unprocessed,
            ApnsMode.STREAMS: self._limit_and_respond,
        }

    async def cut(self) -> None:
        self._transport.abort()
        await self._ended.wait()

    # What asyncio calls

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._living.add(self)
        self._h2.initiate_connection()
        self._limit_streams(STREAMS_BEFORE_TOKEN)
        self._flush()

    @override
    def data_received(self, data: bytes) -> None:
        if self._is_cut:
            return
        try:
            events = self._h2.receive_data(data)
            given_up = set(self._resets.feed(data))
            self._unconfirmed.give_up(given_up)
            for event in events:
                self._take(event, given_up)
            self._send_bodies()
        except H2Error as error:
            logger.warning("sandbox.apns_protocol_error", extra={"error": type(error).__name__})
            self._flush()
            self._close()
            return
        self._flush()
        self._end_if_drained()

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        for timer in self._timers:
            timer.cancel()
        self._unconfirmed.lose()
        self._open.clear()
        self._living.discard(self)
        self._ended.set()

    # Requests

    def _take(self, event: Event, given_up: Set[int]) -> None:
        """Handles an event. `given_up`: streams that the client resets in the same data, which get
        no response."""
        stream_id = getattr(event, "stream_id", None) or 0
        match event:
            case RequestReceived() if self._is_wanted(stream_id) and stream_id not in given_up:
                fields = event.headers or ()
                self._incoming[stream_id] = _Incoming([(_text(n), _text(v)) for n, v in fields])
                self._open.add(stream_id)
            case DataReceived():
                self._h2.acknowledge_received_data(event.flow_controlled_length or 0, stream_id)
                self._take_body(stream_id, event.data or b"")
            case StreamEnded() if stream_id in self._incoming:
                self._act_on(stream_id, self._incoming.pop(stream_id))
            case StreamReset():
                self._forget(stream_id)
            case PingAckReceived():
                self._unconfirmed.confirm()
            case ConnectionTerminated():
                self._close()

    def _is_wanted(self, stream_id: int) -> bool:
        return self._last_stream is None or stream_id <= self._last_stream

    def _take_body(self, stream_id: int, data: bytes) -> None:
        """Stores at most one byte more than allowed, to notice that the body is too large."""
        incoming = self._incoming.get(stream_id)
        if incoming:
            incoming.body += data[: MAX_PAYLOAD + 1 - len(incoming.body)]

    def _act_on(self, stream_id: int, incoming: _Incoming) -> None:
        prepared = self._resource.prepare(
            ApnsRequest(incoming.headers, bytes(incoming.body)),
            self._identity,
            connection=self._number,
            open_streams=len(self._open),
        )
        if self._identity.is_known and not self._is_opened_up:
            self._is_opened_up = True
            self._limit_streams(self._streams)
        act = self._acts.get(ApnsMode(prepared.behaviour.mode), self._respond)
        act(stream_id, prepared)
        self._highest_taken = max(self._highest_taken, stream_id)

    def _forget(self, stream_id: int) -> None:
        self._incoming.pop(stream_id, None)
        self._unsent.pop(stream_id, None)
        self._open.discard(stream_id)

    # Responses

    def _respond(self, stream_id: int, prepared: PreparedResponse) -> None:
        if stream_id not in self._open or self._is_ending:
            return
        response = prepared.response
        headers = [(":status", str(response.status))]
        headers += [(name.lower(), value) for name, value in response.headers.items()]
        body = response.body.encode()
        self._h2.send_headers(stream_id, headers, end_stream=not body)
        ends_apart = prepared.behaviour.mode == ApnsMode.EMPTY_DATA
        if body:
            self._unsent[stream_id] = _Outgoing(prepared, body, ends_apart)
            self._send_bodies()
        else:
            self._complete(stream_id, prepared)
        self._flush()

    def _send_bodies(self) -> None:
        """Sends as much as the client's windows allow."""
        for stream_id, out in list(self._unsent.items()):
            while size := self._sendable(stream_id, out):
                part, out.unsent = out.unsent[:size], out.unsent[size:]
                ends = not (out.unsent or out.ends_apart)
                self._h2.send_data(stream_id, part, end_stream=ends)
            if not out.unsent:
                del self._unsent[stream_id]
                if out.ends_apart:
                    self._h2.send_data(stream_id, b"", end_stream=True)
                self._complete(stream_id, out.prepared)

    def _sendable(self, stream_id: int, out: _Outgoing) -> int:
        window = self._h2.local_flow_control_window(stream_id)
        return max(0, min(len(out.unsent), window, self._h2.max_outbound_frame_size))

    def _complete(self, stream_id: int, prepared: PreparedResponse) -> None:
        """Notes the response before the last byte, so that no client reads it earlier."""
        self._open.discard(stream_id)
        if prepared.receipt:
            self._unconfirmed.add(stream_id, prepared.receipt)
            prepared.receipt.status = prepared.response.status
            prepared.receipt.taken = prepared.response.taken
            prepared.receipt.complete = True

    def _ping(self) -> None:
        if not self._is_ending:
            self._h2.ping(_PING)
            self._flush()

    # Misbehaviour

    def _later(self, stream_id: int, prepared: PreparedResponse) -> None:
        loop = asyncio.get_running_loop()
        self._timers.add(
            loop.call_later(prepared.behaviour.seconds, self._respond_late, stream_id, prepared)
        )

    def _respond_late(self, stream_id: int, prepared: PreparedResponse) -> None:
        self._respond(stream_id, prepared)
        self._end_if_drained()

    def _respond_without_end(self, stream_id: int, prepared: PreparedResponse) -> None:
        if self._is_ending:
            return
        self._h2.send_headers(stream_id, [(":status", str(prepared.response.status))])
        self._complete(stream_id, prepared)
        self._flush()
        self._cut_with(self._transport.close)

    def _reset(self, _stream_id: int, _prepared: PreparedResponse) -> None:
        connection = self._transport.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_NOT)
        self._cut_with(self._transport.abort)

    def _close_after_accept(self, _stream_id: int, prepared: PreparedResponse) -> None:
        if prepared.receipt and not self._is_ending:
            prepared.receipt.taken = True
        self._cut_with(self._transport.close)

    def _write_garbage(self, _stream_id: int, _prepared: PreparedResponse) -> None:
        self._cut_with(self._write_garbage_and_close)

    def _write_garbage_and_close(self) -> None:
        self._transport.write(_GARBAGE)
        self._transport.close()

    def _cut_with(self, act: Callable[[], None]) -> None:
        """Stops responding, and acts when all earlier responses have arrived. A reset would discard
        unsent responses, and it would not be known which."""
        if not self._is_ending:
            self._is_cut = True
            self._cut_once_arrived(act)

    def _cut_once_arrived(self, act: Callable[[], None]) -> None:
        if _unacknowledged(self._transport.get_extra_info("socket")):
            loop = asyncio.get_running_loop()
            self._timers.add(loop.call_later(_LOOK_AGAIN_SECONDS, self._cut_once_arrived, act))
        else:
            self._unconfirmed.forget()
            act()

    @property
    def _is_ending(self) -> bool:
        return self._is_cut or self._transport.is_closing()

    def _rst_stream(self, stream_id: int, _prepared: PreparedResponse) -> None:
        self._h2.reset_stream(stream_id, ErrorCodes.INTERNAL_ERROR)
        self._forget(stream_id)

    def _reject_stream(self, stream_id: int, _prepared: PreparedResponse) -> None:
        self._h2.reset_stream(stream_id, ErrorCodes.REFUSED_STREAM)
        self._forget(stream_id)

    def _respond_and_go(self, stream_id: int, prepared: PreparedResponse) -> None:
        self._respond(stream_id, prepared)
        self._go(max(stream_id, self._highest_taken))

    def _go_and_respond(self, stream_id: int, prepared: PreparedResponse) -> None:
        self._go(max(stream_id, self._highest_taken))
        self._later(stream_id, prepared)

    def _go_unprocessed(self, stream_id: int, prepared: PreparedResponse) -> None:
        """Rejects the request with GOAWAY, or with a reset of the stream if a later request was
        already accepted."""
        if self._highest_taken > stream_id:
            self._reject_stream(stream_id, prepared)
            return
        self._forget(stream_id)
        self._go(self._highest_taken)

    def _go(self, last_stream: int) -> None:
        """Sends GOAWAY (RFC 9113 section 6.8). Requests up to `last_stream` get a response."""
        self._flush()
        self._last_stream = last_stream
        for stream_id in [each for each in self._open if each > last_stream]:
            self._forget(stream_id)
        self._transport.write(GoAwayFrame(0, last_stream_id=last_stream).serialize())

    def _limit_and_respond(self, stream_id: int, prepared: PreparedResponse) -> None:
        self._limit_streams(prepared.behaviour.streams)
        self._respond(stream_id, prepared)

    def _limit_streams(self, streams: int) -> None:
        self._h2.update_settings({SettingCodes.MAX_CONCURRENT_STREAMS: streams})

    def _end_if_drained(self) -> None:
        """Gives the client time to close. If the server closed at once while the client is sending,
        TCP would reset the connection, and the client might not read GOAWAY."""
        if self._last_stream is not None and not self._open:
            loop = asyncio.get_running_loop()
            self._timers.add(loop.call_later(_LINGER_SECONDS, self._close))

    def _close(self) -> None:
        """Closes the connection such that the client can read all responses."""
        self._unconfirmed.forget()
        self._transport.close()

    def _flush(self) -> None:
        data = self._h2.data_to_send()
        if data and not self._transport.is_closing():
            self._transport.write(data)


def _unacknowledged(connection: socket.socket) -> int:
    """How many written bytes have not arrived yet (Linux, tcp(7), SIOCOUTQ)."""
    count = fcntl.ioctl(connection.fileno(), termios.TIOCOUTQ, bytes(4))
    return int.from_bytes(count, sys.byteorder)


def _text(value: str | bytes) -> str:
    return value if isinstance(value, str) else value.decode("latin-1")
