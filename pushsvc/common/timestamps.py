"""Parses ISO 8601 dates and times. Formats them as UTC with milliseconds. Names of time zones."""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from importlib import resources
from typing import Final

_ORDINAL = re.compile(r"^(\d{4})-?(\d{3})(?=T)", re.ASCII)
_END_OF_DAY = re.compile(r"T24(?=:?00(?::?00(?:[.,]0+)?)?(?:Z|[+-]|$)|(?:Z|[+-]|$))", re.ASCII)
# The zones of Java and of iOS that have only an offset (TimeZone.getID, TimeZone.identifier).
_OFFSET: Final = re.compile(r"(?:gmt|utc)?(?P<sign>[+-])(?P<hours>[0-9]{1,2})(?::?00)?", re.ASCII)


NOT_A_TIMEZONE: Final = "Must be a time zone that tzdata knows, such as Europe/Berlin."


def canonical_timezone(text: str) -> str | None:
    """The name in tzdata's spelling, whatever its case, or None if tzdata does not have it. An
    offset of whole hours also has a name: `GMT+02:00` is `Etc/GMT-2`."""
    name = text.lower()
    offset = _OFFSET.fullmatch(name)
    if offset and name not in _timezones():
        # POSIX counts to the west (tzdata, file etcetera).
        sign = "-" if offset["sign"] == "+" else "+"
        name = f"etc/gmt{sign}{int(offset['hours'])}"
    return _timezones().get(name)


@cache
def timezone_names() -> Sequence[str]:
    """All names in tzdata, sorted."""
    return sorted(_timezones().values())


@cache
def _timezones() -> Mapping[str, str]:
    """The names in tzdata by their lower case. `zoneinfo.available_timezones` reads hundreds of
    files for the same names."""
    names = resources.files("tzdata").joinpath("zones").read_text(encoding="utf-8")
    return {name.lower(): name for name in names.split()}


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
