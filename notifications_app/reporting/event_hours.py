"""Events of notifications by hour and platform. Read from the rows that the recording of events
writes, never from deliveries."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from datetime import UTC, datetime, timedelta
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


@dataclass(frozen=True, slots=True)
class Curve:
    """A notification's events by its age: the sums up to each of `ages`, which rise."""

    ages: Sequence[timedelta]
    sums: Sequence[EventCounts]

    def at(self, age: timedelta) -> EventCounts:
        """The sums up to this age. Between two known ages, events are taken as evenly spread."""
        index = bisect_right(self.ages, age)
        if index == len(self.ages):
            return self.sums[-1]
        before, after = self.ages[index - 1], self.ages[index]
        share = (age - before) / (after - before)
        known = zip(astuple(self.sums[index - 1]), astuple(self.sums[index]), strict=True)
        return EventCounts(*(round(low + share * (high - low)) for low, high in known))


def curves_of(notifications: Iterable[Notification], now: datetime) -> dict[UUID, Curve]:
    """The curves of those notifications that have started. One query."""
    started = {each.pk: each.started_at for each in notifications if each.started_at}
    rows = (
        EventHour.objects.filter(notification_id__in=started)
        .order_by("hour")
        .values_list("notification_id", "hour")
        .annotate(shown=Sum("received"), clicks=Sum("clicked"), closed=Sum("dismissed"))
    )
    hours: defaultdict[UUID, list[tuple[datetime, EventCounts]]] = defaultdict(list)
    for notification_id, hour, *counts in rows:
        hours[notification_id].append((hour, EventCounts(*map(int, counts))))
    return {pk: _curve(began, hours[pk], now) for pk, began in started.items()}


def _curve(began: datetime, hours: Sequence[tuple[datetime, EventCounts]], now: datetime) -> Curve:
    """Known are the ages at which an hour with events begins and ends; the current one ends now."""
    ages, sums = [timedelta()], [EventCounts()]
    for hour, counts in hours:
        for moment, sum_ in ((hour, sums[-1]), (min(hour + HOUR, now), sums[-1] + counts)):
            if moment - began > ages[-1]:
                ages.append(moment - began)
                sums.append(sum_)
            else:
                sums[-1] = sum_
    return Curve(ages, sums)


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
