"""HTTP/2 frames (RFC 9113, sections 4 and 6). Without input and output."""

from collections.abc import Iterator, Mapping
from enum import IntEnum
from struct import Struct
from typing import Final, NamedTuple

MAX_FRAME: Final = 16_384  # bytes that we accept, and that every server accepts
_HEADER: Final = Struct(">HBBBL")


class FrameType(IntEnum):
    DATA = 0
    HEADERS = 1
    RST_STREAM = 3
    SETTINGS = 4
    PUSH_PROMISE = 5
    PING = 6
    GOAWAY = 7
    WINDOW_UPDATE = 8
    CONTINUATION = 9


class FrameFlag(IntEnum):
    END_STREAM = 0x1
    ACK = 0x1
    END_HEADERS = 0x4
    PADDED = 0x8
    PRIORITY = 0x20


class Setting(IntEnum):
    HEADER_TABLE_SIZE = 1
    ENABLE_PUSH = 2
    MAX_CONCURRENT_STREAMS = 3
    INITIAL_WINDOW_SIZE = 4
    MAX_FRAME_SIZE = 5


class ErrorCode(IntEnum):
    NO_ERROR = 0
    PROTOCOL_ERROR = 1
    INTERNAL_ERROR = 2
    FLOW_CONTROL_ERROR = 3
    SETTINGS_TIMEOUT = 4
    STREAM_CLOSED = 5
    FRAME_SIZE_ERROR = 6
    REFUSED_STREAM = 7
    CANCEL = 8
    COMPRESSION_ERROR = 9
    CONNECT_ERROR = 10
    ENHANCE_YOUR_CALM = 11
    INADEQUATE_SECURITY = 12
    HTTP_1_1_REQUIRED = 13


class ProtocolError(Exception):
    """The server violated the protocol, so the connection must end."""

    def __init__(self, code: ErrorCode) -> None:
        super().__init__(code.name)


class Frame(NamedTuple):
    type: int
    flags: int
    stream_id: int
    payload: bytes


def encoded(type_: int, flags: int, stream_id: int, payload: bytes) -> bytes:
    size = len(payload)
    return _HEADER.pack(size >> 8, size & 0xFF, type_, flags, stream_id) + payload


def encoded_settings(values: Mapping[Setting, int]) -> bytes:
    """The payload of a SETTINGS frame."""
    return b"".join(name.to_bytes(2) + value.to_bytes(4) for name, value in values.items())


class FrameReader:
    """Splits the bytes of a connection into frames, in whatever pieces they arrive."""

    def __init__(self) -> None:
        self._held = b""

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Returns the complete frames. Raises ProtocolError at a frame that is too large."""
        held = self._held + data if self._held else data
        start = 0
        try:
            while len(held) - start >= _HEADER.size:
                high, low, type_, flags, stream_id = _HEADER.unpack_from(held, start)
                begin = start + _HEADER.size
                end = begin + (high << 8 | low)
                if end - begin > MAX_FRAME:
                    raise ProtocolError(ErrorCode.FRAME_SIZE_ERROR)
                if len(held) < end:
                    break
                start = end
                yield Frame(type_, flags, stream_id & 0x7FFFFFFF, held[begin:end])
        finally:
            self._held = held[start:]


def unpadded(frame: Frame) -> bytes:
    """The payload of DATA or HEADERS without its padding. Raises ProtocolError."""
    if not frame.flags & FrameFlag.PADDED:
        return frame.payload
    if not frame.payload or frame.payload[0] >= len(frame.payload):
        raise ProtocolError(ErrorCode.PROTOCOL_ERROR)
    return frame.payload[1 : len(frame.payload) - frame.payload[0]]


def sized(frame: Frame, size: int) -> bytes:
    """The payload of a frame. Raises ProtocolError if it has another size."""
    if len(frame.payload) != size:
        raise ProtocolError(ErrorCode.FRAME_SIZE_ERROR)
    return frame.payload
