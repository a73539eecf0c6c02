"""Our side of HTTP/2, byte by byte: header fields. Those of the server are made by hpack."""

import pytest
from hpack import Decoder, Encoder
from hyperframe.frame import (
    ContinuationFrame,
    HeadersFrame,
    PingFrame,
    RstStreamFrame,
    SettingsFrame,
    WindowUpdateFrame,
)
from hypothesis import given
from hypothesis import strategies as st

from notifications_app.delivery.apns.fields import FieldDecoder
from notifications_app.delivery.apns.frames import ErrorCode
from notifications_app.delivery.apns.http2 import (
    MAX_CONTINUATIONS,
    MAX_HEADER_BLOCK,
    Ended,
    Head,
    Http2,
)
from tests.delivery.apns.http2_server import (
    NO_TABLE,
    OK,
    REQUEST,
    STATUS_200,
    WHOLE,
    refused,
    says,
    sent,
)


def fields_of(size):
    return Encoder().encode([(":status", "200"), ("x", "v" * size)], huffman=False)


def without_id(fields):
    return [field for field in fields if field[0] != "apns-id"]


def test_header_fields_may_be_split_over_frames(http2):
    block = fields_of(300)
    frames = [
        HeadersFrame(1, block[:10], flags=["END_STREAM"]),
        ContinuationFrame(1, block[10:20]),
        ContinuationFrame(1, block[20:], flags=["END_HEADERS"]),
    ]
    assert says(http2, *frames) == [Head(1, [(":status", "200"), ("x", "v" * 300)]), Ended(1)]


def test_only_the_rest_may_follow_on_incomplete_header_fields(http2):
    assert refused(http2, HeadersFrame(1, OK), PingFrame(0, b"12345678")) == "PROTOCOL_ERROR"


def test_the_rest_of_header_fields_is_of_the_same_stream(http2):
    assert refused(http2, HeadersFrame(1, OK), ContinuationFrame(3, OK)) == "PROTOCOL_ERROR"
    assert refused(Http2(), ContinuationFrame(1, OK)) == "PROTOCOL_ERROR"


def test_a_flood_of_empty_continuations_ends_the_connection(http2):
    says(http2, HeadersFrame(1, OK), *[ContinuationFrame(1)] * MAX_CONTINUATIONS)
    assert refused(http2, ContinuationFrame(1)) == "ENHANCE_YOUR_CALM"


def test_header_fields_without_end_end_the_connection(http2):
    part = ContinuationFrame(1, bytes(MAX_HEADER_BLOCK // 5))
    says(http2, HeadersFrame(1), *[part] * 5)
    assert refused(http2, part) == "ENHANCE_YOUR_CALM"


def test_a_small_block_that_means_many_fields_ends_the_connection(http2):
    block = b"\x40\x01x\x7f\xa1\x1e" + b"v" * 4_000 + b"\xbe" * 100
    assert refused(http2, HeadersFrame(1, block, flags=WHOLE)) == "COMPRESSION_ERROR"


@pytest.mark.parametrize("begin", [b"", NO_TABLE])
def test_a_block_of_too_many_fields_ends_the_connection(http2, begin):
    says(http2, HeadersFrame(1, begin + OK, flags=["END_HEADERS"]))
    block = b"\x90" * 1_000  # accept-encoding: gzip, deflate
    assert len(says(http2, HeadersFrame(1, block, flags=["END_HEADERS"]))) == 1
    assert refused(http2, HeadersFrame(1, block * 2, flags=["END_HEADERS"])) == "COMPRESSION_ERROR"


@pytest.mark.parametrize("begin", [b"", NO_TABLE])
@pytest.mark.parametrize(
    "block",
    [
        b"\xff\xff\xff\xff\xff\xff\xff",
        b"\x80",
        b"\xfe",
        b"\x40\x05a",
        b"\x40",
        b"\x3f\xe2\x1f",
        b"\x88\x20",
        b"\x40\x01a\x81\xff\xff\xff",
        b"\x40\x01a\x82\xff\xff",
    ],
)
def test_a_block_that_cannot_be_read_ends_the_connection(http2, begin, block):
    says(http2, HeadersFrame(1, begin + OK, flags=["END_HEADERS"]))
    assert refused(http2, HeadersFrame(1, block, flags=WHOLE)) == "COMPRESSION_ERROR"


@given(
    st.lists(
        st.lists(
            st.tuples(
                st.sampled_from(["a", ":status", "date", "apns-id"]),
                st.sampled_from(["", "1", "200", "apns-id", "3" * 80, "4" * 300]),
            )
        ),
        max_size=20,
    ),
    st.sampled_from([0, 60, 200, 4_096]),
    st.booleans(),
)
def test_answers_are_read_as_hpack_reads_them(answers, table, huffman):
    server, ours, hpacks = Encoder(), FieldDecoder(), Decoder()
    server.header_table_size = table
    for answer in answers:
        block = server.encode(answer, huffman=huffman)
        assert hpacks.decode(block) == answer
        assert without_id(ours.fields(block)) == without_id(answer)


@pytest.mark.parametrize("first", [b"\x40", b"\x00", b"\x10"])
@pytest.mark.parametrize("huffman", [False, True])
def test_a_requests_id_is_not_read_from_its_answer(http2, first, huffman):
    own_id = Encoder().encode([("apns-id", "4F2A" * 9)], huffman=huffman)
    block = NO_TABLE + OK
    assert says(http2, HeadersFrame(1, block, flags=WHOLE)) == [Head(1, STATUS_200), Ended(1)]
    block = OK + first + own_id[1:]
    assert says(http2, HeadersFrame(3, block, flags=WHOLE)) == [Head(3, STATUS_200), Ended(3)]


@pytest.mark.parametrize("place", [0, 1])
def test_answers_that_differ_in_more_than_the_id_are_told_apart(place):
    """They are as long, and the same bytes are before or after the id."""
    server, ours = Encoder(), FieldDecoder()
    server.header_table_size = 0
    ours.fields(server.encode([]))  # the size of the table
    for own_id, value in (("4F2A", "1"), ("4F2B", "1"), ("4F2A", "2"), ("4F2B", "1")):
        answer = [("date", value)]
        answer.insert(place, ("apns-id", own_id))
        assert ours.fields(server.encode(answer, huffman=False)) == [("date", value)]


def test_the_bytes_of_a_field_are_kept(http2):
    block = b"\x88\x00\x01x\x01\xe9"
    [head, _] = says(http2, HeadersFrame(1, block, flags=WHOLE))
    assert head.fields == [(":status", "200"), ("x", "\xe9")]


@pytest.mark.parametrize("size", [0, 100, 65_536])
def test_requests_use_no_larger_table_than_the_server_and_we_allow(http2, size):
    says(http2, SettingsFrame(0, {1: size}))
    sent(http2)
    decoder = Decoder()
    decoder.max_allowed_table_size = min(size, 4_096)
    http2.open(REQUEST)
    [frame] = sent(http2)
    assert decoder.decode(frame.data, raw=True) == [tuple(field) for field in REQUEST]


def test_a_given_up_requests_answer_is_ignored_but_read(http2):
    """Its fields are in the table that later answers use."""
    http2.reset(1, ErrorCode.CANCEL)
    server = Encoder()
    first, second = (server.encode([(":status", "200"), ("x", "y")]) for _ in range(2))
    assert len(second) < len(first)
    late = [HeadersFrame(1, first, flags=WHOLE), RstStreamFrame(1), WindowUpdateFrame(1, 1)]
    seen = says(http2, *late, HeadersFrame(3, second, flags=WHOLE))
    assert seen == [Head(3, [(":status", "200"), ("x", "y")]), Ended(3)]
