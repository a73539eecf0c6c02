"""When a schedule sends: rules that repeat, and the moments that they mean.

A rule is a strict subset of RRULE (RFC 5545, section 3.3.10). It selects days; each selected day
has one or more times of a time zone's clock. Pure: it reads no clock and no database.
"""

import re
from calendar import monthrange
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum
from itertools import pairwise
from typing import Any, Final, NamedTuple, NoReturn, Self
from zoneinfo import ZoneInfo

from django.utils.translation import gettext

MOST_TIMES: Final = 24  # of a day
LEAST_APART: Final = timedelta(minutes=15)
MOST_COUNT: Final = 10_000
MAX_RULE: Final = 500  # characters
MAX_INTERVAL: Final = 366
FIRST_WITHIN: Final = timedelta(days=1_827)  # five years: until then a rule must select a day
# After an occurrence, the next one is looked for this long. Every rule that repeats does so within
# 28 years of the calendar, apart from long intervals and the missing leap day of 2100.
NEXT_WITHIN: Final = timedelta(days=28 * 366)
# Instead of a time zone: each device's own clock. An occurrence begins where it is that time first.
RECIPIENT: Final = "recipient"
_FIRST_ZONE: Final = "Pacific/Kiritimati"  # always 14 hours before UTC, since 1995
WEEKDAYS: Final = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
_MOST_SHIFTED: Final = timedelta(days=2)  # a clock that skips a day shifts times by 24 hours
_DAY: Final = timedelta(days=1)


class Frequency(StrEnum):
    DAILY = "DAILY"
    WEEKLY = "WEEKLY"
    MONTHLY = "MONTHLY"
    YEARLY = "YEARLY"


class RuleError(ValueError):
    """A rule that cannot be read. `part`: the name of the part that is wrong."""

    def __init__(self, part: str, detail: str) -> None:
        super().__init__(f"{part}: {detail}")
        self.part = part


class Weekday(NamedTuple):
    """`number`: 0 is Monday. `place`: the first (1) or the last (-1) in its month or year, or 0:
    each."""

    number: int
    place: int


@dataclass(frozen=True)
class Rule:
    """The days that a rule selects. Empty parts select every day."""

    frequency: Frequency
    _: KW_ONLY
    interval: int = 1
    weekdays: tuple[Weekday, ...] = ()
    month_days: tuple[int, ...] = ()
    months: tuple[int, ...] = ()

    @classmethod
    def parsed(cls, text: str) -> Self:
        """Reads `FREQ=WEEKLY;BYDAY=MO,TH`. Raises RuleError."""
        if len(text) > MAX_RULE:
            _refuse("FREQ", gettext("A rule has at most %(most)s characters.") % {"most": MAX_RULE})
        parts: dict[str, str] = {}
        for part in text.split(";"):
            name, equals, value = part.partition("=")
            if name not in _PARTS or not equals:
                _refuse(
                    name[:20],
                    gettext("Must be one of %(parts)s, and followed by `=`.")
                    % {"parts": ", ".join(_PARTS)},
                )
            if name in parts:
                _refuse(name, gettext("Must be named once."))
            parts[name] = value
        if "FREQ" not in parts:
            _refuse("FREQ", gettext("Is missing."))
        read = {_PARTS[name][0]: _PARTS[name][1](value) for name, value in parts.items()}
        rule = cls(read.pop("frequency"), **read)
        rule._check()
        return rule

    def _check(self) -> None:
        has_places = {bool(each.place) for each in self.weekdays}
        if True in has_places and self.frequency in {Frequency.DAILY, Frequency.WEEKLY}:
            _refuse("BYDAY", gettext("Numbers such as in 1MO need MONTHLY or YEARLY."))
        if len(has_places) > 1:
            _refuse("BYDAY", gettext("Either all weekdays have numbers or none has."))
        if self.month_days and self.frequency == Frequency.WEEKLY:
            _refuse("BYMONTHDAY", gettext("Needs DAILY, MONTHLY or YEARLY."))

    def begun(self, starts_on: date) -> "Rule":
        """The rule with the parts that the first day gives: a weekly rule without weekdays repeats
        that of the first day, a monthly one its day of the month, a yearly one its date."""
        if self.weekdays or self.month_days or self.frequency == Frequency.DAILY:
            return self
        if self.frequency == Frequency.WEEKLY:
            return self._with(weekdays=(Weekday(starts_on.weekday(), 0),))
        months = self.months
        if self.frequency == Frequency.YEARLY and not months:
            months = (starts_on.month,)
        return self._with(month_days=(starts_on.day,), months=months)

    def _with(self, **changed: Any) -> "Rule":
        values = {name: getattr(self, name) for name in _VALUES}
        return Rule(self.frequency, **values | changed)

    def days(self, starts_on: date, begin: date, end: date) -> Iterator[date]:
        """The selected days from `begin` to `end`, not before `starts_on`, in their order."""
        rule, begin = self.begun(starts_on), max(begin, starts_on)
        year, month = begin.year, begin.month
        while (year, month) <= (end.year, end.month):
            for day in rule.of_month(starts_on, year, month):
                if begin <= day <= end:
                    yield day
            year, month = (year, month + 1) if month < 12 else (year + 1, 1)
            if year > date.max.year:
                return

    def of_month(self, starts_on: date, year: int, month: int) -> list[date]:
        """The selected days of a month, also those before the first day."""
        if self.months and month not in self.months:
            return []
        passed = 12 * (year - starts_on.year) + month - starts_on.month
        if self.frequency == Frequency.MONTHLY and passed % self.interval:
            return []
        if self.frequency == Frequency.YEARLY and (year - starts_on.year) % self.interval:
            return []
        first, length = date(year, month, 1), monthrange(year, month)[1]
        before = first.toordinal() - 1
        numbers: Sequence[int] = range(1, length + 1)
        if self.frequency == Frequency.DAILY:
            left = (starts_on.toordinal() - before - 1) % self.interval
            numbers = range(1 + left, length + 1, self.interval)
        if self.month_days:
            chosen = {day if day > 0 else length + 1 + day for day in self.month_days}
            numbers = [each for each in numbers if each in chosen]
        if self.weekdays and self.weekdays[0].place:
            placed = self._placed(year, first.weekday(), length, before)
            numbers = [each for each in numbers if each in placed]
        elif self.weekdays:
            wanted, shift = {each.number for each in self.weekdays}, first.weekday() - 1
            numbers = [each for each in numbers if (each + shift) % 7 in wanted]
        if self.frequency == Frequency.WEEKLY and self.interval > 1:
            week = _week(starts_on.toordinal())
            numbers = [
                each for each in numbers if (_week(before + each) - week) % self.interval == 0
            ]
        return [date(year, month, number) for number in numbers]

    def _placed(self, year: int, weekday: int, length: int, before: int) -> set[int]:
        """The numbers of the days of the month that are, for example, its first Monday; of a yearly
        rule without months, the first of the year."""
        if self.frequency == Frequency.YEARLY and not self.months:
            begin = date(year, 1, 1)
            weekday, shift = begin.weekday(), before - begin.toordinal() + 1
            length = date(year, 12, 31).toordinal() - begin.toordinal() + 1
        else:
            shift = 0
        found = set()
        for number, place in self.weekdays:
            days = range(1 + (number - weekday) % 7, length + 1, 7)
            if abs(place) <= len(days):
                found.add(days[place - 1 if place > 0 else place] - shift)
        return found


@dataclass(frozen=True, kw_only=True)
class Recurrence:
    """Days of a rule, and times of those days on the clock of a time zone.

    `ends_on` is the last day. `count`: how many occurrences there are, from `starts_on` on.
    """

    rule: str
    at: Sequence[time]
    timezone: str
    starts_on: date
    ends_on: date | None = None
    count: int | None = None
    parsed: Rule = field(init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "parsed", Rule.parsed(self.rule))

    @classmethod
    def loaded(cls, stored: Mapping[str, Any]) -> Self:
        """Reads what `stored` wrote."""
        return cls(
            rule=stored["rule"],
            at=[time.fromisoformat(each) for each in stored["at"]],
            timezone=stored["timezone"],
            starts_on=date.fromisoformat(stored["starts_on"]),
            ends_on=date.fromisoformat(stored["ends_on"]) if stored["ends_on"] else None,
            count=stored["count"],
        )

    def stored(self) -> dict[str, Any]:
        """As JSON, as in the API."""
        return {
            "rule": self.rule,
            "at": [f"{each:%H:%M}" for each in self.at],
            "timezone": self.timezone,
            "starts_on": self.starts_on.isoformat(),
            "ends_on": self.ends_on.isoformat() if self.ends_on else None,
            "count": self.count,
        }

    def after(self, moment: datetime, *, within: timedelta) -> Iterator[datetime]:
        """The occurrences later than `moment`, in UTC and in their order.

        Looks no further than `within` after the later of `moment` and the first day. A time that
        the clock skips means as much later, and one that it shows twice means the first. Moments
        that coincide because of that are one.
        """
        zone = self.zone
        begin = max(self.starts_on, _shifted(_local(moment, zone), -_MOST_SHIFTED))
        end = min(self.ends_on or date.max, _shifted(begin, within + _MOST_SHIFTED))
        left = None if self.count is None else self.count - self._counted(begin)
        times = sorted(self.at)
        for day in self.parsed.days(self.starts_on, begin, end):
            if left is not None:
                if left <= 0:
                    return
                times, left = times[:left], left - len(times)
            moments = {_utc(day, each, zone) for each in times}
            for at in sorted(each for each in moments if each is not None):
                if at > moment:
                    yield at
                    moment = at

    @property
    def zone(self) -> ZoneInfo:
        """On whose clock occurrences begin."""
        return zone_of(self.timezone)

    def local_at(self, moment: datetime) -> str | None:
        """The time of each device's clock that the occurrence means, such as `2026-12-24T18:00`.
        None on the clock of a time zone."""
        if self.timezone != RECIPIENT:
            return None
        return f"{moment.astimezone(self.zone):%Y-%m-%dT%H:%M}"

    def _counted(self, before: date) -> int:
        """How many occurrences there are on the days before."""
        if before <= self.starts_on:
            return 0
        most = -(-(self.count or 0) // len(self.at))
        days = self.parsed.days(self.starts_on, self.starts_on, before - _DAY)
        return len(self.at) * sum(1 for _ in _first(most, days))


def zone_of(timezone: str) -> ZoneInfo:
    return ZoneInfo(_FIRST_ZONE if timezone == RECIPIENT else timezone)


def are_apart(at: Sequence[time]) -> bool:
    """Whether the times of a day are LEAST_APART, also over midnight."""
    minutes = sorted(60 * each.hour + each.minute for each in at)
    least = LEAST_APART.total_seconds() / 60
    return all(b - a >= least for a, b in pairwise([*minutes, minutes[0] + 24 * 60]))


def _first(most: int, days: Iterator[date]) -> Iterator[date]:
    for _, day in zip(range(most), days, strict=False):
        yield day


def _local(moment: datetime, zone: ZoneInfo) -> date:
    try:
        return moment.astimezone(zone).date()
    except OverflowError:  # on the first or the last day that dates have
        return moment.date()


def _shifted(day: date, by: timedelta) -> date:
    try:
        return day + by
    except OverflowError:
        return date.max if by > timedelta() else date.min


def _utc(day: date, at: time, zone: ZoneInfo) -> datetime | None:
    try:
        return datetime.combine(day, at.replace(fold=0), zone).astimezone(UTC)
    except OverflowError:  # the first and the last day that dates have
        return None


def _week(ordinal: int) -> int:
    return (ordinal - 1) // 7  # day 1 was a Monday


def _frequency(text: str) -> Frequency:
    try:
        return Frequency(text)
    except ValueError:
        _refuse(
            "FREQ", gettext("Must be one of %(frequency)s.") % {"frequency": ", ".join(Frequency)}
        )


def _interval(text: str) -> int:
    (interval,) = _numbers("INTERVAL", text, range(1, MAX_INTERVAL + 1), most=1)
    return interval


def _weekdays(text: str) -> tuple[Weekday, ...]:
    found = []
    for each in text.split(","):
        match = _WEEKDAY.fullmatch(each)
        if match is None:
            _refuse(
                "BYDAY", gettext("Must be weekdays such as MO,TU or 1MO,-1FR; numbers are 1 to 5.")
            )
        found.append(Weekday(WEEKDAYS.index(match["day"]), int(match["place"] or 0)))
    _check_once("BYDAY", found)
    return tuple(found)


def _month_days(text: str) -> tuple[int, ...]:
    days = (*range(-31, 0), *range(1, 32))
    return _numbers("BYMONTHDAY", text, days)


def _months(text: str) -> tuple[int, ...]:
    return _numbers("BYMONTH", text, range(1, 13))


def _numbers(part: str, text: str, allowed: Sequence[int], *, most: int = 62) -> tuple[int, ...]:
    given = text.split(",")
    numbers = [int(each) for each in given if _NUMBER.fullmatch(each)]
    low, high = f"{allowed[0]}".replace("-31", "±1"), f"{allowed[-1]}"
    if len(numbers) < len(given) or len(given) > most or not {*numbers} <= {*allowed}:
        detail = gettext("Must be numbers from %(low)s to %(high)s.")
        if most == 1:
            detail = gettext("Must be a number from %(low)s to %(high)s.")
        _refuse(part, detail % {"low": low, "high": high})
    _check_once(part, numbers)
    return tuple(numbers)


def _check_once(part: str, values: Sequence[object]) -> None:
    if len({*values}) < len(values):
        _refuse(part, gettext("Names something twice."))


def _refuse(part: str, detail: str) -> NoReturn:
    raise RuleError(part, detail)


_WEEKDAY: Final = re.compile(rf"(?P<place>[+-]?[1-5])?(?P<day>{'|'.join(WEEKDAYS)})", re.ASCII)
_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,3}", re.ASCII)
_PARTS: Final[Mapping[str, tuple[str, Callable[[str], Any]]]] = {
    "FREQ": ("frequency", _frequency),
    "INTERVAL": ("interval", _interval),
    "BYDAY": ("weekdays", _weekdays),
    "BYMONTHDAY": ("month_days", _month_days),
    "BYMONTH": ("months", _months),
}
_VALUES: Final = tuple(name for name, _ in _PARTS.values() if name != "frequency")
