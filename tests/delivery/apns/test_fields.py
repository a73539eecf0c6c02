"""Header compression: what a server reads is what was meant, whatever its table holds."""

import pytest
from hpack import Decoder, HeaderTuple, NeverIndexedHeaderTuple
from hypothesis import given
from hypothesis import strategies as st

from notifications_app.delivery.apns.fields import FieldEncoder

SHARED = {":method": "POST", "authorization": "bearer " + "x" * 200, "apns-topic": "org.example"}


def fields(number, expiration="100", device="ab" * 32):
    shared = {**SHARED, "apns-expiration": expiration}
    return [
        NeverIndexedHeaderTuple(b":path", f"/3/device/{device}".encode()),
        *[HeaderTuple(name.encode(), value.encode()) for name, value in shared.items()],
        NeverIndexedHeaderTuple(b"apns-id", str(number).encode()),
    ]


def read(decoder, block):
    return [(name.encode(), value.encode()) for name, value in decoder.decode(block)]


def test_requests_of_a_batch_send_only_their_own_fields():
    encoder, decoder = FieldEncoder(), Decoder()
    sizes = []
    for number in range(5):
        block = encoder.encode(fields(number))
        sizes.append(len(block))
        assert read(decoder, block) == fields(number)
    assert sizes[0] > 200 + sizes[1]
    assert len(set(sizes[1:])) == 1


def test_a_device_token_is_in_no_table_and_marked_as_never_to_be():
    encoder, decoder = FieldEncoder(), Decoder()
    for number in range(3):
        decoded = decoder.decode(encoder.encode(fields(number)))
        assert [each.indexable for each in decoded] == [False, True, True, True, True, False]
    held = {name for name, _ in encoder.header_table.dynamic_entries}
    assert not held & {b":path", b"apns-id"}


@pytest.mark.parametrize("size", [0, 60, 300, 65_536])
def test_a_server_may_change_the_size_of_its_table_at_any_time(size):
    encoder, decoder = FieldEncoder(), Decoder()
    for number in range(9):
        if number == 3:
            encoder.resize(size)
            decoder.max_allowed_table_size = size
        if number == 6:
            encoder.resize(4_096)
            decoder.max_allowed_table_size = 4_096
        assert read(decoder, encoder.encode(fields(number))) == fields(number)


@pytest.mark.parametrize("sizes", [[0, 0], [0, 0, 4_096], [300, 0, 100, 100], [0, 4_096] * 9_000])
def test_a_server_may_change_its_table_often_between_two_requests(sizes):
    encoder, decoder = FieldEncoder(), Decoder()
    for number in range(6):
        if number == 3:
            for size in sizes:
                encoder.resize(size)
            decoder.max_allowed_table_size = sizes[-1]
        block = encoder.encode(fields(number))
        assert read(decoder, block) == fields(number)
        assert len(block) < 1_000


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["1", "22", "333" * 50]), st.sampled_from(["a", "b" * 130, "c" * 9_000])
        ),
        max_size=40,
    ),
    st.sampled_from([0, 100, 400, 4_096]),
)
def test_messages_in_any_order_are_read_as_they_were_meant(sent, size):
    encoder, decoder = FieldEncoder(), Decoder()
    encoder.resize(size)
    decoder.max_allowed_table_size = size
    for number, (expiration, device) in enumerate(sent):
        headers = fields(number, expiration, device)
        assert read(decoder, encoder.encode(headers)) == headers
