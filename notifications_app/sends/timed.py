"""Sends by local time: when each time zone of the audience gets one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from channels_app.models import Channel
from notifications_app.content.values import SendRequest, TargetId
from notifications_app.timing import LAST_YEAR, Timing, is_time, releases
from pushsvc.common.errors import FieldError, Invalid
from pushsvc.common.platforms import Platform
from pushsvc.common.store import sql
from subscriptions_app.audiences.targets import TargetIds
from subscriptions_app.audiences.zones import zones_present

_TOO_FAR: Final = f"With `local_at`, must be before the year {LAST_YEAR + 1}."


@dataclass(frozen=True, slots=True)
class Release:
    """The moment at which it is time in some zones, in which devices of `platforms` are. `example`:
    one of these zones; "" for devices without any."""

    release_at: datetime
    timezones: int
    example: str
    platforms: Sequence[Platform]


@dataclass(frozen=True, slots=True)
class Timed:
    """`releases`: for the zones of the audience as of now, the earliest first."""

    timing: Timing
    releases: Sequence[Release]

    @property
    def starts_at(self) -> datetime:
        return self.releases[0].release_at

    @property
    def ends_at(self) -> datetime:
        return self.releases[-1].release_at


def timing_of(channel: Channel, request: SendRequest) -> Timing | None:
    """The timing of a send by local time, None for another. Raises Invalid."""
    if request.local_at is None:
        return None
    after = now = sql.now()
    if request.scheduled_at is not None and is_time(request.local_at):
        if request.scheduled_at.year > LAST_YEAR:
            raise Invalid([FieldError("scheduled_at", "out_of_range", _TOO_FAR)])
        after = max(request.scheduled_at, now)
    return Timing(local_at=request.local_at, after=after, timezone=channel.timezone)


def timed(channel: Channel, request: SendRequest) -> Timed | None:
    """None for a send that is not by local time. Raises as `timing_of`."""
    timing = timing_of(channel, request)
    if timing is None:
        return None
    named = named_by(request.targets) if request.targets else None
    zones = zones_present(channel.id, request.target_platforms, named)
    return Timed(timing, _releases(zones, timing))


def named_by(targets: Sequence[TargetId]) -> TargetIds:
    people = [each.external_id for each in targets if each.external_id is not None]
    devices = [each.subscription_id for each in targets if each.subscription_id is not None]
    return TargetIds(people, devices)


def _releases(zones: Mapping[Platform, Sequence[str]], timing: Timing) -> list[Release]:
    names = {name for each in zones.values() for name in each}
    by_moment = releases(sorted(names), timing, now=timing.after)
    return [
        Release(
            moment,
            len(own),
            max(own),
            [each for each in zones if not set(own).isdisjoint(zones[each])],
        )
        for moment, own in by_moment.items()
    ]
