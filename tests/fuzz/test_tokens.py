"""Any text is either a valid tracking token, unchanged, or an invalid one; reading it never
fails otherwise."""

from uuid import UUID

import pytest
from django.test import override_settings
from hypothesis import example, given
from hypothesis import strategies as st

from notifications_app.content.tracking import TOKEN_LENGTH, make_token, read_token
from notifications_app.events import EventKind, read_events

IDS = st.tuples(st.uuids(), st.uuids())
ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


@given(IDS)
@example((UUID(int=0), UUID(int=2**128 - 1)))
def test_every_delivery_has_one_token_that_names_it(ids):
    token = make_token(*ids)

    assert len(token) == TOKEN_LENGTH
    assert set(token) <= set(ALPHABET)
    assert read_token(token) == ids


@given(IDS, st.integers(0, 64 * 6 - 1))
def test_a_token_with_any_bit_flipped_is_invalid(ids, bit):
    token = make_token(*ids)
    position, place = divmod(bit, 6)
    flipped = ALPHABET[ALPHABET.index(token[position]) ^ 1 << place]

    assert read_token(token[:position] + flipped + token[position + 1 :]) is None


@given(IDS, st.integers(0, TOKEN_LENGTH - 1), st.text(max_size=5))
@example((UUID(int=1), UUID(int=2)), TOKEN_LENGTH, "\n")
@example((UUID(int=1), UUID(int=2)), TOKEN_LENGTH, "=")
def test_a_shortened_or_lengthened_token_is_invalid(ids, length, more):
    token = make_token(*ids)
    if token[:length] + more != token:
        assert read_token(token[:length] + more) is None
    if more:
        assert read_token(token + more) is None
        assert read_token(more + token) is None


@given(IDS, IDS)
def test_parts_of_two_tokens_make_no_valid_third(ids, others):
    """Ids of the one with the signature of the other."""
    if ids != others:
        mixed = make_token(*ids)[:43] + make_token(*others)[43:]
        assert read_token(mixed) in {None, ids, others}
        assert read_token(make_token(*ids)[:21] + make_token(*others)[21:]) in {None, ids, others}


@given(IDS, st.text(min_size=1))
def test_a_token_made_with_another_secret_is_invalid(ids, secret):
    with override_settings(SECRET_KEY=f"other-{secret}".encode("utf-8", "replace").decode()):
        token = make_token(*ids)

    assert read_token(token) is None


@given(st.text() | st.text(ALPHABET, min_size=TOKEN_LENGTH, max_size=TOKEN_LENGTH))
def test_any_other_text_is_invalid(text):
    assert read_token(text) is None
    assert read_events([(text, EventKind.CLICKED, "")]) == []


@given(st.binary(max_size=100))
def test_raw_bytes_in_a_url_are_invalid(raw):
    """PEP 3333 carries bytes that are not UTF-8 like this."""
    assert read_token(raw.decode("latin1")) is None
    assert read_token(raw.decode("utf-8", "surrogateescape")) is None


@pytest.mark.parametrize("twin", [str.swapcase, lambda token: token.replace("-", "+")])
def test_other_spellings_of_a_token_are_invalid(twin):
    token = next(
        token
        for number in range(100)
        if "-" in (token := make_token(UUID(int=number), UUID(int=number)))
    )

    assert read_token(twin(token)) is None
