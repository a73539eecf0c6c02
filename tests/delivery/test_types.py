from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notifications_app.delivery.types import (
    MAX_RETRY_AFTER,
    MAX_TEXT,
    clean_text,
    parse_retry_after,
)

NOW = datetime(2026, 11, 20, 15, 11, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (None, None),
        ("", None),
        ("soon", None),
        ("nan", None),
        ("0", 0.0),
        ("120", 120.0),
        (" 120 ", 120.0),
        ("1.5", 1.5),
        ("-5", 0.0),
        ("999999999", MAX_RETRY_AFTER),
        ("9" * 6_000, MAX_RETRY_AFTER),
        ("1e999", MAX_RETRY_AFTER),
        ("inf", MAX_RETRY_AFTER),
        ("١٢٠", 120.0),
        ("²", None),
        ("Fri, 20 Nov 2026 15:12:30 GMT", 90.0),
        ("Friday, 20-Nov-26 15:12:30 GMT", 90.0),
        ("Fri Nov 20 15:12:30 2026", 90.0),
        ("Fri, 20 Nov 2026 15:00:00 GMT", 0.0),
        ("Fri, 20 Nov 9999 15:00:00 GMT", MAX_RETRY_AFTER),
        ("Fri, 99 Nov 2026 15:00:00 GMT", None),
        ("Fri, 20 Nov 2026 15:00:00 +99999999999", None),
        ("Fri, 20 Nov 2026 15:00:00 +" + "9" * 30, None),
        ("Fri, 20 Nov " + "9" * 30 + " 15:00:00 GMT", None),
    ],
)
def test_a_retry_after_is_read_as_seconds_or_date_and_bounded(value, seconds):
    assert parse_retry_after(value, NOW) == seconds


@given(st.text() | st.floats().map(str) | st.integers().map(str))
def test_any_retry_after_gives_bounded_seconds_or_none(value):
    seconds = parse_retry_after(value, NOW)
    assert seconds is None or 0 <= seconds <= MAX_RETRY_AFTER


@given(
    st.datetimes(min_value=datetime(1900, 1, 1), max_value=datetime(9999, 12, 1)).map(  # noqa: DTZ001 - hypothesis takes naive bounds
        lambda moment: moment.replace(tzinfo=UTC, microsecond=0)
    )
)
def test_a_date_becomes_the_seconds_until_then(moment):
    header = moment.strftime("%a, %d %b %Y %H:%M:%S GMT")
    left = (moment - NOW) / timedelta(seconds=1)
    assert parse_retry_after(header, NOW) == min(max(left, 0.0), MAX_RETRY_AFTER)


def test_clean_text_drops_characters_that_a_text_column_or_a_page_cannot_hold():
    assert clean_text("a\x00b\ud800c\r\n d\x1b[31m\u202ee\tf") == "abc d[31me f"


def test_clean_text_keeps_letters_of_all_scripts():
    assert clean_text("Überlastet: 混雑 🙂") == "Überlastet: 混雑 🙂"


@given(st.text(st.characters(exclude_categories=())))
def test_clean_text_is_short_and_can_be_stored(text):
    cleaned = clean_text(text)
    assert len(cleaned) <= MAX_TEXT
    assert "\x00" not in cleaned
    assert cleaned.encode().decode() == cleaned
