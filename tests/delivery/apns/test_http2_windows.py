"""Our side of HTTP/2, byte by byte: bodies and their windows."""

import sys

import pytest
from hyperframe.frame import DataFrame, SettingsFrame, WindowUpdateFrame

from notifications_app.delivery.apns.frames import ErrorCode
from notifications_app.delivery.apns.http2 import Http2
from tests.delivery.apns.http2_server import REQUEST, refused, says, sent


def windows_opened(http2):
    opened = {}
    for frame in sent(http2):
        assert isinstance(frame, WindowUpdateFrame)
        opened[frame.stream_id] = opened.get(frame.stream_id, 0) + frame.window_increment
    return opened


def test_what_was_received_is_allowed_again(http2):
    data = DataFrame(1, bytes(16_000), pad_length=100, flags=["PADDED"])
    for _ in range(12):
        assert len(says(http2, data)) == 1
    opened, received = windows_opened(http2), 12 * 16_101
    assert all(received - 65_535 // 2 <= opened[each] <= received for each in (0, 1))


def test_what_arrives_for_a_request_that_was_given_up_is_allowed_again_on_the_connection(http2):
    http2.reset(1, ErrorCode.CANCEL)
    sent(http2)
    for _ in range(12):
        assert says(http2, DataFrame(1, bytes(16_000))) == []
    assert set(windows_opened(http2)) == {0}


def test_a_body_is_sent_as_far_as_both_windows_allow(http2):
    assert http2.sendable(1) == 16_384
    for _ in range(3):
        http2.send(1, bytes(16_384), is_last=False)
    assert http2.sendable(3) == 65_535 - 3 * 16_384
    says(http2, WindowUpdateFrame(0, 100_000))
    assert (http2.sendable(1), http2.sendable(3)) == (65_535 - 3 * 16_384, 16_384)
    says(http2, WindowUpdateFrame(1, 1))
    assert http2.sendable(1) == 65_536 - 3 * 16_384


def test_settings_change_the_windows_of_open_and_later_requests(http2):
    http2.send(1, bytes(1_000), is_last=False)
    says(http2, SettingsFrame(0, {4: 500}))
    assert (http2.sendable(1), http2.sendable(3)) == (0, 500)
    says(http2, SettingsFrame(0, {4: 1_200}))
    assert (http2.sendable(1), http2.sendable(3), http2.sendable(http2.open(REQUEST))) == (
        200, 1_200, 1_200,
    )  # fmt: skip


def test_settings_cost_the_same_however_many_requests_are_open():
    def calls(requests):
        connection, made = Http2(), []
        for _ in range(requests):
            connection.open(REQUEST)
        sys.setprofile(lambda _frame, event, _what: made.append(event))
        try:
            says(connection, SettingsFrame(0, {4: 500}))
        finally:
            sys.setprofile(None)
        return made.count("call")

    assert calls(1_000) == calls(1)


@pytest.mark.parametrize("stream_id", [0, 1])
@pytest.mark.parametrize(
    ("increment", "code"), [(0, "PROTOCOL_ERROR"), (2**31 - 1, "FLOW_CONTROL_ERROR")]
)
def test_a_window_that_cannot_be_ends_the_connection(http2, stream_id, increment, code):
    frame = b"\0\0\4\x08\0" + stream_id.to_bytes(4) + increment.to_bytes(4)
    assert refused(http2, frame) == code
