"""When a schedule sends, in words."""

import calendar
from collections.abc import Sequence
from typing import Final

from notifications_app.recurrence import RECIPIENT, Frequency, Recurrence, Rule, Weekday

_UNITS: Final = {
    Frequency.DAILY: "day",
    Frequency.WEEKLY: "week",
    Frequency.MONTHLY: "month",
    Frequency.YEARLY: "year",
}
_ORDINALS: Final = {1: "1st", 2: "2nd", 3: "3rd"}  # and so on, after each ten


def recurrence_words(recurs: Recurrence) -> str:
    """Such as "Every week on Monday and Thursday at 09:00"."""
    times = listed([f"{at:%H:%M}" for at in sorted(recurs.at)])
    words = f"{_rule_words(recurs.parsed.begun(recurs.starts_on))} at {times}"
    if recurs.ends_on:
        words += f", until {recurs.ends_on:%-d %B %Y}"
    if recurs.count:
        words += f", {recurs.count:,} time{'s' if recurs.count > 1 else ''}"
    return words


def clock_words(timezone: str) -> str:
    """Whose clock it is."""
    return "each recipient" if timezone == RECIPIENT else timezone


def listed(words: Sequence[str]) -> str:
    *rest, last = words
    return f"{', '.join(rest)} and {last}" if rest else last


def _rule_words(rule: Rule) -> str:
    unit = _UNITS[rule.frequency]
    every = f"Every {rule.interval} {unit}s" if rule.interval > 1 else f"Every {unit}"
    months = listed([calendar.month_name[each] for each in sorted(rule.months)] or [""])
    days = [_day(each) for each in rule.month_days]
    weekdays = [_weekday(each) for each in rule.weekdays]
    if rule.frequency == Frequency.YEARLY and months and len(days) == 1 and not weekdays:
        return f"{every} on {days[0]} of {months}"
    parts = [every]
    if days:
        parts.append(f"on {listed(days)}")
    if weekdays:
        parts.append(f"{'if it is' if days else 'on'} {listed(weekdays)}")
    if months:
        parts.append(f"in {months}")
    return " ".join(parts)


def _day(day: int) -> str:
    if day > 0:
        return f"the {_ordinal(day)}"
    return "the last day" if day == -1 else f"the {_ordinal(-day)} last day"


def _weekday(weekday: Weekday) -> str:
    name = calendar.day_name[weekday.number]
    if weekday.place == 0:
        return name
    if weekday.place == -1:
        return f"the last {name}"
    last = " last" if weekday.place < 0 else ""
    return f"the {_ordinal(abs(weekday.place))}{last} {name}"


def _ordinal(number: int) -> str:
    ending = "th" if number in {11, 12, 13} else _ORDINALS.get(number % 10, "0th")[1:]
    return f"{number}{ending}"
