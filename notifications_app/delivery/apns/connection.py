"""One HTTP/2 connection to APNs.

It replaces the connections of aioapns 4.0, which have these errors: they acknowledge no DATA, match
responses by a header that may be missing, parse each DATA frame as JSON, ignore RST_STREAM and
responses without a body, close while requests wait for more than ten seconds, and miscount streams
when SETTINGS change the limit.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias, assert_never, cast

import structlog
from hpack import HeaderTuple
from multidict import CIMultiDict, CIMultiDictProxy
from typing_extensions import override

from notifications_app.delivery.apns.frames import ErrorCode, ProtocolError
from notifications_app.delivery.apns.http2 import (
    LAST_STREAM_ID,
    Body,
    Ended,
    Goaway,
    Head,
    Http2,
    Http2Event,
    Pong,
    Reset,
)
from notifications_app.delivery.types import clean_text
from pushsvc.common.egress import MAX_RESPONSE_BODY, Response

logger = structlog.stdlib.get_logger(__name__)

# The most requests at once, even if the server allows more. Apple's SETTINGS allow 1,000.
MAX_STREAMS: Final = 1_000
# How long a pool waits for a connection's first response before it opens another connection.
PROOF_SECONDS: Final = 2.0
# After this much silence, the next request is sent together with a PING.
DOUBTFUL_SECONDS: Final = 30.0
# An idle connection sends a PING after one or two of these periods, so that load balancers and NATs
# do not forget it.
IDLE_SECONDS: Final = 150.0
# A connection whose PING is not acknowledged within this time is closed.
PING_SECONDS: Final = 5.0
# A connection that had no request for this time is closed.
UNUSED_SECONDS: Final = 3_600.0
# A connection whose server leaves so many bytes unread is closed. MAX_STREAMS requests have less.
MAX_UNREAD: Final = 16 * 1024 * 1024

_PING: Final = b"pushsvc?"
_NO_FIELDS: Final = CIMultiDictProxy[str](CIMultiDict())

Headers: TypeAlias = Sequence[HeaderTuple]


class NotProcessedError(Exception):
    """The server reports that it did not process the request. It may be sent again at once."""


class ConnectionLostError(ConnectionError):
    """The connection ended before the response. Whether the request was processed is not known."""


class StreamResetError(Exception):
    """The server reset only this request. `args` has the HTTP/2 error code."""


@dataclass(slots=True)
class _Stream:
    future: asyncio.Future[Response]
    unsent: bytes
    until: float
    status: int = 0
    headers: Mapping[str, str] = field(default_factory=lambda: _NO_FIELDS)
    body: bytearray = field(default_factory=bytearray)

    def response(self) -> Response:
        return Response(self.status, self.headers, bytes(self.body))


class Connection(asyncio.Protocol):
    """A protocol for `create_connection` with TLS and ALPN h2. Call `post` only if there is `room`.

    It calls `on_change` whenever `room` may have changed. A request that is cancelled or reset does
    not affect the others. It never sends a request twice.
    """

    def __init__(self, on_change: Callable[[], None]) -> None:
        self._on_change = on_change
        self._loop = asyncio.get_running_loop()
        self._http2 = Http2()
        self._transport: asyncio.Transport | None = None
        self._streams: dict[int, _Stream] = {}
        self._unsent: dict[int, _Stream] = {}
        self._is_flush_due = False
        self._next_timeout: asyncio.TimerHandle | None = None
        self._ping_deadline: asyncio.TimerHandle | None = None
        self._idle_check: asyncio.TimerHandle | None = None
        self._heard_at = self._used_at = self._loop.time()
        self._ended = asyncio.Event()
        self.is_proven = False
        self.is_draining = False

    @property
    def is_lost(self) -> bool:
        return self._ended.is_set()

    @property
    def is_usable(self) -> bool:
        """Whether the connection accepts requests, now or once there is room."""
        transport = self._transport
        return transport is not None and not (self.is_draining or transport.is_closing())

    @property
    def is_idle(self) -> bool:
        return not self._streams

    @property
    def waits_for_proof(self) -> bool:
        """Whether the first request is in flight. Its response may soon make room for others."""
        return not self.is_proven and self._loop.time() - self._used_at < PROOF_SECONDS

    @property
    def room(self) -> int:
        """How many requests may begin now.

        Until APNs has seen a valid provider token it allows one, whatever SETTINGS say (Apple,
        "Sending notification requests to APNs").
        """
        if not self.is_usable:
            return 0
        allowed = self._http2.max_streams if self.is_proven else 1
        return max(0, min(allowed, MAX_STREAMS) - len(self._streams))

    async def post(self, headers: Headers, body: bytes, until: float) -> Response:
        """Sends a request and returns the response, with at most MAX_RESPONSE_BODY bytes of its
        body, and without header fields if its status is 200. `until` is on the loop's clock.
        Requires `room`.

        Raises NotProcessedError, ConnectionLostError, StreamResetError or TimeoutError.
        """
        stream_id, stream = self._open(headers, body, until)
        try:
            return await stream.future
        except (asyncio.CancelledError, TimeoutError):
            self._give_up(stream_id)
            raise

    def close(self) -> None:
        """Accepts no more requests, and closes when those in flight have ended."""
        self.is_draining = True
        self._end_if_drained()

    async def wait_closed(self, seconds: float) -> None:
        """Waits until the connection has ended; aborts it after `seconds`."""
        try:
            async with asyncio.timeout(seconds):
                await self._ended.wait()
        except TimeoutError:
            self._abort("closed")
            await self._ended.wait()

    # What asyncio calls

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._flush()
        self._check_idle()

    @override
    def data_received(self, data: bytes) -> None:
        if self._is_closing():
            return
        self._heard_at = self._loop.time()
        try:
            for event in self._http2.receive(data):
                self._take(event)
        except ProtocolError as error:
            self._abort(str(error))
            return
        self._send_bodies()
        self._flush()
        self._end_if_drained()
        self._on_change()

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self._ended.set()
        for timer in (self._next_timeout, self._ping_deadline, self._idle_check):
            if timer:
                timer.cancel()
        for stream_id in list(self._streams):
            self._fail(stream_id, ConnectionLostError(type(exc).__name__ if exc else "closed"))
        self._on_change()

    # Requests

    def _open(self, headers: Headers, body: bytes, until: float) -> tuple[int, _Stream]:
        self._used_at = self._loop.time()
        if self._used_at - self._heard_at > DOUBTFUL_SECONDS:
            self._ping()
        if not self.is_proven:
            self._loop.call_later(PROOF_SECONDS, self._on_change)
        stream_id = self._http2.open(headers)
        if stream_id + 2 > LAST_STREAM_ID:  # only after days
            self.is_draining = True
        stream = _Stream(self._loop.create_future(), body, until)
        self._streams[stream_id] = self._unsent[stream_id] = stream
        self._send_body(stream_id, stream)
        self._flush_soon()
        if self._next_timeout is None or until < self._next_timeout.when():
            self._time_out_at(until)
        return stream_id, stream

    def _time_out_at(self, until: float) -> None:
        """One timer for all requests, because nearly all of them end before their time. A timer for
        each would cost a twentieth of a message."""
        if self._next_timeout:
            self._next_timeout.cancel()
        self._next_timeout = self._loop.call_at(until, self._time_out)

    def _time_out(self) -> None:
        self._next_timeout = None
        waiting = [each for each in self._streams.values() if not each.future.done()]
        now = self._loop.time()
        for stream in waiting:
            if stream.until <= now:
                stream.future.set_exception(TimeoutError())
        left = [each.until for each in waiting if each.until > now]
        if left:
            self._time_out_at(min(left))

    def _send_bodies(self) -> None:
        for stream_id, stream in list(self._unsent.items()):
            self._send_body(stream_id, stream)

    def _send_body(self, stream_id: int, stream: _Stream) -> None:
        """Sends as much as flow control allows (RFC 9113 section 5.2). The rest is sent later."""
        while stream.unsent and (size := self._http2.sendable(stream_id)):
            part, stream.unsent = stream.unsent[:size], stream.unsent[size:]
            self._http2.send(stream_id, part, is_last=not stream.unsent)
        if not stream.unsent:
            del self._unsent[stream_id]

    def _give_up(self, stream_id: int) -> None:
        """Resets a request whose response is not awaited any more. Sends a PING, because the server
        may be dead."""
        if self._remove(stream_id) is None or self._is_closing():
            return
        self._http2.reset(stream_id, ErrorCode.CANCEL)
        self._ping()
        self._flush()
        self._end_if_drained()
        self._on_change()

    def _remove(self, stream_id: int) -> _Stream | None:
        self._unsent.pop(stream_id, None)
        return self._streams.pop(stream_id, None)

    # Responses

    def _take(self, event: Http2Event) -> None:
        match event:
            case Head():
                self._take_head(event)
            case Body():
                self._take_body(event)
            case Ended():
                self._finish(event.stream_id)
            case Reset():
                self._take_reset(event)
            case Goaway():
                self._drain(event)
            case Pong():
                self._take_pong()
            case _:
                assert_never(event)

    def _take_head(self, event: Head) -> None:
        stream = self._streams.get(event.stream_id)
        if stream is None or stream.status:  # then these are trailers
            return
        status = next((value for name, value in event.fields if name == ":status"), "")
        if status.startswith("1"):  # an interim response (RFC 9110 section 15.2)
            return
        if status != "200":
            stream.headers = CIMultiDict(each for each in event.fields if each[0] != ":status")
        stream.status = int(status) if status.isdecimal() and len(status) == 3 else 0
        self.is_proven = self.is_proven or stream.status != 403
        if stream.status == 200 and not stream.future.done():
            # APNs accepted the notification, even if the stream ends with an error.
            stream.future.set_result(stream.response())

    def _take_body(self, event: Body) -> None:
        stream = self._streams.get(event.stream_id)
        if stream is not None:
            stream.body += event.data[: MAX_RESPONSE_BODY - len(stream.body)]

    def _finish(self, stream_id: int) -> None:
        stream = self._remove(stream_id)
        if stream is None:
            return
        if stream.unsent:  # the server responded before it had read the whole body
            self._http2.reset(stream_id, ErrorCode.CANCEL)
        if not stream.future.done():
            stream.future.set_result(stream.response())

    def _take_reset(self, event: Reset) -> None:
        if event.code == ErrorCode.REFUSED_STREAM:
            self._fail(event.stream_id, NotProcessedError("refused"))
        else:
            self._fail(event.stream_id, StreamResetError(_code_name(event.code)))

    def _take_pong(self) -> None:
        if self._ping_deadline:
            self._ping_deadline.cancel()
            self._ping_deadline = None

    def _fail(self, stream_id: int, error: Exception) -> None:
        stream = self._remove(stream_id)
        if stream is not None and not stream.future.done():
            stream.future.set_exception(error)

    # The end

    def _drain(self, goaway: Goaway) -> None:
        """RFC 9113 section 6.8: streams up to the last one named may still get a response; later
        ones were not processed."""
        logger.info(
            "apns.goaway",
            error=_code_name(goaway.code),
            text=clean_text(goaway.text.decode("utf-8", "replace")),
        )
        self.is_draining = True
        for stream_id in [each for each in self._streams if each > goaway.last_stream_id]:
            self._fail(stream_id, NotProcessedError("goaway"))

    def _end_if_drained(self) -> None:
        if self.is_draining and not self._streams and self._transport and not self._is_closing():
            self._http2.say_goodbye()
            self._flush()
            self._transport.close()

    def _abort(self, reason: str) -> None:
        if self._transport is not None:
            logger.info("apns.connection_given_up", reason=reason)
            self.is_draining = True
            self._transport.abort()

    def _is_closing(self) -> bool:
        return self._transport is None or self._transport.is_closing()

    # Whether the server still responds

    def _ping(self) -> None:
        if self._ping_deadline is None:
            self._http2.ping(_PING)
            self._ping_deadline = self._loop.call_later(PING_SECONDS, self._abort, "silent")

    def _check_idle(self) -> None:
        if self._is_closing():
            return
        now = self._loop.time()
        self._idle_check = self._loop.call_later(IDLE_SECONDS, self._check_idle)
        for stream_id in [key for key, each in self._streams.items() if each.future.done()]:
            self._give_up(stream_id)  # its status is 200, and it has not ended
        if not self._streams and now - self._used_at >= UNUSED_SECONDS:
            self.close()
        elif now - self._heard_at >= IDLE_SECONDS:
            self._ping()
            self._flush()

    def _flush_soon(self) -> None:
        """Requests that begin at the same time share a TLS record and a system call."""
        if not self._is_flush_due:
            self._is_flush_due = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._is_flush_due = False
        data = self._http2.take_output()
        if data and self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)
            if self._transport.get_write_buffer_size() > MAX_UNREAD:
                self._abort("unread")


def _code_name(code: int) -> str:
    try:
        return ErrorCode(code).name
    except ValueError:
        return str(code)
