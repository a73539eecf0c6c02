"""The format of numbers, shares, durations and times in the console."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from pushsvc.common import quantities
from pushsvc.common.console import figures


@pytest.mark.parametrize(
    ("write", "given", "written"),
    [
        (figures.grouped, 1234567, "1,234,567"),
        (figures.signed, 1234, "+1,234"),
        (figures.signed, -1234, "\N{MINUS SIGN}1,234"),
        (figures.signed, 0, "0"),
        (figures.rate, 4.24, "4.2"),
        (figures.rate, 1234.5, "1,234"),
        (figures.percent, 0.1234, "12.3 %"),
        (figures.percent, quantities.share(1, 0), figures.NOTHING),
        (figures.width, quantities.share(1, 3), "33.33%"),
        (figures.width, quantities.share(1, 0), "0.00%"),
        (quantities.duration, 7500, "2 h 5 min"),
        (quantities.duration, 59.2, "1 min"),
        (quantities.duration, 90061, "1 d 1 h"),
        (quantities.duration, 0, "0 s"),
        (figures.moment, None, figures.NOTHING),
    ],
)
def test_each_kind_of_figure_has_one_format(write, given, written):
    assert write(given) == written


@pytest.mark.parametrize(
    ("how", "written"),
    [
        ("", "2026-11-21 12:30 UTC"),
        ("seconds", "2026-11-21 12:30:05 UTC"),
        ("clock", "12:30:05 UTC"),
    ],
)
def test_a_time_is_written_in_utc_and_marked_for_the_readers_time_zone(how, written):
    moment = datetime(2026, 11, 21, 12, 30, 5, tzinfo=UTC).astimezone(timezone(timedelta(hours=5)))

    assert figures.moment(moment, how) == (
        f'<time data-local="{how}" datetime="2026-11-21T17:30:05+05:00">{written}</time>'
    )
