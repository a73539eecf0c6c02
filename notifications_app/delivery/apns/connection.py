"""One HTTP/2 connection to APNs, on h2.

It replaces the connections of aioapns 4.0, which have these faults: they acknowledge no DATA, match
answers by a header that may be missing, parse each DATA frame as JSON, ignore RST_STREAM and
answers without a body, close while requests wait for more than ten seconds, and miscount streams
when SETTINGS change the limit. tests/delivery/apns/test_faults.py shows each fault with the library
and its absence here.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias, cast

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.events import (
    DataReceived,
    Event,
    PingAckReceived,
    ResponseReceived,
    StreamEnded,
    StreamReset,
)
from h2.exceptions import H2Error
from hpack import HeaderTuple
from hyperframe.exceptions import HyperframeError
from hyperframe.frame import GoAwayFrame
from multidict import CIMultiDict
from typing_extensions import override

from notifications_app.delivery.apns.fields import FieldEncoder
from notifications_app.delivery.apns.frames import GoawayFilter
from notifications_app.delivery.types import clean_text
from pushsvc.common.egress import MAX_RESPONSE_BODY, Response

logger = logging.getLogger(__name__)

# The most requests at once, even if the server allows more. Apple's SETTINGS allow 1,000.
MAX_STREAMS: Final = 1_000
# RFC 9113 section 5.1.1. A connection reaches it only after days.
LAST_STREAM_ID: Final = 2**31 - 1
# How long a pool waits for a connection's first answer before it makes another connection.
PROOF_SECONDS: Final = 2.0
# After this much silence, the next request goes out together with a PING.
DOUBTFUL_SECONDS: Final = 30.0
# An idle connection sends a PING after one or two of these periods, so that load balancers and NATs
# do not forget it.
IDLE_SECONDS: Final = 150.0
# A connection whose PING is not answered within this time is closed.
PING_SECONDS: Final = 5.0
# A connection that had no request for this time is closed.
UNUSED_SECONDS: Final = 3_600.0

_PING: Final = b"pushsvc?"

Headers: TypeAlias = Sequence[HeaderTuple]


class NotProcessedError(Exception):
    """The server says that it did not process the request. It may be sent again at once."""


class ConnectionLostError(ConnectionError):
    """The connection ended before the answer. Whether the request was processed is not known."""


class StreamResetError(Exception):
    """The server reset this request and no other. `args` has the HTTP/2 error code."""


@dataclass(slots=True)
class _Stream:
    answer: asyncio.Future[Response]
    unsent: bytes
    status: int = 0
    headers: CIMultiDict[str] = field(default_factory=CIMultiDict)
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
        # Normalising would keep the long `authorization` out of HPACK's table. Validation would
        # check again what the transport has checked.
        self._h2 = H2Connection(
            H2Configuration(
                header_encoding=None,
                normalize_outbound_headers=False,
                validate_outbound_headers=False,
            )
        )
        self._h2.encoder = FieldEncoder()
        self._goaways = GoawayFilter()
        self._transport: asyncio.Transport | None = None
        self._streams: dict[int, _Stream] = {}
        self._unsent: dict[int, _Stream] = {}
        self._is_flush_due = False
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
        """Whether it takes requests, now or once there is room."""
        transport = self._transport
        return transport is not None and not (self.is_draining or transport.is_closing())

    @property
    def is_idle(self) -> bool:
        return not self._streams

    @property
    def waits_for_proof(self) -> bool:
        """Whether the first request is in flight. Its answer may soon make room for others."""
        return not self.is_proven and self._loop.time() - self._used_at < PROOF_SECONDS

    @property
    def room(self) -> int:
        """How many requests may begin now.

        Until APNs has seen a valid provider token it allows one, whatever SETTINGS say (Apple,
        "Sending notification requests to APNs").
        """
        if not self.is_usable:
            return 0
        allowed = self._h2.remote_settings.max_concurrent_streams if self.is_proven else 1
        return max(0, min(allowed, MAX_STREAMS) - len(self._streams))

    async def post(self, headers: Headers, body: bytes) -> Response:
        """The answer, with at most MAX_RESPONSE_BODY bytes of its body. Needs `room`.

        Raises NotProcessedError, ConnectionLostError or StreamResetError.
        """
        stream_id, stream = self._open(headers, body)
        try:
            return await stream.answer
        except asyncio.CancelledError:
            self._give_up(stream_id)
            raise

    def close(self) -> None:
        """Takes no more requests, and ends once those in flight are answered."""
        self.is_draining = True
        self._end_if_drained()

    async def wait_closed(self, seconds: float) -> None:
        """Waits until it has ended, and aborts it after `seconds`."""
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
        self._h2.initiate_connection()
        self._flush()
        self._check_idle()

    @override
    def data_received(self, data: bytes) -> None:
        if self._is_closing():
            return
        self._heard_at = self._loop.time()
        try:
            others, goaways = self._goaways.feed(data)
            for frame in others:  # in one call, h2 would lose the answers before a bad frame
                for event in self._h2.receive_data(frame):
                    self._take(event)
            for goaway in goaways:
                self._drain(goaway)
            self._send_bodies()
        except (H2Error, HyperframeError) as error:
            self._abort(type(error).__name__)
            return
        self._flush()
        self._end_if_drained()
        self._on_change()

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self._ended.set()
        for timer in (self._ping_deadline, self._idle_check):
            if timer:
                timer.cancel()
        for stream_id in list(self._streams):
            self._fail(stream_id, ConnectionLostError(type(exc).__name__ if exc else "closed"))
        self._on_change()

    # Requests

    def _open(self, headers: Headers, body: bytes) -> tuple[int, _Stream]:
        stream_id = self._h2.get_next_available_stream_id()
        if stream_id + 2 > LAST_STREAM_ID:
            self.is_draining = True
        self._used_at = self._loop.time()
        if self._used_at - self._heard_at > DOUBTFUL_SECONDS:
            self._ping()
        if not self.is_proven:
            self._loop.call_later(PROOF_SECONDS, self._on_change)
        self._h2.send_headers(stream_id, headers)
        stream = _Stream(self._loop.create_future(), body)
        self._streams[stream_id] = self._unsent[stream_id] = stream
        self._send_body(stream_id, stream)
        self._flush_soon()
        return stream_id, stream

    def _send_bodies(self) -> None:
        for stream_id, stream in list(self._unsent.items()):
            self._send_body(stream_id, stream)

    def _send_body(self, stream_id: int, stream: _Stream) -> None:
        """Sends what flow control allows (RFC 9113 section 5.2), and the rest later."""
        while stream.unsent and (size := self._sendable(stream_id, stream)):
            part, stream.unsent = stream.unsent[:size], stream.unsent[size:]
            self._h2.send_data(stream_id, part, end_stream=not stream.unsent)
        if not stream.unsent:
            del self._unsent[stream_id]

    def _sendable(self, stream_id: int, stream: _Stream) -> int:
        window = self._h2.local_flow_control_window(stream_id)
        return max(0, min(len(stream.unsent), window, self._h2.max_outbound_frame_size))

    def _give_up(self, stream_id: int) -> None:
        """Resets a request that its caller gave up. The server may be dead, so a PING asks."""
        if self._remove(stream_id) is None or self._is_closing():
            return
        self._h2.reset_stream(stream_id, ErrorCodes.CANCEL)
        self._ping()
        self._flush()
        self._end_if_drained()
        self._on_change()

    def _remove(self, stream_id: int) -> _Stream | None:
        self._unsent.pop(stream_id, None)
        return self._streams.pop(stream_id, None)

    # Answers

    def _take(self, event: Event) -> None:
        match event:
            case ResponseReceived():
                self._take_head(event)
            case DataReceived():
                self._h2.acknowledge_received_data(
                    event.flow_controlled_length or 0, event.stream_id or 0
                )
                self._take_body(event)
            case StreamEnded():
                self._finish(event.stream_id or 0)
            case StreamReset():
                self._take_reset(event)
            case PingAckReceived() if self._ping_deadline:
                self._ping_deadline.cancel()
                self._ping_deadline = None
            case _:
                pass

    def _take_head(self, event: ResponseReceived) -> None:
        stream = self._streams.get(event.stream_id or 0)
        if stream is None:
            return
        for name, value in event.headers or ():
            stream.headers.add(_text(name), _text(value))
        status = stream.headers.pop(":status", "")
        stream.status = int(status) if status.isdecimal() else 0
        self.is_proven = self.is_proven or stream.status != 403
        if stream.status == 200 and not stream.answer.done():
            # APNs took the notification, whatever becomes of the stream.
            stream.answer.set_result(stream.response())

    def _take_body(self, event: DataReceived) -> None:
        stream = self._streams.get(event.stream_id or 0)
        if stream is not None and event.data:
            stream.body += event.data[: MAX_RESPONSE_BODY - len(stream.body)]

    def _finish(self, stream_id: int) -> None:
        stream = self._remove(stream_id)
        if stream is None:
            return
        if stream.unsent:  # the server answered before it had read the whole body
            self._h2.reset_stream(stream_id, ErrorCodes.CANCEL)
        if not stream.answer.done():
            stream.answer.set_result(stream.response())

    def _take_reset(self, event: StreamReset) -> None:
        if event.error_code == ErrorCodes.REFUSED_STREAM:
            self._fail(event.stream_id or 0, NotProcessedError("refused"))
        else:
            self._fail(event.stream_id or 0, StreamResetError(_code_name(event.error_code)))

    def _fail(self, stream_id: int, error: Exception) -> None:
        stream = self._remove(stream_id)
        if stream is not None and not stream.answer.done():
            stream.answer.set_exception(error)

    # The end

    def _drain(self, goaway: GoAwayFrame) -> None:
        """RFC 9113 section 6.8: streams up to the last one named may still be answered; later ones
        were not processed."""
        logger.info(
            "apns.goaway",
            extra={
                "error": _code_name(goaway.error_code),
                "said": clean_text(bytes(goaway.additional_data).decode("utf-8", "replace")),
            },
        )
        self.is_draining = True
        for stream_id in [each for each in self._streams if each > goaway.last_stream_id]:
            self._fail(stream_id, NotProcessedError("goaway"))

    def _end_if_drained(self) -> None:
        if self.is_draining and not self._streams and self._transport and not self._is_closing():
            self._h2.close_connection()
            self._flush()
            self._transport.close()

    def _abort(self, reason: str) -> None:
        if self._transport is not None:
            logger.info("apns.connection_given_up", extra={"reason": reason})
            self.is_draining = True
            self._transport.abort()

    def _is_closing(self) -> bool:
        return self._transport is None or self._transport.is_closing()

    # Whether the server still answers

    def _ping(self) -> None:
        if self._ping_deadline is None:
            self._h2.ping(_PING)
            self._ping_deadline = self._loop.call_later(PING_SECONDS, self._abort, "silent")

    def _check_idle(self) -> None:
        if self._is_closing():
            return
        now = self._loop.time()
        self._idle_check = self._loop.call_later(IDLE_SECONDS, self._check_idle)
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
        data = self._h2.data_to_send()
        if data and self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)


def _text(value: str | bytes) -> str:
    return value if isinstance(value, str) else value.decode("latin-1")


def _code_name(code: ErrorCodes | int | None) -> str:
    try:
        return ErrorCodes(code or 0).name
    except ValueError:
        return str(code)
