"""Any text like ISO 8601 is read as a time of the years 1 to 9999, or is a ValueError."""

import re
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pushsvc.common.timestamps import format_timestamp, parse_timestamp

FIRST, LAST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
OFFSETS = st.integers(-23 * 60 - 59, 23 * 60 + 59).map(
    lambda minutes: timezone(timedelta(minutes=minutes))
)
MOMENTS = st.datetimes(timezones=st.just(UTC))
SPELT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


def is_in_range(moment, offset):
    try:
        moment.astimezone(offset)
    except OverflowError:
        return False
    return True


@given(MOMENTS)
@example(FIRST)
@example(LAST)
def test_a_written_time_is_read_back_unchanged(moment):
    text = format_timestamp(moment)

    assert SPELT.fullmatch(text)
    assert parse_timestamp(text) == moment.replace(microsecond=moment.microsecond // 1000 * 1000)


@given(MOMENTS, OFFSETS, st.sampled_from(["T", "t", " "]))
def test_every_offset_gives_the_same_time(moment, offset, separator):
    if is_in_range(moment, offset):
        text = moment.astimezone(offset).isoformat(sep=separator)
        assert parse_timestamp(text) == moment


@given(MOMENTS, OFFSETS, st.sampled_from(["calendar", "week", "ordinal"]), st.booleans())
def test_every_form_of_a_date_gives_the_same_time(moment, offset, form, is_basic):
    moment = moment.replace(microsecond=0)
    if not is_in_range(moment, offset):
        return
    local = moment.astimezone(offset)
    year, week, day = local.isocalendar()
    if form == "week" and not 1 <= year <= 9999:
        return
    date = {
        "calendar": local.date().isoformat(),
        "week": f"{year:04}-W{week:02}-{day}",
        "ordinal": f"{local.year:04}-{local.timetuple().tm_yday:03}",
    }[form]
    # isoformat, because strftime omits the colon of an offset and the zeros of a year
    text = f"{date}T{local.timetz().isoformat()}"
    if is_basic:
        sign = "-" if local.utcoffset() < timedelta() else "+"
        clock = text[len(date) + 1 :].removesuffix(local.isoformat()[-6:])
        offset_text = local.isoformat()[-5:].replace(":", "")
        text = f"{date.replace('-', '')}T{clock.replace(':', '')}{sign}{offset_text}"

    assert parse_timestamp(text) == moment


@given(st.dates(max_value=datetime(9999, 12, 30).date()), st.sampled_from(["", "Z", "+00:00"]))  # noqa: DTZ001 (a date)
def test_24_00_is_the_next_day(date, offset):
    midnight = datetime(date.year, date.month, date.day, tzinfo=UTC) + timedelta(days=1)
    for clock in ("24:00", "24", "24:00:00", "24:00:00.000"):
        assert parse_timestamp(f"{date.isoformat()}T{clock}{offset}") == midnight


_DIGITS = st.text("0123456789", min_size=1, max_size=5)
_PIECES = st.sampled_from([*"TtZz W:+-.,/", "24:00", "60", "W53", "366", "-00:00", "\u2212"])
SIMILAR = st.lists(_DIGITS | _PIECES, max_size=14).map("".join)


@given(SIMILAR | st.text() | MOMENTS.map(str).flatmap(lambda text: st.just(text + "+99:99")))
@example("9999-12-31T24:00Z")
@example("0001-01-01T00:00+00:01")
@example("9999-12-31T23:59:59.999999-23:59")
@example("2026-11-20T23:59:60Z")
@example("2026-000T00:00Z")
@example("2025-366T00:00Z")
@example("0000-001T00:00Z")
@example("0000-12-31T00:00Z")
@example("2026-W54-1T00:00Z")
@example("2026-11-20T00:00:00.\N{ARABIC-INDIC DIGIT ONE}Z")
@example("T" * 60_000)
@example("2026-11-20T00:00:00." + "9" * 60_000)
@example("1" * 60_000 + "T")
def test_any_text_is_a_time_in_range_or_rejected(text):
    try:
        moment = parse_timestamp(text)
    except ValueError:
        return
    assert moment.tzinfo is UTC
    assert FIRST <= moment <= LAST
    assert SPELT.fullmatch(format_timestamp(moment))


@pytest.mark.parametrize(
    "text",
    [
        "2026-11-20",
        "2026-11-20T23:59:60Z",
        "2026-000T00:00Z",
        "2025-366T00:00Z",
        "9999-12-31T24:00Z",
        "0001-01-01T00:00+00:01",
        "2026-11-20T24:01Z",
    ],
)
def test_a_text_that_is_not_a_time_is_rejected(text):
    with pytest.raises(ValueError):  # noqa: PT011 (its words differ)
        parse_timestamp(text)
