"""Events of notifications by hour and platform. Read from the rows that the recording of events
writes, never from deliveries."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from typing import Final, NamedTuple
from uuid import UUID

from django.db.models import Sum

from notifications_app.models import EventHour, Notification
from pushsvc.common.platforms import Platform

HOUR: Final = timedelta(hours=1)
_STEPS: Final = (HOUR, 6 * HOUR)
_MOST_STEPS: Final = 120  # steps of six hours cover more than the days in which events count


@dataclass(frozen=True, slots=True)
class EventCounts:
    received: int = 0
    clicked: int = 0
    dismissed: int = 0

    def __add__(self, other: "EventCounts") -> "EventCounts":
        return EventCounts(*map(sum, zip(astuple(self), astuple(other), strict=True)))


class Clicks(NamedTuple):
    """How many recipients clicked from each of `starts` to the next one, by platform."""

    starts: Sequence[datetime]
    step: timedelta
    by_platform: Mapping[Platform, Sequence[int]]


@dataclass(frozen=True, slots=True)
class Events:
    by_platform: Mapping[Platform, EventCounts]
    clicks: Clicks | None


class _Row(NamedTuple):
    hour: datetime
    platform: Platform
    counts: EventCounts


def events_of(notification: Notification) -> Events:
    """The notification's events. One query, for at most three rows for each hour in which events
    count."""
    hours = EventHour.objects.filter(notification_id=notification.pk).order_by("hour")
    found = hours.values_list("hour", "platform", "received", "clicked", "dismissed")
    rows = [_Row(at, Platform(platform), EventCounts(*counts)) for at, platform, *counts in found]
    by_platform: defaultdict[Platform, EventCounts] = defaultdict(EventCounts)
    for row in rows:
        by_platform[row.platform] += row.counts
    return Events(
        by_platform=by_platform,
        clicks=_clicks(notification, [row for row in rows if row.counts.clicked]),
    )


def clicks_since_start(notifications: Iterable[Notification]) -> dict[UUID, list[int]]:
    """How many recipients had clicked by the end of each hour, from the hour of the start to the
    hour of the last click, for started notifications."""
    first = {each.pk: _floor(each.started_at, HOUR) for each in notifications if each.started_at}
    hours = EventHour.objects.filter(notification_id__in=first, clicked__gt=0)
    found = hours.values_list("notification_id", "hour").annotate(sum=Sum("clicked"))
    clicked: dict[UUID, dict[int, int]] = {each: {} for each in first}
    for notification_id, hour, count in found:
        clicked[notification_id][(hour - first[notification_id]) // HOUR] = int(count)
    return {each: _running_sums(counts) for each, counts in clicked.items()}


def _running_sums(counts: Mapping[int, int]) -> list[int]:
    last = max(counts, default=-1)
    return list(accumulate(counts.get(hour, 0) for hour in range(last + 1)))


def _clicks(notification: Notification, rows: Sequence[_Row]) -> Clicks | None:
    """The clicks from the start to the last click, including steps without a click."""
    if not rows:
        return None
    began = min(notification.started_at or rows[0].hour, rows[0].hour)
    last = rows[-1].hour
    step = next((each for each in _STEPS if (last - began) / each < _MOST_STEPS), _STEPS[-1])
    first = _floor(began, step)
    length = (last - first) // step + 1
    counts = {row.platform: [0] * length for row in rows}
    for row in rows:
        counts[row.platform][(row.hour - first) // step] += row.counts.clicked
    starts = [first + index * step for index in range(length)]
    return Clicks(starts, step, {each: counts[each] for each in Platform if each in counts})


def _floor(moment: datetime, step: timedelta) -> datetime:
    """The beginning of the step that contains the moment; steps count from midnight in UTC."""
    midnight = moment.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return midnight + (moment - midnight) // step * step
