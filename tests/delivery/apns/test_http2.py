"""Our side of HTTP/2, byte by byte: requests, settings, pings, resets."""

import pytest
from hpack import HeaderTuple
from hyperframe.frame import PingFrame, RstStreamFrame, SettingsFrame

from notifications_app.delivery.apns.http2 import Http2, Pong, Reset
from tests.delivery.apns.http2_server import REQUEST, refused, says, sent


def test_a_connection_begins_with_the_preface_and_settings():
    preface, settings = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", SettingsFrame(0, {1: 0, 2: 0})
    assert Http2().take_output() == preface + settings.serialize()


def test_requests_have_the_odd_numbers(http2):
    assert http2.open(REQUEST) == 5
    [frame] = sent(http2)
    assert (frame.stream_id, set(frame.flags)) == (5, {"END_HEADERS"})


def test_a_request_that_fits_into_no_frame_is_refused(http2):
    with pytest.raises(ValueError, match="too many"):
        http2.open([REQUEST[0], REQUEST[1], HeaderTuple(b"apns-id", b"x" * 17_000)])
    assert sent(http2) == []


def test_settings_are_acknowledged(http2):
    says(http2, SettingsFrame(0, {3: 7, 0xF0: 1}))
    assert http2.max_streams == 7
    [frame] = sent(http2)
    assert (type(frame), set(frame.flags)) == (SettingsFrame, {"ACK"})
    assert says(http2, SettingsFrame(0, flags=["ACK"])) == []
    assert sent(http2) == []


@pytest.mark.parametrize(
    ("setting", "value", "code"),
    [
        (4, 2**31, "FLOW_CONTROL_ERROR"),
        (5, 16_383, "PROTOCOL_ERROR"),
        (5, 2**24, "PROTOCOL_ERROR"),
    ],
)
def test_settings_that_cannot_be_end_the_connection(http2, setting, value, code):
    frame = b"\0\0\6\4\0\0\0\0\0" + setting.to_bytes(2) + value.to_bytes(4)
    assert refused(http2, frame) == code


def test_pings_are_answered_and_answers_to_ours_are_told(http2):
    assert says(http2, PingFrame(0, b"12345678")) == []
    [frame] = sent(http2)
    assert (frame.opaque_data, set(frame.flags)) == (b"12345678", {"ACK"})
    http2.ping(b"pushsvc?")
    [frame] = sent(http2)
    assert (frame.opaque_data, set(frame.flags)) == (b"pushsvc?", set())
    assert says(http2, PingFrame(0, b"pushsvc?", flags=["ACK"])) == [Pong(b"pushsvc?")]


def test_a_reset_is_told_once(http2):
    reset = RstStreamFrame(1, error_code=7)
    assert says(http2, reset, reset) == [Reset(1, 7)]
