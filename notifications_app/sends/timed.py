"""Sends by local time and with quiet hours: when each time zone of the audience gets one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from channels_app.models import Channel
from notifications_app.content.values import SendRequest, TargetId
from notifications_app.timing import CHANNEL, LAST_YEAR, Quiet, Timing, is_time, releases
from pushsvc.common.errors import FieldError, Invalid
from pushsvc.common.platforms import Platform
from pushsvc.common.store import sql
from pushsvc.common.texts import later
from subscriptions_app.audiences.targets import TargetIds
from subscriptions_app.audiences.zones import zones_present

_TOO_FAR: Final = later(
    "With `local_at`, must be before the year %(last_year)s.", last_year=LAST_YEAR + 1
)


@dataclass(frozen=True, slots=True)
class Release:
    """The moment at which it is time in some zones, in which devices of `platforms` are. `example`:
    one of these zones; "" for devices without any."""

    release_at: datetime
    timezones: int
    example: str
    platforms: Sequence[Platform]


def timing_of(channel: Channel, request: SendRequest) -> Timing | None:
    """The timing of a send by local time or with quiet hours, None for another. Raises Invalid."""
    quiet_from = request.quiet_hours if isinstance(request.quiet_hours, str) else "send"
    given = channel.quiet_hours if quiet_from == CHANNEL else request.quiet_hours
    quiet = Quiet.of(given) if isinstance(given, Mapping) else None
    if request.only_subscription_id or (
        request.local_at is None and quiet is None and quiet_from == CHANNEL
    ):
        return None
    return Timing(
        local_at=request.local_at,
        after=_after(request),
        timezone=channel.timezone,
        quiet=quiet,
        quiet_from=quiet_from,
    )


def _after(request: SendRequest) -> datetime | None:
    if request.local_at is None:
        return None
    now = sql.now()
    if request.scheduled_at is None or not is_time(request.local_at):
        return now
    if request.scheduled_at.year > LAST_YEAR:
        raise Invalid([FieldError("scheduled_at", "out_of_range", _TOO_FAR)])
    return max(request.scheduled_at, now)


def starts_at(channel: Channel, request: SendRequest, timing: Timing | None) -> datetime | None:
    """The first release of a send by local time, among the zones of its audience as of now.
    Otherwise when it is scheduled."""
    if timing is None or timing.local_at is None:
        return request.scheduled_at
    return releases_of(channel, request, timing)[0].release_at


def _not_before_now(moment: datetime | None) -> datetime:
    now = sql.now()
    return max(moment or now, now)


def releases_of(channel: Channel, request: SendRequest, timing: Timing) -> list[Release]:
    """The releases for the zones of the audience as of now, the earliest first."""
    named = named_by(request.targets) if request.targets else None
    zones = zones_present(channel.id, request.target_platforms, named)
    names = {name for each in zones.values() for name in each}
    now = timing.after or _not_before_now(request.scheduled_at)
    return [
        Release(
            moment,
            len(own),
            max(own),
            [each for each in zones if not set(own).isdisjoint(zones[each])],
        )
        for moment, own in releases(sorted(names), timing, now=now).items()
    ]


def named_by(targets: Sequence[TargetId]) -> TargetIds:
    people = [each.external_id for each in targets if each.external_id is not None]
    devices = [each.subscription_id for each in targets if each.subscription_id is not None]
    return TargetIds(people, devices)
