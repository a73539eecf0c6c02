"""When a channel's recipients click: sums of its hourly rows for each hour of the week."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final

from django.db.models import Sum

from channels_app.models import Channel
from notifications_app.models import HourlyStat
from pushsvc.common.platforms import PLATFORM_VALUES
from pushsvc.common.quantities import share

LEVELS: Final = 5
_HOURS_OF_A_WEEK: Final = 168
_MOST_BEST: Final = 5


@dataclass(slots=True)
class HourOfWeek:
    """An hour of the week. `weekday`: 0 is Monday. `level`: 0 without clicks, otherwise 1 to
    LEVELS, relative to the hour with the most clicks."""

    weekday: int
    hour: int
    clicked: int = 0
    delivered: int = 0
    level: int = 0


@dataclass(frozen=True)
class BestHours:
    """`days`: seven, from Monday, of 24 hours each. `since`: the first hour that counts."""

    days: Sequence[Sequence[HourOfWeek]]
    since: datetime
    is_cut: bool

    @property
    def clicked(self) -> int:
        return sum(cell.clicked for day in self.days for cell in day)

    @property
    def best(self) -> list[tuple[HourOfWeek, float | None]]:
        """The hours with the most clicks, and their shares of all clicks."""
        cells = [cell for day in self.days for cell in day if cell.clicked]
        cells.sort(key=lambda cell: (-cell.clicked, cell.weekday, cell.hour))
        total = self.clicked
        return [(cell, share(cell.clicked, total)) for cell in cells[:_MOST_BEST]]


def best_hours(channel: Channel, *, weeks: int, zone: tzinfo, now: datetime) -> BestHours:
    """The clicks of whole weeks that end with the last full hour, so that all hours of the week
    count equally often, except for changes to and from summer time.

    The rows are hours of UTC. In zones with an offset of half an hour, a row belongs to the local
    hour in which it begins; then `is_cut` is true.
    """
    until = now.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    since = until - timedelta(hours=_HOURS_OF_A_WEEK * weeks)
    days = [[HourOfWeek(weekday, hour) for hour in range(24)] for weekday in range(7)]
    is_cut = False
    for at, clicked, delivered in _hours(channel, since, until):
        local = at.astimezone(zone)
        cell = days[local.weekday()][local.hour]
        cell.clicked += clicked
        cell.delivered += delivered
        is_cut = is_cut or local.minute > 0
    _set_levels([cell for day in days for cell in day])
    return BestHours(days, since, is_cut)


def _hours(channel: Channel, since: datetime, until: datetime) -> list[tuple[datetime, int, int]]:
    # Before PostgreSQL 18 the primary key finds a range of hours only if platforms are named.
    rows = HourlyStat.objects.filter(
        channel=channel, platform__in=PLATFORM_VALUES, hour__gte=since, hour__lt=until
    )
    sums = rows.values_list("hour").annotate(clicks=Sum("clicked"), accepted=Sum("delivered"))
    return [(at, int(clicked), int(delivered)) for at, clicked, delivered in sums]


def _set_levels(cells: Sequence[HourOfWeek]) -> None:
    most = max(cell.clicked for cell in cells)
    for cell in cells:
        cell.level = -(-LEVELS * cell.clicked // most) if most else 0
