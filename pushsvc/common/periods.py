"""The periods of the console's figures and lists: whole hours, or whole days of a time zone.

A period includes the current hour or day. So a figure is always the sum of its chart. A span is a
day, week or month of the calendar.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Final, Literal

from pushsvc.common.texts import later

PERIOD_NAMES: Final[Mapping[int, str]] = {
    1: later("24 hours"),
    7: later("7 days"),
    30: later("30 days"),
    90: later("90 days"),
}
SPAN_NAMES: Final[Mapping[str, str]] = {
    "today": later("Today"),
    "yesterday": later("Yesterday"),
    "this_week": later("This week"),
    "last_week": later("Last week"),
    "this_month": later("This month"),
    "last_month": later("Last month"),
}
Unit = Literal["hour", "day"]
_STEPS: Final[Mapping[Unit, timedelta]] = {"hour": timedelta(hours=1), "day": timedelta(days=1)}
_MOST_COMPARED: Final = 30  # hours or days; comparing longer periods would read too much


@dataclass(frozen=True)
class Period:
    """`starts`: the starts of its hours or days, oldest first, in the zone whose days they are;
    hours are those of UTC. `is_compared`: whether figures are compared with the previous period,
    which begins at `read_from`."""

    unit: Unit
    starts: tuple[datetime, ...]
    end: datetime
    is_compared: bool
    read_from: datetime

    @property
    def zone(self) -> tzinfo:
        return self.starts[0].tzinfo or UTC


def period(now: datetime, days: int, zone: tzinfo = UTC) -> Period:
    """The last 24 hours if `days` is 1, otherwise the last `days` days of the zone."""
    unit: Unit = "hour" if days == 1 else "day"
    count = 24 if days == 1 else days
    return _period(now, unit, count, zone, is_compared=count <= _MOST_COMPARED)


def period_between(since: datetime, until: datetime, unit: Unit, *, most: int) -> Period | None:
    """The whole hours or days that have a part between `since` and the later `until`. None if there
    are more than `most`."""
    last = until - timedelta(microseconds=1)
    count = (_begun(last, unit) - _begun(since, unit)) // _STEPS[unit] + 1
    return _period(last, unit, count, UTC, is_compared=False) if count <= most else None


def span(now: datetime, name: str, zone: tzinfo) -> tuple[datetime, datetime]:
    """The beginning and the end of one of SPAN_NAMES, by the days of the zone. Weeks begin on
    Monday."""
    today = now.astimezone(zone).date()
    first, last = _span_days(today, name)
    begin, end = (datetime.combine(each, time(), zone) for each in (first, last))
    return begin.astimezone(UTC), end.astimezone(UTC)


def _span_days(today: date, name: str) -> tuple[date, date]:
    """The first day, and the day after the last."""
    day, week = timedelta(days=1), timedelta(days=7)
    monday, first = today - today.weekday() * day, today.replace(day=1)
    return {
        "today": (today, today + day),
        "yesterday": (today - day, today),
        "this_week": (monday, monday + week),
        "last_week": (monday - week, monday),
        "this_month": (first, (first + 31 * day).replace(day=1)),
        "last_month": ((first - day).replace(day=1), first),
    }[name]


def parse_days(text: str) -> int | None:
    """The days of an offered period. None if no such period is offered."""
    return next((days for days in PERIOD_NAMES if str(days) == text), None)


def _begun(moment: datetime, unit: Unit, zone: tzinfo = UTC) -> datetime:
    """When the hour of UTC, or the day of the zone, began in which the moment is."""
    own = moment.astimezone(UTC if unit == "hour" else zone)
    begun = own.replace(minute=0, second=0, microsecond=0, fold=0)
    return begun if unit == "hour" else begun.replace(hour=0)


def _period(moment: datetime, unit: Unit, count: int, zone: tzinfo, *, is_compared: bool) -> Period:
    """The last one contains the moment. Days have the same wall clock, so some have 23 or 25
    hours."""
    last, step = _begun(moment, unit, zone), _STEPS[unit]
    starts = tuple(last - step * back for back in reversed(range(count)))
    read_from = starts[0] - step * count * is_compared
    return Period(unit, starts, last + step, is_compared, read_from)
