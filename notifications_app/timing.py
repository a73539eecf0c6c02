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
_MINUTE: Final = timedelta(minutes=1)
# So that every zone's time is one that Python has.
FIRST_YEAR: Final = 2000
LAST_YEAR: Final = 9998
CHANNEL: Final = "channel"
IGNORE: Final = "ignore"


@dataclass(frozen=True, slots=True)
class Quiet:
    """From `begin` until `end` by the recipient's clock, perhaps over midnight, nobody is sent
    anything. Both as `22:00`."""

    begin: str
    end: str

    @classmethod
    def of(cls, stored: Mapping[str, str] | None) -> Self | None:
        return cls(stored["from"], stored["to"]) if stored else None

    def stored(self) -> dict[str, str]:
        return {"from": self.begin, "to": self.end}

    def has(self, moment: datetime, zone: ZoneInfo) -> bool:
        shown = f"{moment.astimezone(zone):%H:%M}"
        if self.begin < self.end:
            return self.begin <= shown < self.end
        return shown >= self.begin or shown < self.end

    def until(self, moment: datetime, zone: ZoneInfo) -> datetime:
        """When it is over, for a moment that it has. Clocks that skip the end end it, too."""
        day, wall = moment.astimezone(zone).date() - _DAY, time.fromisoformat(self.end)
        end = moment
        while end <= moment or self.has(end, zone):
            ends = (_moment(datetime.combine(day, wall), zone, fold=fold) for fold in (0, 1))
            end = next((each for each in ends if each > moment and not self.has(each, zone)), end)
            day += _DAY
        if f"{end.astimezone(zone):%H:%M}" == self.end:
            return end
        return self._first_without(moment, end, zone)

    def ended(self, moment: datetime, zone: ZoneInfo) -> datetime:
        """When it was last over, for a moment that it does not have."""
        day, wall = moment.astimezone(zone).date(), time.fromisoformat(self.end)
        ends = (_moment(datetime.combine(each, wall), zone) for each in (day, day - _DAY))
        return next(each for each in ends if each <= moment)

    def _first_without(self, within: datetime, after: datetime, zone: ZoneInfo) -> datetime:
        """The first minute that it does not have. `within`: a moment that it has, `after`: one
        after its end."""
        within = within.replace(second=0, microsecond=0)
        while after - within > _MINUTE:
            middle = within + (after - within) // 2 // _MINUTE * _MINUTE
            within, after = (middle, after) if self.has(middle, zone) else (within, middle)
        return after


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """`local_at`: the time of a clock, as `09:00`, or that of a day, as `2026-12-24T18:00`.
    `after`: with `local_at`, no release is earlier. `timezone`: for devices without one that tzdata
    knows. `quiet`: in force, and `quiet_from`, who chose that: `send`, `channel`, or `ignore`.
    `zones_too_late`: how many zones have no part, because the send expires before their release.
    """

    local_at: str | None = None
    after: datetime | None = None
    timezone: str
    quiet: Quiet | None = None
    quiet_from: str = CHANNEL
    zones_too_late: int = 0

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> Self:
        """From the JSON of a notification. Ignores names that another version stored."""
        known = {name: stored[name] for name in cls.__slots__ if name in stored}
        after = known.get("after")
        own = {"after": datetime.fromisoformat(after) if after else None}
        return cls(**known | own | {"quiet": Quiet.of(known.get("quiet"))})

    def stored(self) -> dict[str, Any]:
        own = {name: getattr(self, name) for name in self.__slots__}
        after = self.after.astimezone(UTC).isoformat() if self.after else None
        return own | {"after": after, "quiet": self.quiet.stored() if self.quiet else None}

    @property
    def chosen(self) -> str | dict[str, str]:
        """The quiet hours as the send named them: `channel`, `ignore`, or from and to."""
        if self.quiet is None or self.quiet_from == CHANNEL:
            return IGNORE if self.quiet_from == IGNORE else CHANNEL
        return self.quiet.stored()

    @property
    def is_daily(self) -> bool:
        """Whether `local_at` is a time of any day."""
        return self.local_at is not None and is_time(self.local_at)

    @property
    def first_local(self) -> str:
        """`local_at` with its day; of a daily one, the first in `timezone`."""
        if not self.is_daily or self.after is None:
            return self.local_at or ""
        local = self._asked(self._zone_of(self.timezone), self.after)
        return f"{local.astimezone(self._zone_of(self.timezone)):%Y-%m-%d}T{self.local_at}"

    @property
    def words(self) -> str:
        """`local_at` for people."""
        if self.local_at is None or self.is_daily:
            return self.local_at or ""
        local = datetime.fromisoformat(self.local_at)
        return f"{local.day} {local:%B %Y, %H:%M}"

    def release(self, name: str, *, now: datetime | None = None) -> datetime:
        """When the devices of the zone get it, not before `now`. Names that tzdata does not know,
        such as "", count as `timezone`. After LAST_YEAR there are no quiet hours."""
        zone = self._zone_of(name)
        after = max(each for each in (self.after, now) if each is not None)
        asked = max(self._asked(zone, self.after or after), after)
        if self.quiet is None or asked.year > LAST_YEAR or not self.quiet.has(asked, zone):
            return asked
        return self.quiet.until(asked, zone)

    def quiet_until(self, name: str, now: datetime) -> datetime | None:
        """When the quiet hours of the zone are over; None if there are none now."""
        zone = self._zone_of(name)
        if self.quiet is None or not self.quiet.has(now, zone):
            return None
        return self.quiet.until(now, zone)

    def quiet_ended(self, name: str, moment: datetime) -> datetime | None:
        """When the quiet hours of the zone were last over; None if there are none, or if they are
        not over at this moment."""
        zone = self._zone_of(name)
        if self.quiet is None or self.quiet.has(moment, zone):
            return None
        return self.quiet.ended(moment, zone)

    def quiet_within(self, name: str, now: datetime, *, seconds: float) -> datetime | None:
        """When quiet hours of the zone begin in the next seconds; None if they do not."""
        zone = self._zone_of(name)
        shown = now.astimezone(zone)
        begun = timedelta(seconds=shown.second, microseconds=shown.microsecond)
        moment = now - begun + _MINUTE
        while self.quiet is not None and moment <= now + timedelta(seconds=seconds):
            if self.quiet.has(moment, zone):
                return moment
            moment += _MINUTE
        return None

    def _asked(self, zone: ZoneInfo, after: datetime) -> datetime:
        if self.local_at is None:
            return after
        if self.is_daily:
            return _first_at(time.fromisoformat(self.local_at), zone, after)
        return max(_moment(datetime.fromisoformat(self.local_at), zone), after)

    def _zone_of(self, name: str) -> ZoneInfo:
        return _zone(name) or _zone(self.timezone) or ZoneInfo("UTC")


def releases(zones: Iterable[str], timing: Timing, *, now: datetime) -> dict[datetime, list[str]]:
    """The zones by their release, the earliest first. What should have been released before `now`
    is released now, unless it is quiet."""
    found: dict[datetime, list[str]] = defaultdict(list)
    for name in zones:
        found[timing.release(name, now=now)].append(name)
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


def _moment(local: datetime, zone: ZoneInfo, *, fold: int = 0) -> datetime:
    """A time that clocks skip means as much later, and one that they show twice the first."""
    return local.replace(tzinfo=zone, fold=fold).astimezone(UTC)


@lru_cache(maxsize=1_000)
def _zone(name: str) -> ZoneInfo | None:
    try:
        return ZoneInfo(name)
    except (LookupError, ValueError, OSError):
        return None
