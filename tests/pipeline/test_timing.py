"""The releases of sends by local time, compared with dateutil's reading of the same zones."""

from datetime import UTC, date, datetime, time, timedelta
from importlib import resources

import pytest
from dateutil import tz
from hypothesis import assume, given
from hypothesis import strategies as st

from notifications_app.timing import Quiet, Timing, is_local_at, releases

NAMES = resources.files("tzdata").joinpath("zones").read_text(encoding="utf-8").split()
ZONES = st.lists(
    st.sampled_from(["", "Mars/Olympus", *NAMES]), min_size=1, max_size=20, unique=True
)
FIRST, LAST = date(2020, 1, 1), date(2037, 1, 1)  # dateutil knows no change of clocks after 2037
MOMENTS = st.datetimes(
    datetime.combine(FIRST, time()), datetime.combine(LAST, time()), timezones=st.just(UTC)
)
TIMES = st.times().map(lambda each: each.replace(second=0, microsecond=0, tzinfo=None))
HOUR = timedelta(hours=1)
LONGEST_GAP = 2 * HOUR  # at Antarctica/Troll


def timing(local_at, after, timezone="Europe/Berlin"):
    return Timing(local_at=local_at, after=after, timezone=timezone)


def clock(name, moment):
    """What clocks of the zone show, by dateutil."""
    zone = tz.gettz(name if name in NAMES else "Europe/Berlin")
    return moment.astimezone(zone).replace(tzinfo=None)


def exists(name, local):
    return tz.datetime_exists(local, tz.gettz(name if name in NAMES else "Europe/Berlin"))


@given(zones=ZONES, after=MOMENTS, wall=TIMES)
def test_each_zone_gets_it_once_at_the_first_such_time_of_its_clocks(zones, after, wall):
    found = releases(zones, timing(f"{wall:%H:%M}", after), now=after)

    assert sorted(name for each in found.values() for name in each) == sorted(zones)
    assert list(found) == sorted(found)
    for moment, names in found.items():
        assert after <= moment <= after + 26 * HOUR
        for name in names:
            local = clock(name, moment)
            if local.time() != wall:  # skipped by clocks that are put forward
                asked = datetime.combine(local.date(), wall)
                assert not exists(name, asked)
                assert timedelta() < local - asked <= LONGEST_GAP
            earlier = clock(name, moment - 24 * HOUR)
            is_earlier = moment - 24 * HOUR >= after and earlier.time() == wall
            assert not is_earlier, "it was this time before"


@given(zones=ZONES, day=st.dates(FIRST, LAST), wall=TIMES)
def test_the_time_of_a_day_comes_to_all_zones_within_26_hours(zones, day, wall):
    asked = datetime.combine(day, wall)
    long_ago = datetime(2019, 1, 1, tzinfo=UTC)
    found = releases(zones, timing(f"{asked:%Y-%m-%dT%H:%M}", long_ago), now=long_ago)

    assert sorted(name for each in found.values() for name in each) == sorted(zones)
    assert max(found) - min(found) <= 26 * HOUR
    for moment, names in found.items():
        for name in names:
            local = clock(name, moment)
            assert local == asked or (not exists(name, asked) and local - asked <= LONGEST_GAP)


@given(zones=ZONES, after=MOMENTS)
def test_a_day_that_is_over_is_now(zones, after):
    found = releases(zones, timing("2019-12-24T18:00", after), now=after)
    assert list(found) == [after]


@given(zones=ZONES, after=MOMENTS, late=st.timedeltas(timedelta(), timedelta(days=3)), wall=TIMES)
def test_what_a_late_start_has_missed_is_released_now(zones, after, late, wall):
    own = timing(f"{wall:%H:%M}", after)
    now = after + late
    found = releases(zones, own, now=now)
    assert {n: m for m, names in found.items() for n in names} == {
        name: max(own.release(name), now) for name in zones
    }


@pytest.mark.parametrize(
    ("local_at", "shown"),
    [
        # Clocks go from 02:00 to 03:00 on 29 March, and from 03:00 back to 02:00 on 25 October.
        ("2026-03-29T02:30", "2026-03-29T01:30"),
        ("2026-10-25T02:30", "2026-10-25T00:30"),
        ("2026-12-24T18:00", "2026-12-24T17:00"),
    ],
)
def test_a_skipped_time_is_as_much_later_and_a_doubled_one_the_first(local_at, shown):
    own = timing(local_at, datetime(2026, 1, 1, tzinfo=UTC))
    assert own.release("Europe/Berlin") == datetime.fromisoformat(f"{shown}+00:00")
    assert own.release("") == own.release("Mars/Olympus") == own.release("Europe/Berlin")


def test_whoever_has_passed_the_time_today_gets_it_tomorrow():
    own = timing("09:00", datetime(2026, 6, 1, 12, tzinfo=UTC))
    assert own.release("Pacific/Auckland") == datetime(2026, 6, 1, 21, tzinfo=UTC)
    assert own.release("America/New_York") == datetime(2026, 6, 1, 13, tzinfo=UTC)
    assert own.release("Europe/London") == datetime(2026, 6, 2, 8, tzinfo=UTC)
    at_nine = timing("09:00", datetime(2026, 6, 1, 8, tzinfo=UTC))
    assert at_nine.release("Europe/London") == at_nine.after


@pytest.mark.parametrize(
    "text",
    ["9:00", "24:00", "09:60", "09:00:00", "09:00Z", "", "2026-02-30T09:00", "2026-12-24 18:00"],
)
def test_other_texts_are_no_local_times(text):
    assert not is_local_at(text)


@given(wall=TIMES, after=MOMENTS)
def test_a_timing_is_stored_and_read_again(wall, after):
    own = timing(f"{wall:%H:%M}", after)
    assert Timing.of(own.stored() | {"of_another_version": 1}) == own
    assert time.fromisoformat(own.local_at) == wall


# Quiet hours


def quiet_timing(begin, end):
    own = Quiet(f"{begin:%H:%M}", f"{end:%H:%M}")
    return Timing(timezone="Europe/Berlin", quiet=own, quiet_from="send")


def is_quiet(name, moment, begin, end):
    shown = clock(name, moment).time().replace(second=0, microsecond=0)
    return begin <= shown < end if begin < end else shown >= begin or shown < end


@given(name=st.sampled_from(["", *NAMES]), now=MOMENTS, begin=TIMES, end=TIMES)
def test_quiet_hours_are_those_of_the_clock_and_end_with_them(name, now, begin, end):
    assume(begin != end)
    own = quiet_timing(begin, end)
    until = own.quiet_until(name, now)
    assert (until is not None) == is_quiet(name, now, begin, end)
    released = own.release(name, now=now)
    assert released == (until or now)
    if until is not None:
        assert now < until <= now + 26 * HOUR
        assert not is_quiet(name, until, begin, end)
        assert is_quiet(name, until - timedelta(minutes=1), begin, end)


@pytest.mark.parametrize("day", [date(2026, 3, 29), date(2026, 10, 25), date(2026, 6, 1)])
def test_both_sides_of_each_border_in_every_zone(day):
    own = quiet_timing(time(22), time(8))
    for name in NAMES:
        zone = tz.gettz(name)
        begins = datetime.combine(day, time(22), tzinfo=zone).astimezone(UTC)
        ends = datetime.combine(day, time(8), tzinfo=zone).astimezone(UTC)
        second = timedelta(seconds=1)
        assert own.quiet_until(name, begins - second) is None, name
        assert own.quiet_until(name, begins) is not None, name
        assert own.quiet_until(name, ends - second) == ends, name
        assert own.quiet_until(name, ends) is None, name


@pytest.mark.parametrize(
    ("begin", "end", "now", "until"),
    [
        # Clocks skip the end, 02:30, on 29 March; and show it twice on 25 October.
        ("22:00", "02:30", "2026-03-28T23:00", "2026-03-29T01:00"),
        ("22:00", "02:30", "2026-10-24T23:00", "2026-10-25T00:30"),
        ("22:00", "02:30", "2026-10-25T01:10", "2026-10-25T01:30"),
    ],
)
def test_quiet_hours_that_end_while_clocks_change(begin, end, now, until):
    own = quiet_timing(time.fromisoformat(begin), time.fromisoformat(end))
    found = own.quiet_until("Europe/Berlin", datetime.fromisoformat(f"{now}+00:00"))
    assert found == datetime.fromisoformat(f"{until}+00:00")


def test_the_begin_of_quiet_hours_is_seen_ahead():
    own = quiet_timing(time(22), time(8))
    now = datetime(2026, 6, 1, 19, 59, 30, tzinfo=UTC)  # 21:59:30 in Berlin
    assert own.quiet_within("Europe/Berlin", now, seconds=60) == now + timedelta(seconds=30)
    assert own.quiet_within("Europe/Berlin", now, seconds=20) is None
    assert own.quiet_within("UTC", now, seconds=60) is None


@pytest.mark.parametrize("name", ["Pacific/Kiritimati", "UTC", "Pacific/Niue"])
@pytest.mark.parametrize("day", ["9998-12-31", "9999-12-30", "9999-12-31"])
def test_the_last_moments_that_dates_have_can_be_released(name, day):
    for hour in range(24):
        moment = datetime.fromisoformat(f"{day}T{hour:02}:59:59.999Z")
        for begin, end in ((time(22), time(8)), (time(0, 1), time(0)), (time(0), time(23, 59))):
            assert quiet_timing(begin, end).release(name, now=moment) >= moment
