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
_MOST_COMPARED: Final = 30  # hours or days; comparing longer periods would read too much


@dataclass(frozen=True)
class Period:
    """`starts`: the starts of its hours or days, oldest first. `is_compared`: whether figures are
    compared with the previous period."""

    unit: Literal["hour", "day"]
    step: timedelta
    starts: tuple[datetime, ...]

    @property
    def is_compared(self) -> bool:
        return len(self.starts) <= _MOST_COMPARED

    @property
    def read_from(self) -> datetime:
        return self.starts[0] - self.step * len(self.starts) * self.is_compared


def period(now: datetime, days: int) -> Period:
    """The last 24 hours if `days` is 1, otherwise the last `days` days."""
    hour = now.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    if days == 1:
        return _period("hour", timedelta(hours=1), hour, 24)
    return _period("day", timedelta(days=1), hour.replace(hour=0), days)


def parse_days(text: str) -> int | None:
    """The days of an offered period. None if no such period is offered."""
    return next((days for days in PERIOD_NAMES if str(days) == text), None)


def _period(unit: Literal["hour", "day"], step: timedelta, last: datetime, count: int) -> Period:
    return Period(unit, step, tuple(last - step * back for back in reversed(range(count))))
