"""The periods of the console's figures and lists: whole hours or days of UTC.

A period includes the current hour or day. So a figure is always the sum of its chart.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, Literal

PERIOD_NAMES: Final[Mapping[int, str]] = {
    1: "24 hours",
    7: "7 days",
    30: "30 days",
    90: "90 days",
}
Unit = Literal["hour", "day"]
_STEPS: Final[Mapping[Unit, timedelta]] = {"hour": timedelta(hours=1), "day": timedelta(days=1)}
_MOST_COMPARED: Final = 30  # hours or days; comparing longer periods would read too much


@dataclass(frozen=True)
class Period:
    """`starts`: the starts of its hours or days, oldest first. `is_compared`: whether figures are
    compared with the previous period."""

    unit: Unit
    step: timedelta
    starts: tuple[datetime, ...]
    is_compared: bool

    @property
    def end(self) -> datetime:
        return self.starts[-1] + self.step

    @property
    def read_from(self) -> datetime:
        return self.starts[0] - self.step * len(self.starts) * self.is_compared


def period(now: datetime, days: int) -> Period:
    """The last 24 hours if `days` is 1, otherwise the last `days` days."""
    unit: Unit = "hour" if days == 1 else "day"
    count = 24 if days == 1 else days
    return _period(_begun(now, unit), unit, count, is_compared=count <= _MOST_COMPARED)


def period_between(since: datetime, until: datetime, unit: Unit, *, most: int) -> Period | None:
    """The whole hours or days that have a part between `since` and the later `until`. None if there
    are more than `most`."""
    first, last = _begun(since, unit), _begun(until - timedelta(microseconds=1), unit)
    count = (last - first) // _STEPS[unit] + 1
    return _period(last, unit, count, is_compared=False) if count <= most else None


def parse_days(text: str) -> int | None:
    """The days of an offered period. None if no such period is offered."""
    return next((days for days in PERIOD_NAMES if str(days) == text), None)


def _begun(moment: datetime, unit: Unit) -> datetime:
    """When the hour or day of the moment began."""
    hour = moment.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    return hour if unit == "hour" else hour.replace(hour=0)


def _period(last: datetime, unit: Unit, count: int, *, is_compared: bool) -> Period:
    step = _STEPS[unit]
    starts = tuple(last - step * back for back in reversed(range(count)))
    return Period(unit, step, starts, is_compared)
