"""The client's side of an HTTP/2 connection (RFC 9113), as far as APNs needs it.

Without input and output: it takes bytes, and returns events and the bytes to send. It sends no
CONTINUATION, uses no priorities and accepts no pushed responses.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from struct import iter_unpack
from typing import Final, NamedTuple, TypeAlias

from hpack import HeaderTuple

from notifications_app.delivery.apns.fields import FieldDecoder, FieldEncoder, Fields
from notifications_app.delivery.apns.frames import (
    MAX_FRAME,
    ErrorCode,
    Frame,
    FrameFlag,
    FrameReader,
    FrameType,
    ProtocolError,
    Setting,
    encoded,
    encoded_settings,
    sized,
    unpadded,
)

# RFC 9113 section 5.1.1.
LAST_STREAM_ID: Final = 2**31 - 1
# Bytes of the header fields of a response, as they are sent.
MAX_HEADER_BLOCK: Final = 64 * 1024
MAX_CONTINUATIONS: Final = 64

_PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_WINDOW: Final = 65_535
_MAX_WINDOW: Final = 2**31 - 1
_MAX_TABLE: Final = 4_096
_PRIORITY_BYTES: Final = 5


class Head(NamedTuple):
    stream_id: int
    fields: Fields


class Body(NamedTuple):
    stream_id: int
    data: bytes


class Ended(NamedTuple):
    stream_id: int


class Reset(NamedTuple):
    stream_id: int
    code: int


class Goaway(NamedTuple):
    last_stream_id: int
    code: int
    text: bytes


class Pong(NamedTuple):
    data: bytes


Http2Event: TypeAlias = Head | Body | Ended | Reset | Goaway | Pong


@dataclass(slots=True)
class _Windows:
    """How many bytes may be sent and received (RFC 9113 section 5.2).

    A stream's `sendable` is added to the initial window, which SETTINGS may change for all streams
    (section 6.9.2).
    """

    sendable: int = 0
    receivable: int = _WINDOW


@dataclass(slots=True)
class _HeaderBlock:
    """A header block whose frames have not all arrived."""

    stream_id: int
    is_last: bool
    data: bytes
    continuations: int = 0


class Http2:
    """The state of one connection, with the windows of each open stream.

    `max_streams`: how many streams the server's SETTINGS allow.
    """

    def __init__(self) -> None:
        self.max_streams = LAST_STREAM_ID
        self.next_stream_id = 1
        # Without a table for header fields in the server, equal responses have equal bytes.
        settings = encoded_settings({Setting.HEADER_TABLE_SIZE: 0, Setting.ENABLE_PUSH: 0})
        self._output = [_PREFACE, encoded(FrameType.SETTINGS, 0, 0, settings)]
        self._frames = FrameReader()
        self._encoder = FieldEncoder()
        self._decoder = FieldDecoder()
        self._connection = _Windows(_WINDOW)
        self._streams: dict[int, _Windows] = {}
        self._initial_window = _WINDOW
        self._block: _HeaderBlock | None = None

    # To the server

    def take_output(self) -> bytes:
        """Returns the bytes to send now."""
        output, self._output = self._output, []
        return b"".join(output)

    def open(self, fields: Sequence[HeaderTuple]) -> int:
        """Begins a request whose fields fit into one frame. Returns its stream's id."""
        block = self._encoder.encode(fields)
        if len(block) > MAX_FRAME:
            raise ValueError("too many header fields for one frame")
        stream_id = self.next_stream_id
        self.next_stream_id += 2
        self._streams[stream_id] = _Windows()
        self._put(FrameType.HEADERS, FrameFlag.END_HEADERS, stream_id, block)
        return stream_id

    def sendable(self, stream_id: int) -> int:
        """How many bytes of a body may be sent now."""
        window = self._initial_window + self._streams[stream_id].sendable
        return max(0, min(self._connection.sendable, window, MAX_FRAME))

    def send(self, stream_id: int, data: bytes, *, is_last: bool) -> None:
        """Sends a part of a body, which must be `sendable`."""
        self._connection.sendable -= len(data)
        self._streams[stream_id].sendable -= len(data)
        self._put(FrameType.DATA, FrameFlag.END_STREAM if is_last else 0, stream_id, data)

    def reset(self, stream_id: int, code: ErrorCode) -> None:
        self._streams.pop(stream_id, None)
        self._put(FrameType.RST_STREAM, 0, stream_id, code.to_bytes(4))

    def ping(self, data: bytes) -> None:
        self._put(FrameType.PING, 0, 0, data)

    def say_goodbye(self) -> None:
        self._put(FrameType.GOAWAY, 0, 0, bytes(8))

    def _put(self, type_: int, flags: int, stream_id: int, payload: bytes) -> None:
        self._output.append(encoded(type_, flags, stream_id, payload))

    # From the server

    def receive(self, data: bytes) -> Iterator[Http2Event]:
        """Yields the events in received bytes. Raises ProtocolError after the events before a
        error."""
        for frame in self._frames.feed(data):
            if self._block and frame.type != FrameType.CONTINUATION:
                raise ProtocolError(ErrorCode.PROTOCOL_ERROR)
            yield from self._take(frame)

    def _take(self, frame: Frame) -> Sequence[Http2Event]:
        match frame.type:
            case FrameType.HEADERS:
                return self._take_headers(frame)
            case FrameType.CONTINUATION:
                return self._take_continuation(frame)
            case FrameType.DATA:
                return self._take_data(frame)
            case FrameType.WINDOW_UPDATE:
                return self._take_window_update(frame)
            case FrameType.RST_STREAM:
                return self._take_reset(frame)
            case FrameType.SETTINGS | FrameType.PING | FrameType.GOAWAY | FrameType.PUSH_PROMISE:
                return self._take_control(frame)
            case _:  # others are ignored (RFC 9113 section 5.5)
                return ()

    def _take_headers(self, frame: Frame) -> Sequence[Http2Event]:
        self._check_opened(frame.stream_id)
        data = unpadded(frame)
        if frame.flags & FrameFlag.PRIORITY:
            if len(data) < _PRIORITY_BYTES:
                raise ProtocolError(ErrorCode.FRAME_SIZE_ERROR)
            data = data[_PRIORITY_BYTES:]
        is_last = bool(frame.flags & FrameFlag.END_STREAM)
        return self._take_block(frame, _HeaderBlock(frame.stream_id, is_last, data))

    def _take_continuation(self, frame: Frame) -> Sequence[Http2Event]:
        block = self._block
        if block is None or block.stream_id != frame.stream_id:
            raise ProtocolError(ErrorCode.PROTOCOL_ERROR)
        block.data += frame.payload
        block.continuations += 1
        if block.continuations > MAX_CONTINUATIONS or len(block.data) > MAX_HEADER_BLOCK:
            raise ProtocolError(ErrorCode.ENHANCE_YOUR_CALM)
        return self._take_block(frame, block)

    def _take_block(self, frame: Frame, block: _HeaderBlock) -> Sequence[Http2Event]:
        if not frame.flags & FrameFlag.END_HEADERS:
            self._block = block
            return ()
        self._block = None
        # Also for a stream that was reset, because the block may change the table.
        fields = self._decoder.fields(block.data)
        if block.stream_id not in self._streams:
            return ()
        head = Head(block.stream_id, fields)
        return (head, self._ended(block.stream_id)) if block.is_last else (head,)

    def _take_data(self, frame: Frame) -> Sequence[Http2Event]:
        self._check_opened(frame.stream_id)
        size = len(frame.payload)
        self._count(self._connection, 0, size)
        stream = self._streams.get(frame.stream_id)
        if stream is None:
            return ()
        body = Body(frame.stream_id, unpadded(frame))
        if frame.flags & FrameFlag.END_STREAM:
            return body, self._ended(frame.stream_id)
        self._count(stream, frame.stream_id, size)
        return (body,)

    def _ended(self, stream_id: int) -> Ended:
        del self._streams[stream_id]
        return Ended(stream_id)

    def _count(self, windows: _Windows, stream_id: int, size: int) -> None:
        """Counts received bytes, and opens the window again when half of it is used. So the window
        is never used up, because a frame is smaller than half of it."""
        windows.receivable -= size
        if windows.receivable < _WINDOW // 2:
            more = _WINDOW - windows.receivable
            windows.receivable = _WINDOW
            self._put(FrameType.WINDOW_UPDATE, 0, stream_id, more.to_bytes(4))

    def _take_window_update(self, frame: Frame) -> Sequence[Http2Event]:
        more = int.from_bytes(sized(frame, 4)) & _MAX_WINDOW
        if more == 0:
            raise ProtocolError(ErrorCode.PROTOCOL_ERROR)
        if frame.stream_id == 0:
            _widen(self._connection, more, _MAX_WINDOW)
        else:
            self._check_opened(frame.stream_id)
            if stream := self._streams.get(frame.stream_id):
                _widen(stream, more, _MAX_WINDOW - self._initial_window)
        return ()

    def _take_reset(self, frame: Frame) -> Sequence[Http2Event]:
        self._check_opened(frame.stream_id)
        code = int.from_bytes(sized(frame, 4))
        is_open = self._streams.pop(frame.stream_id, None) is not None
        return (Reset(frame.stream_id, code),) if is_open else ()

    def _take_control(self, frame: Frame) -> Sequence[Http2Event]:
        """Handles a frame about the whole connection."""
        if frame.stream_id != 0 or frame.type == FrameType.PUSH_PROMISE:
            raise ProtocolError(ErrorCode.PROTOCOL_ERROR)
        if frame.type == FrameType.SETTINGS:
            self._take_settings(frame)
            return ()
        if frame.type == FrameType.PING:
            return self._take_ping(frame)
        if len(frame.payload) < 8:
            raise ProtocolError(ErrorCode.FRAME_SIZE_ERROR)
        last, code = (int.from_bytes(frame.payload[at : at + 4]) for at in (0, 4))
        return (Goaway(last & LAST_STREAM_ID, code, frame.payload[8:]),)

    def _take_ping(self, frame: Frame) -> Sequence[Http2Event]:
        data = sized(frame, 8)
        if frame.flags & FrameFlag.ACK:
            return (Pong(data),)
        self._put(FrameType.PING, FrameFlag.ACK, 0, data)
        return ()

    def _take_settings(self, frame: Frame) -> None:
        if frame.flags & FrameFlag.ACK:
            sized(frame, 0)
            return
        if len(frame.payload) % 6:
            raise ProtocolError(ErrorCode.FRAME_SIZE_ERROR)
        for name, value in iter_unpack(">HL", frame.payload):
            self._set(name, value)
        self._put(FrameType.SETTINGS, FrameFlag.ACK, 0, b"")

    def _set(self, name: int, value: int) -> None:
        match name:
            case Setting.HEADER_TABLE_SIZE:
                # A larger table than usual would only cost memory.
                self._encoder.resize(min(value, _MAX_TABLE))
            case Setting.MAX_CONCURRENT_STREAMS:
                self.max_streams = value
            case Setting.INITIAL_WINDOW_SIZE:
                if value > _MAX_WINDOW:
                    raise ProtocolError(ErrorCode.FLOW_CONTROL_ERROR)
                self._initial_window = value
            case Setting.MAX_FRAME_SIZE if not MAX_FRAME <= value < 2**24:
                raise ProtocolError(ErrorCode.PROTOCOL_ERROR)
            case _:
                pass

    def _check_opened(self, stream_id: int) -> None:
        """Raises ProtocolError if we never opened the stream (RFC 9113 section 5.1, idle)."""
        if stream_id % 2 == 0 or stream_id >= self.next_stream_id:
            raise ProtocolError(ErrorCode.PROTOCOL_ERROR)


def _widen(windows: _Windows, more: int, most: int) -> None:
    windows.sendable += more
    if windows.sendable > most:
        raise ProtocolError(ErrorCode.FLOW_CONTROL_ERROR)
