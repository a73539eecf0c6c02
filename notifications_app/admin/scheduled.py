"""Scheduled notifications: a calendar of a month, and the sizes of their audiences."""

import calendar
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Final
from uuid import UUID

from django.db.models import QuerySet
from typing_extensions import override

from channels_app.console.access import channels_of, may_anywhere
from channels_app.console.lists import list_url
from channels_app.console.pages import ConsolePage
from channels_app.models import Role
from notifications_app.content.values import AudienceKind
from notifications_app.models import Notification
from notifications_app.states import NotificationStatus
from pushsvc.common.console.figures import NOTHING
from pushsvc.common.errors import Busy
from pushsvc.common.platforms import Platform
from pushsvc.common.store import sql
from subscriptions_app.audiences.sizes import audience_size
from subscriptions_app.segments.selectors import segment_find

MOST_AUDIENCES: Final = 10  # counted on a page, because counting a segment reads its rows
_MOST_SHOWN: Final = 500
_MOST_IN_A_DAY: Final = 4
_MONTH: Final = re.compile(r"(?P<year>[1-9]\d{3})-(?P<month>0[1-9]|1[0-2])", re.ASCII)
# Their own pages show how many they reach.
_UNCOUNTED: Final = {AudienceKind.RULE, AudienceKind.TARGETS}
_LAST_YEAR: Final = 9998  # the year after it has no dates


@dataclass(frozen=True, slots=True)
class Entry:
    notification: Notification
    audience: str


@dataclass(frozen=True, slots=True)
class Day:
    """`more` counts the entries that do not fit; they are in the list at `url`."""

    day: date
    is_outside: bool
    is_today: bool
    entries: Sequence[Entry]
    more: int

    @property
    def url(self) -> str:
        day = self.day.isoformat()
        return list_url(
            "notifications_app_notification", None, show="scheduled", until=day, **{"from": day}
        )


class CalendarPage(ConsolePage):
    """A month in weeks from Monday to Sunday. Days are in UTC, as everywhere in the console."""

    title = "Calendar"
    template_name = "console/notifications/calendar.html"

    @override
    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        today = sql.now().astimezone(UTC).date()
        month = _month(self.request.GET.get("month", "")) or today.replace(day=1)
        weeks = calendar.Calendar().monthdatescalendar(month.year, month.month)
        found = list(self._scheduled(weeks[0][0], weeks[-1][-1])[: _MOST_SHOWN + 1])
        entries = _by_day(found[:_MOST_SHOWN])
        return super().get_context_data(
            tab="calendar",
            may_send=may_anywhere(self.request.user, Role.SENDER),
            month=month,
            previous=(month - timedelta(days=1)).replace(day=1),
            following=(month + timedelta(days=31)).replace(day=1),
            weekdays=calendar.day_name,
            weeks=[[_day(day, month, today, entries[day]) for day in week] for week in weeks],
            has_entries=bool(found),
            is_cut=len(found) > _MOST_SHOWN,
            most=_MOST_SHOWN,
            **kwargs,
        )

    def _scheduled(self, first: date, last: date) -> QuerySet[Notification]:
        begin = datetime.combine(first, time(), UTC)
        end = datetime.combine(last, time(), UTC) + timedelta(days=1)
        pending = Notification.objects.filter(
            status=NotificationStatus.PENDING,
            scheduled_at__gte=begin,
            scheduled_at__lt=end,
            channel__in=channels_of(self.request.user),
        )
        return pending.select_related("channel").order_by("scheduled_at", "id")


def audiences_of(notifications: Iterable[Notification]) -> dict[UUID, str]:
    """How many subscribers would get each notification now, as text. A dash beyond
    MOST_AUDIENCES, and while the account runs too many estimates at once."""
    counted: dict[tuple[UUID, UUID | None], dict[Platform, Any]] = {}
    return {each.pk: _audience(each, counted) for each in notifications}


def _audience(notification: Notification, counted: dict[Any, dict[Platform, Any]]) -> str:
    if notification.is_test:
        return "1"
    if notification.audience_kind in _UNCOUNTED:
        return NOTHING
    key = notification.channel_id, notification.segment_id
    if key not in counted:
        if len(counted) == MOST_AUDIENCES:
            return NOTHING
        segment = segment_find(channel_id=key[0], segment_id=key[1])
        try:
            counted[key] = audience_size(key[0], segment.rule if segment else None, Platform)
        except Busy:
            return NOTHING
    sizes = [counted[key][Platform(name)] for name in notification.target_platforms]
    about = "about " if any(each.estimated for each in sizes) else ""
    return f"{about}{sum(each.size for each in sizes):,}"


def _month(text: str) -> date | None:
    found = _MONTH.fullmatch(text)
    if found is None or int(found["year"]) > _LAST_YEAR:
        return None
    return date(int(found["year"]), int(found["month"]), 1)


def _by_day(notifications: Sequence[Notification]) -> dict[date, list[Entry]]:
    audiences = audiences_of(notifications)
    entries: dict[date, list[Entry]] = defaultdict(list)
    for each in notifications:
        entries[each.scheduled_at.astimezone(UTC).date()].append(Entry(each, audiences[each.pk]))
    return entries


def _day(day: date, month: date, today: date, entries: Sequence[Entry]) -> Day:
    return Day(
        day=day,
        is_outside=day.month != month.month,
        is_today=day == today,
        entries=entries[:_MOST_IN_A_DAY],
        more=max(0, len(entries) - _MOST_IN_A_DAY),
    )
