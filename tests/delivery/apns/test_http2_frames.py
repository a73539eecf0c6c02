"""Our side of HTTP/2, byte by byte: frames, whole and broken."""

import pytest
from hyperframe.frame import DataFrame, GoAwayFrame, HeadersFrame, PriorityFrame, PushPromiseFrame
from hypothesis import given
from hypothesis import strategies as st

from notifications_app.delivery.apns.frames import ProtocolError
from notifications_app.delivery.apns.http2 import Body, Ended, Goaway, Head, Http2
from tests.delivery.apns.http2_server import OK, REQUEST, STATUS_200, WHOLE, refused, says


@pytest.mark.parametrize("size", [1, 7, 9, 1_000])
def test_frames_are_read_however_they_arrive(http2, size):
    goaway = GoAwayFrame(0, last_stream_id=5, error_code=2, additional_data=b"{}")
    answer = HeadersFrame(1, OK, flags=WHOLE)
    data = goaway.serialize() + answer.serialize() + goaway.serialize()

    parts = [data[start : start + size] for start in range(0, len(data), size)]

    said = Goaway(5, 2, b"{}")
    seen = [event for part in parts for event in says(http2, part)]
    assert seen == [said, Head(1, STATUS_200), Ended(1), said]


def test_a_frame_that_is_too_large_is_refused_before_it_is_read(http2):
    assert refused(http2, (16_385).to_bytes(3) + bytes(6)) == "FRAME_SIZE_ERROR"


def test_what_was_said_before_an_error_counts(http2):
    events = http2.receive(HeadersFrame(1, OK, flags=WHOLE).serialize() + b"\xff" * 9)
    assert [next(events), next(events)] == [Head(1, STATUS_200), Ended(1)]
    with pytest.raises(ProtocolError):
        next(events)


def test_frames_of_unknown_types_are_ignored(http2):
    unknown = b"\0\0\1\xfa\0\0\0\0\1x"
    assert says(http2, PriorityFrame(1, depends_on=3), unknown) == []


@pytest.mark.parametrize(
    ("broken", "code"),
    [
        (b"\0\0\7\6\0\0\0\0\0" + bytes(7), "FRAME_SIZE_ERROR"),
        (b"\0\0\7\7\0\0\0\0\0" + bytes(7), "FRAME_SIZE_ERROR"),
        (b"\0\0\5\3\0\0\0\0\1" + bytes(5), "FRAME_SIZE_ERROR"),
        (b"\0\0\5\x08\0\0\0\0\0" + bytes(5), "FRAME_SIZE_ERROR"),
        (b"\0\0\5\4\0\0\0\0\0" + bytes(5), "FRAME_SIZE_ERROR"),
        (b"\0\0\6\4\1\0\0\0\0" + bytes(6), "FRAME_SIZE_ERROR"),
        (b"\0\0\0\4\0\0\0\0\1", "PROTOCOL_ERROR"),
        (b"\0\0\x08\6\0\0\0\0\1" + bytes(8), "PROTOCOL_ERROR"),
        (b"\0\0\x08\7\0\0\0\0\1" + bytes(8), "PROTOCOL_ERROR"),
        (b"\0\0\4\1\x24\0\0\0\1" + bytes(4), "FRAME_SIZE_ERROR"),
        (PushPromiseFrame(1, 2, OK, flags=["END_HEADERS"]), "PROTOCOL_ERROR"),
    ],
    ids=[
        "short ping", "short goaway", "long reset", "long window update", "odd settings",
        "settings in an ack", "settings of a stream", "ping of a stream", "goaway of a stream",
        "short priority", "push",
    ],
)  # fmt: skip
def test_a_malformed_frame_ends_the_connection(http2, broken, code):
    assert refused(http2, broken) == code


@pytest.mark.parametrize("stream_id", [0, 2, 5])
@pytest.mark.parametrize("type_", [0, 1, 3, 8])
def test_a_frame_of_a_stream_that_was_never_opened_ends_the_connection(http2, stream_id, type_):
    if (type_, stream_id) == (8, 0):  # it is about the connection
        return
    frame = b"\0\0\4" + bytes([type_, 4]) + stream_id.to_bytes(4) + b"\0\0\0\1"
    assert refused(http2, frame) == "PROTOCOL_ERROR"


@given(st.lists(st.tuples(st.integers(0, 10), st.integers(0, 255), st.integers(0, 4), st.binary())))
def test_whatever_arrives_is_read_or_refused(frames):
    connection = Http2()
    connection.open(REQUEST)
    for type_, flags, stream_id, payload in frames:
        head = len(payload).to_bytes(3) + bytes([type_, flags]) + stream_id.to_bytes(4)
        try:
            says(connection, head + payload)
        except ProtocolError:
            return


def test_padding_is_taken_off(http2):
    frames = [
        HeadersFrame(1, OK, pad_length=3, flags=["END_HEADERS", "PADDED"]),
        HeadersFrame(
            3, OK, depends_on=1, stream_weight=1, flags=["END_HEADERS", "PRIORITY"]
        ),
        DataFrame(1, b"body", pad_length=200, flags=["PADDED", "END_STREAM"]),
    ]  # fmt: skip
    seen = says(http2, *frames)
    assert seen == [Head(1, STATUS_200), Head(3, STATUS_200), Body(1, b"body"), Ended(1)]


@pytest.mark.parametrize("type_", [0, 1])
@pytest.mark.parametrize("payload", [b"", b"\x02x", b"\xff\0"])
def test_padding_that_is_longer_than_its_frame_ends_the_connection(http2, type_, payload):
    frame = len(payload).to_bytes(3) + bytes([type_, 0xC]) + b"\0\0\0\1" + payload
    assert refused(http2, frame) == "PROTOCOL_ERROR"
