"""When a timed send reaches each time zone. Pure functions."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from functools import lru_cache
from typing import Any, Final, Self
from zoneinfo import ZoneInfo

_TIME: Final = re.compile(r"([01]\d|2[0-3]):[0-5]\d", re.ASCII)
_MOMENT: Final = re.compile(rf"\d{{4}}-\d{{2}}-\d{{2}}T{_TIME.pattern}", re.ASCII)
_DAY: Final = timedelta(days=1)
# So that every zone's time is one that Python has.
FIRST_YEAR: Final = 2000
LAST_YEAR: Final = 9998


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """`local_at`: the time of a clock, as `09:00`, or that of a day, as `2026-12-24T18:00`.
    `after`: no release is earlier. `timezone`: for devices without one that tzdata knows.
    `zones_too_late`: how many zones have no part, because the send expires before their release.
    """

    local_at: str
    after: datetime
    timezone: str
    zones_too_late: int = 0

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> Self:
        """From the JSON of a notification. Ignores names that another version stored."""
        known = {name: stored[name] for name in cls.__slots__ if name in stored}
        return cls(**known | {"after": datetime.fromisoformat(stored["after"])})

    def stored(self) -> dict[str, Any]:
        own = {name: getattr(self, name) for name in self.__slots__}
        return own | {"after": self.after.astimezone(UTC).isoformat()}

    @property
    def is_daily(self) -> bool:
        """Whether `local_at` is a time of any day."""
        return is_time(self.local_at)

    @property
    def first_local(self) -> str:
        """`local_at` with its day; of a daily one, the first in `timezone`."""
        if not self.is_daily:
            return self.local_at
        zone = _zone(self.timezone) or ZoneInfo("UTC")
        return f"{self.release(self.timezone).astimezone(zone):%Y-%m-%d}T{self.local_at}"

    @property
    def words(self) -> str:
        """`local_at` for people."""
        if self.is_daily:
            return self.local_at
        local = datetime.fromisoformat(self.local_at)
        return f"{local.day} {local:%B %Y, %H:%M}"

    def release(self, name: str) -> datetime:
        """When the devices of the zone get it. Names that tzdata does not know, such as "", count
        as `timezone`."""
        zone = _zone(name) or _zone(self.timezone) or ZoneInfo("UTC")
        if self.is_daily:
            return _first_at(time.fromisoformat(self.local_at), zone, self.after)
        return max(_moment(datetime.fromisoformat(self.local_at), zone), self.after)


def releases(zones: Iterable[str], timing: Timing, *, now: datetime) -> dict[datetime, list[str]]:
    """The zones by their release, the earliest first. What should have been released before `now`
    is released now."""
    found: dict[datetime, list[str]] = defaultdict(list)
    for name in zones:
        found[max(timing.release(name), now)].append(name)
    return {moment: found[moment] for moment in sorted(found)}


def is_time(text: str) -> bool:
    """Whether it is a time of a clock, as `09:00`."""
    return _TIME.fullmatch(text) is not None


def is_local_at(text: str) -> bool:
    """Whether it is a time of a clock, or that of a day that exists."""
    if _MOMENT.fullmatch(text) is None:
        return is_time(text)
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def year_of(local_at: str) -> int | None:
    """The year of a day's time; None for the time of a clock."""
    return None if is_time(local_at) else datetime.fromisoformat(local_at).year


def _first_at(wall: time, zone: ZoneInfo, after: datetime) -> datetime:
    """The first moment from `after` on at which clocks of the zone show this time."""
    day = after.astimezone(zone).date() - _DAY
    while (moment := _moment(datetime.combine(day, wall), zone)) < after:
        day += _DAY
    return moment


def _moment(local: datetime, zone: ZoneInfo) -> datetime:
    """A time that clocks skip means as much later, and one that they show twice the first."""
    return local.replace(tzinfo=zone, fold=0).astimezone(UTC)


@lru_cache(maxsize=1_000)
def _zone(name: str) -> ZoneInfo | None:
    try:
        return ZoneInfo(name)
    except (LookupError, ValueError, OSError):
        return None
