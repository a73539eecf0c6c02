"""Rules of schedules: their days, which are those of dateutil, and clocks that change."""

from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta
from itertools import islice, pairwise
from zoneinfo import ZoneInfo

import pytest
from dateutil.rrule import rrulestr
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from notifications_app.recurrence import (
    FIRST_WITHIN,
    MAX_INTERVAL,
    NEXT_WITHIN,
    WEEKDAYS,
    Frequency,
    Recurrence,
    Rule,
    RuleError,
    are_apart,
)

MIDNIGHT = time()
DAYS = st.dates(date(2019, 1, 1), date(2032, 12, 31))


def listed(values, most):
    return st.lists(values, min_size=1, max_size=most, unique=True)


@st.composite
def rules(draw):
    frequency = draw(st.sampled_from(Frequency))
    is_placed = draw(st.booleans()) and frequency in {Frequency.MONTHLY, Frequency.YEARLY}
    places = st.sampled_from([*range(-5, 0), *range(1, 6)]) if is_placed else st.just("")
    month_days = st.sampled_from([*range(-31, 0), *range(1, 32)])
    options = {
        "INTERVAL": st.one_of(st.integers(1, 8), st.integers(1, MAX_INTERVAL)).map(lambda n: [n]),
        "BYDAY": listed(st.tuples(places, st.sampled_from(WEEKDAYS)), 4).map(
            lambda days: [f"{place}{day}" for place, day in days]
        ),
        "BYMONTHDAY": listed(month_days, 4),
        "BYMONTH": listed(st.integers(1, 12), 4),
    }
    if frequency == Frequency.WEEKLY:
        del options["BYMONTHDAY"]
    parts = [f"FREQ={frequency}"]
    names = draw(st.lists(st.sampled_from(list(options)), unique=True))
    return ";".join(parts + [f"{name}={','.join(map(str, draw(options[name])))}" for name in names])


def of_dateutil(rule, starts_on, until, most):
    until = datetime.combine(until, MIDNIGHT)
    whole = f"{rule};UNTIL={until:%Y%m%dT%H%M%S}"
    found = rrulestr(whole, dtstart=datetime.combine(starts_on, MIDNIGHT))
    return [each.date() for each in islice(found, most)]


@given(rules(), DAYS)
@settings(max_examples=150, deadline=None)
def test_a_rule_selects_the_days_of_dateutil(rule, starts_on):
    until = starts_on + timedelta(days=700)
    # dateutil takes seconds to find that a rule selects no day.
    found = list(islice(Rule.parsed(rule).days(starts_on, starts_on, until), 12))
    assume(found)
    assert found == of_dateutil(rule, starts_on, until, 12)


@given(rules(), DAYS, st.integers(0, 900))
@settings(max_examples=60, deadline=None)
def test_days_from_a_later_day_are_those_of_the_whole_list(rule, starts_on, later):
    parsed, until = Rule.parsed(rule), starts_on + FIRST_WITHIN
    whole = list(parsed.days(starts_on, starts_on, until))
    begin = starts_on + timedelta(days=later)
    assert list(parsed.days(starts_on, begin, until)) == [each for each in whole if each >= begin]


@pytest.mark.parametrize(
    ("rule", "starts_on", "expected"),
    [
        ("FREQ=YEARLY", date(2024, 2, 29), ["2024-02-29", "2028-02-29", "2032-02-29"]),
        (
            "FREQ=MONTHLY;BYMONTHDAY=29;BYMONTH=2",
            date(2026, 1, 1),
            ["2028-02-29", "2032-02-29", "2036-02-29"],
        ),
        ("FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=-1", date(2027, 1, 1), ["2027-02-28", "2028-02-29"]),
        ("FREQ=MONTHLY", date(2027, 1, 31), ["2027-01-31", "2027-03-31", "2027-05-31"]),
        ("FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29", date(2096, 1, 1), ["2096-02-29", "2104-02-29"]),
        ("FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30", date(2026, 1, 1), []),
        ("FREQ=MONTHLY;BYDAY=-1FR", date(2026, 1, 1), ["2026-01-30", "2026-02-27"]),
        ("FREQ=YEARLY;BYDAY=1MO", date(2026, 2, 1), ["2027-01-04", "2028-01-03"]),
    ],
)
def test_leap_days_and_ends_of_months(rule, starts_on, expected):
    days = Rule.parsed(rule).days(starts_on, starts_on, starts_on + NEXT_WITHIN)
    found = [each.isoformat() for each in islice(days, len(expected) or 1)]
    assert found == expected


@pytest.mark.parametrize(
    ("rule", "part"),
    [
        ("", ""),
        ("FREQ=HOURLY", "FREQ"),
        ("freq=DAILY", "freq"),
        ("INTERVAL=2", "FREQ"),
        ("FREQ=DAILY;FREQ=DAILY", "FREQ"),
        ("FREQ=DAILY;COUNT=3", "COUNT"),
        ("FREQ=DAILY;UNTIL=20300101T000000", "UNTIL"),
        ("FREQ=DAILY;WKST=SU", "WKST"),
        ("FREQ=DAILY;INTERVAL=0", "INTERVAL"),
        ("FREQ=DAILY;INTERVAL=367", "INTERVAL"),
        ("FREQ=DAILY;INTERVAL=1,2", "INTERVAL"),
        ("FREQ=DAILY;INTERVAL=٣", "INTERVAL"),
        ("FREQ=DAILY;INTERVAL", "INTERVAL"),
        ("FREQ=WEEKLY;BYDAY=", "BYDAY"),
        ("FREQ=WEEKLY;BYDAY=1MO", "BYDAY"),
        ("FREQ=MONTHLY;BYDAY=6MO", "BYDAY"),
        ("FREQ=MONTHLY;BYDAY=0MO", "BYDAY"),
        ("FREQ=MONTHLY;BYDAY=1MO,TU", "BYDAY"),
        ("FREQ=MONTHLY;BYDAY=MO,MO", "BYDAY"),
        ("FREQ=WEEKLY;BYMONTHDAY=1", "BYMONTHDAY"),
        ("FREQ=MONTHLY;BYMONTHDAY=0", "BYMONTHDAY"),
        ("FREQ=MONTHLY;BYMONTHDAY=32", "BYMONTHDAY"),
        ("FREQ=MONTHLY;BYMONTHDAY=1,", "BYMONTHDAY"),
        ("FREQ=YEARLY;BYMONTH=13", "BYMONTH"),
        ("FREQ=DAILY;" + "X" * 500, "FREQ"),
    ],
)
def test_what_is_no_rule_is_refused_with_the_name_of_the_part(rule, part):
    with pytest.raises(RuleError) as refused:
        Rule.parsed(rule)
    assert refused.value.part == part


@given(st.text(st.sampled_from("FREQ=DAILYWKMNTH;B,-+015"), max_size=60))
def test_any_text_is_a_rule_or_refused(text):
    with suppress(RuleError):
        assert Rule.parsed(f"FREQ=MONTHLY;{text}").frequency


# --- clocks ---------------------------------------------------------------------------------------

# Of all continents: changes by an hour, by half an hour, at midnight, to the south, and by a day.
_ZONES = """
Europe/Berlin Europe/London Europe/Lisbon Europe/Athens Europe/Dublin Europe/Chisinau
America/New_York America/Chicago America/Denver America/Los_Angeles America/St_Johns
America/Halifax America/Havana America/Santiago America/Asuncion America/Nuuk America/Miquelon
America/Scoresbysund Atlantic/Azores Atlantic/Bermuda Asia/Beirut Asia/Jerusalem Asia/Tehran
America/Mexico_City Africa/Casablanca Africa/El_Aaiun Australia/Sydney Australia/Lord_Howe
Pacific/Auckland Pacific/Chatham Pacific/Easter Antarctica/Troll
"""
ZONES = _ZONES.split()


def daily(zone, at, starts_on, **more):
    return Recurrence(rule="FREQ=DAILY", at=at, timezone=zone, starts_on=starts_on, **more)


def changes_of(zone):
    """The days of a year and a bit on which the zone's clock changes."""
    days = (date(2021, 12, 20) + timedelta(days=number) for number in range(380))
    shown = [(day, datetime.combine(day, MIDNIGHT, zone).utcoffset()) for day in days]
    return [day for (day, one), (_, other) in pairwise(shown) if one != other]


@pytest.mark.parametrize("name", ZONES)
def test_both_changes_of_a_clock_leave_each_time_once(name):
    """At each half hour of the days around: the clock shows the time, or the time as much later as
    the clock skips. Of a doubled time it is the first."""
    zone = ZoneInfo(name)
    at = [time(minute // 60, minute % 60) for minute in range(0, 24 * 60, 30)]
    skipped = doubled = 0
    for change in changes_of(zone):
        days = [change + timedelta(days=number) for number in (-1, 0, 1)]
        recurs = daily(name, at, days[0], ends_on=days[-1])
        before = _at(days[0]) - timedelta(days=1)
        expected = set()
        for wall in (datetime.combine(day, each, zone) for day in days for each in at):
            first, second = (wall.replace(fold=fold).astimezone(UTC) for fold in (0, 1))
            shown = first.astimezone(zone).replace(tzinfo=None)
            gap = first - second if shown != wall.replace(tzinfo=None) else timedelta()
            assert shown == wall.replace(tzinfo=None) + gap
            expected.add(first)
            skipped += bool(gap)
            doubled += first < second
        assert list(recurs.after(before, within=NEXT_WITHIN)) == sorted(expected)
    assert skipped
    assert doubled


def test_moments_that_coincide_are_one():
    zone, day = "Europe/Berlin", date(2026, 3, 29)
    at = [time(2, 30), time(3, 30)]
    found = list(daily(zone, at, day, ends_on=day).after(_at(day), within=NEXT_WITHIN))
    assert found == [datetime(2026, 3, 29, 1, 30, tzinfo=UTC)]


def test_a_day_that_a_country_skipped_is_sent_a_day_later_and_once():
    """Samoa had no 30 December 2011."""
    recurs = daily("Pacific/Apia", [time(9)], date(2011, 12, 29), ends_on=date(2012, 1, 1))
    found = list(recurs.after(_at(date(2011, 12, 28)), within=NEXT_WITHIN))
    shown = [each.astimezone(ZoneInfo("Pacific/Apia")).day for each in found]
    assert shown == [29, 31, 1]


@given(rules(), st.integers(1, 30), st.integers(1, 3), st.integers(0, 2_000))
@settings(max_examples=60, deadline=None)
def test_a_count_ends_a_schedule_wherever_one_begins_to_read(rule, count, times, later):
    starts_on = date(2026, 1, 5)
    values = {
        "rule": rule,
        "at": [time(9 + 4 * number) for number in range(times)],
        "timezone": "UTC",
        "starts_on": starts_on,
    }
    endless = Recurrence(**values).after(_at(starts_on), within=FIRST_WITHIN)
    whole = list(islice(endless, count))
    moment = _at(starts_on + timedelta(days=later))
    rest = list(Recurrence(**values, count=count).after(moment, within=NEXT_WITHIN))
    last = _at(starts_on) + FIRST_WITHIN
    assert [each for each in rest if each < last] == [
        each for each in whole if moment < each < last
    ]
    assert Recurrence.loaded(Recurrence(**values, count=count).stored()) == Recurrence(
        **values, count=count
    )


@pytest.mark.parametrize("year", [1, 9999])
def test_the_first_and_the_last_year_have_occurrences_like_others(year):
    recurs = daily("Pacific/Kiritimati", [time(0)], date(year, 12, 30))
    moment = datetime(year, 12, 29, tzinfo=UTC)
    assert next(recurs.after(moment, within=FIRST_WITHIN)).year == year


@pytest.mark.parametrize(
    ("at", "expected"),
    [
        ([time(9)], True),
        ([time(9), time(9, 15)], True),
        ([time(9), time(9, 14)], False),
        ([time(9), time(9)], False),
        ([time(0, 5), time(23, 55)], False),
        ([time(0, 5), time(23, 50)], True),
    ],
)
def test_times_are_a_quarter_of_an_hour_apart_also_over_midnight(at, expected):
    assert are_apart(at) is expected


def _at(day):
    return datetime.combine(day, MIDNIGHT, UTC)
