"""Statistics of channels: sums of hourly rows and counters. Does not count large tables."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from datetime import datetime
from itertools import accumulate
from typing import Any, Generic, Protocol, Self, TypeVar

from django.db.models import QuerySet, Sum
from django.db.models.functions import Trunc

from channels_app.models import Channel, ChannelHour
from channels_app.selectors import ChannelTotals, totals_of
from notifications_app.models import HourlyStat
from pushsvc.common.periods import Period
from pushsvc.common.platforms import PLATFORM_VALUES, Platform
from pushsvc.common.quantities import share


class _Additive(Protocol):
    def __add__(self, other: Self, /) -> Self: ...


T = TypeVar("T", bound=_Additive)


@dataclass(frozen=True)
class Outcomes:
    """Recipients by outcome; `deferred`: how often a recipient was. `stopped`, `opted_out` and
    `expired` are parts of `bounced`."""

    recipients: int = 0
    delivered: int = 0
    bounced: int = 0
    clicked: int = 0
    deferred: int = 0
    stopped: int = 0
    opted_out: int = 0
    expired: int = 0

    def __add__(self, other: "Outcomes") -> "Outcomes":
        return Outcomes(*map(sum, zip(astuple(self), astuple(other), strict=True)))

    @property
    def undeliverable(self) -> int:
        """The bounced without the parts that are told apart."""
        return self.bounced - self.stopped - self.opted_out - self.expired

    def share_of(self, name: str) -> float | None:
        """The share of all outcomes; of clicks, the share of the delivered. None of nothing."""
        if name == "clicked":
            return self.clicked_share
        count: int = getattr(self, name)
        return share(count, self.delivered + self.bounced)

    @property
    def clicked_share(self) -> float | None:
        """The share of the delivered. It may exceed 1, because clicks count in their own hour."""
        return share(self.clicked, self.delivered)


@dataclass(frozen=True)
class Changes:
    """Subscribers gained and lost."""

    gained: int = 0
    lost: int = 0

    def __add__(self, other: "Changes") -> "Changes":
        return Changes(self.gained + other.gained, self.lost + other.lost)

    @property
    def net(self) -> int:
        return self.gained - self.lost


@dataclass(frozen=True)
class Series(Generic[T]):
    """An entry for each hour or day of a period, their sum, and the sum of the previous period if
    the two are compared."""

    entries: Sequence[T]
    total: T
    before: T


@dataclass(frozen=True)
class Statistics:
    """Sums over channels and a period. `totals`: since the beginning, always exact."""

    period: Period
    totals: ChannelTotals
    outcomes: Series[Outcomes]
    platform_outcomes: Mapping[Platform, Series[Outcomes]]
    changes: Series[Changes]
    platform_changes: Mapping[Platform, Series[Changes]]
    notifications_sent: Series[int]

    @property
    def subscribers(self) -> dict[Platform, list[int]]:
        """Subscribers by platform at the end of each hour or day: the current count minus later
        changes."""
        return {
            platform: _backwards(self.totals.subscribers_on(platform), changes.entries)
            for platform, changes in self.platform_changes.items()
        }


def statistics_of(channels: QuerySet[Channel], of: Period) -> Statistics:
    """The statistics of the channels, with three queries for any number of channels."""
    outcomes = _outcomes(channels, of)
    changes, sent = _changes(channels, of)
    return Statistics(
        period=of,
        totals=totals_of(channels),
        outcomes=_together(outcomes.values(), Outcomes()),
        platform_outcomes=outcomes,
        changes=_together(changes.values(), Changes()),
        platform_changes=changes,
        notifications_sent=sent,
    )


def _outcomes(channels: QuerySet[Channel], of: Period) -> dict[Platform, Series[Outcomes]]:
    names = list(Outcomes.__dataclass_fields__)
    # Before PostgreSQL 18 the primary key finds a range of hours only if platforms are named.
    hours = HourlyStat.objects.filter(channel__in=channels, platform__in=PLATFORM_VALUES)
    rows = _summed(hours, of, names, "platform")
    return {
        platform: _series(
            {
                row["at"]: Outcomes(*(int(row[f"sum_{name}"]) for name in names))
                for row in rows
                if row["platform"] == platform
            },
            of,
            Outcomes(),
        )
        for platform in Platform
    }


def _changes(
    channels: QuerySet[Channel], of: Period
) -> tuple[dict[Platform, Series[Changes]], Series[int]]:
    names = [f"{platform}_{way}" for platform in Platform for way in ("gained", "lost")]
    hours = ChannelHour.objects.filter(channel__in=channels)
    rows = _summed(hours, of, [*names, "notifications_sent"])
    changes = {
        platform: _series({row["at"]: _changes_of(row, platform) for row in rows}, of, Changes())
        for platform in Platform
    }
    return changes, _series({row["at"]: int(row["sum_notifications_sent"]) for row in rows}, of, 0)


def _changes_of(row: Mapping[str, Any], platform: Platform) -> Changes:
    return Changes(int(row[f"sum_{platform}_gained"]), int(row[f"sum_{platform}_lost"]))


def _summed(
    hours: QuerySet[Any], of: Period, names: Iterable[str], *by: str
) -> list[dict[str, Any]]:
    """`sum_<name>` for each name, for each hour or day (`at`) of the period."""
    grouped = (
        hours.filter(hour__gte=of.read_from, hour__lt=of.end)
        .annotate(at=Trunc("hour", of.unit, tzinfo=of.zone))
        .values("at", *by)
    )
    return list(grouped.annotate(**{f"sum_{name}": Sum(name) for name in names}))


def _series(found: Mapping[datetime, T], of: Period, zero: T) -> Series[T]:
    entries = [found.get(start, zero) for start in of.starts]
    earlier = [entry for start, entry in found.items() if start < of.starts[0]]
    return Series(entries, sum(entries, zero), sum(earlier, zero))


def _together(parts: Iterable[Series[T]], zero: T) -> Series[T]:
    each = list(parts)
    return Series(
        [sum(at_once, zero) for at_once in zip(*(part.entries for part in each), strict=True)],
        sum((part.total for part in each), zero),
        sum((part.before for part in each), zero),
    )


def _backwards(last: int, changes: Sequence[Changes]) -> list[int]:
    """The count after each change, computed from the last count."""
    earlier = accumulate((-change.net for change in reversed(changes[1:])), initial=last)
    return list(earlier)[::-1]
