"""Parses ISO 8601 dates and times. Formats them as UTC with milliseconds."""

import re
from datetime import UTC, datetime, timedelta

_ORDINAL = re.compile(r"^(\d{4})-?(\d{3})(?=T)", re.ASCII)
_END_OF_DAY = re.compile(r"T24(?=:?00(?::?00(?:[.,]0+)?)?(?:Z|[+-]|$)|(?:Z|[+-]|$))", re.ASCII)


def format_timestamp(moment: datetime) -> str:
    """Formats a time, such as `2026-11-20T15:11:00.123Z`. It must have a time zone."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def parse_timestamp(text: str) -> datetime:
    """Parses a date and time; returns it in UTC. A text without an offset counts as UTC.

    Accepts calendar, week and ordinal dates, basic and extended, and `24:00` as the end of a day.
    Raises ValueError for a date alone, a leap second, or a time outside the years 1 to 9999.
    """
    spelled = text.upper().replace(" ", "T", 1)
    if not spelled.isascii() or "T" not in spelled:
        raise ValueError("not a date and time")
    spelled, days = _END_OF_DAY.subn("T00", spelled)
    moment = datetime.fromisoformat(_ORDINAL.sub(_calendar_date, spelled, count=1))
    try:
        aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return aware.astimezone(UTC) + timedelta(days=days)
    except OverflowError as error:
        raise ValueError("outside the years 1 to 9999") from error


def _calendar_date(ordinal: re.Match[str]) -> str:
    first = datetime(int(ordinal[1]), 1, 1, tzinfo=UTC)
    day = first + timedelta(days=int(ordinal[2]) - 1)
    if day.year != first.year or ordinal[2] == "000":
        raise ValueError("no such day of the year")
    return day.date().isoformat()
