"""Speaks HTTP/2 to our side, byte by byte, with frames that hyperframe makes."""

import pytest
from hpack import HeaderTuple
from hyperframe.frame import Frame

from notifications_app.delivery.apns.frames import ProtocolError

REQUEST = [
    HeaderTuple(b":path", b"/3/device/ab"),
    HeaderTuple(b":method", b"POST"),
    HeaderTuple(b"apns-id", b"1"),
]
OK = b"\x88"  # :status 200
NO_TABLE = b"\x20"  # the server's table has the size 0 from here on
STATUS_200 = [(":status", "200")]
WHOLE = ["END_HEADERS", "END_STREAM"]


def says(http2, *frames):
    """The events of frames, or of bytes."""
    data = b"".join(each if isinstance(each, bytes) else each.serialize() for each in frames)
    return list(http2.receive(data))


def sent(http2):
    """The frames that our side sends."""
    output, frames = memoryview(http2.take_output()), []
    while output:
        frame, length = Frame.parse_frame_header(output[:9])
        frame.parse_body(output[9 : 9 + length])
        frames.append(frame)
        output = output[9 + length :]
    return frames


def refused(http2, *frames):
    """The code with which the connection ends."""
    with pytest.raises(ProtocolError) as raised:
        says(http2, *frames)
    return str(raised.value)
