"""A calendar of a month, and the sizes of scheduled notifications' audiences."""

import calendar
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from itertools import islice, takewhile
from typing import Any, Final
from uuid import UUID
from zoneinfo import ZoneInfo

from django.db.models import QuerySet
from django.urls import reverse
from typing_extensions import override

from channels_app.console.access import channels_of, is_superuser, may_anywhere
from channels_app.console.lists import list_url
from channels_app.console.pages import ConsolePage
from channels_app.models import Role
from notifications_app.content.values import AudienceKind
from notifications_app.models import Notification, Occurrence, OccurrenceCode, Schedule
from notifications_app.recurrence import RECIPIENT
from notifications_app.selectors import newest_ids
from notifications_app.states import NotificationStatus
from pushsvc.common.console.figures import NOTHING
from pushsvc.common.console.zones import reader_zone
from pushsvc.common.errors import Busy
from pushsvc.common.platforms import Platform
from pushsvc.common.store import sql
from subscriptions_app.audiences.sizes import audience_size
from subscriptions_app.segments.selectors import segment_find

MOST_AUDIENCES: Final = 10  # counted on a page, because counting a segment reads its rows
_MOST_SHOWN: Final = 500  # of each kind
_MOST_SCHEDULES: Final = 100
_LOOKED_AT: Final = 10_000  # newest notifications, among which those sent in the month are found
_MOST_IN_A_DAY: Final = 4
_MONTH: Final = re.compile(r"(?P<year>[1-9]\d{3})-(?P<month>0[1-9]|1[0-2])", re.ASCII)
# Their own pages show how many they reach.
_UNCOUNTED: Final = {AudienceKind.RULE, AudienceKind.TARGETS}
_LAST_YEAR: Final = 9998  # the year after it has no dates


@dataclass(frozen=True, slots=True)
class Entry:
    """Something on the calendar, at a time of its clock. `note`: to how many, or what became of
    it. `tone`: of the mark that shows whether it was sent, is scheduled or recurs."""

    local: datetime
    text: str
    url: str
    note: str
    kind: str
    badge: str = ""


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
        return list_url("notifications_app_notification", None, until=day, **{"from": day})


class CalendarPage(ConsolePage):
    """A month in weeks from Monday to Sunday: what was sent, is scheduled, and will recur."""

    title = "Calendar"
    template_name = "console/notifications/calendar.html"

    @override
    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        now = sql.now()
        zone = reader_zone(self.request)
        today = now.astimezone(zone).date()
        month = _month(self.request.GET.get("month", "")) or today.replace(day=1)
        weeks = calendar.Calendar().monthdatescalendar(month.year, month.month)
        period = _period(weeks[0][0], weeks[-1][-1], zone)
        channels = channels_of(self.request.user)
        found = [
            *_pending(channels, period, zone),
            *_sent(self._newest(), period, zone),
            *_recurring(channels, period, zone, now),
        ]
        entries = _by_day(found)
        return super().get_context_data(
            tab="calendar",
            may_send=may_anywhere(self.request.user, Role.SENDER),
            month=month,
            previous=(month - timedelta(days=1)).replace(day=1),
            following=(month + timedelta(days=31)).replace(day=1),
            weekdays=calendar.day_name,
            weeks=[[_day(day, month, today, entries[day]) for day in week] for week in weeks],
            has_entries=bool(found),
            most=_MOST_SHOWN,
            is_cut=len(found) >= _MOST_SHOWN,
            looked_at=_LOOKED_AT,
            **kwargs,
        )

    def _newest(self) -> QuerySet[Notification]:
        """The newest notifications of the user's channels, which an index finds."""
        user = self.request.user
        ids = None if is_superuser(user) else list(channels_of(user).values_list("pk", flat=True))
        return Notification.objects.filter(id__in=newest_ids(ids, limit=_LOOKED_AT))


def _period(first: date, last: date, zone: ZoneInfo) -> tuple[datetime, datetime]:
    """The days from the first to the last on a clock, in UTC."""
    begin = datetime.combine(first, time(), zone)
    end = datetime.combine(last + timedelta(days=1), time(), zone)
    return begin.astimezone(UTC), end.astimezone(UTC)


def _pending(channels: Any, period: tuple[datetime, datetime], zone: ZoneInfo) -> list[Entry]:
    pending = Notification.objects.filter(
        status=NotificationStatus.PENDING,
        scheduled_at__gte=period[0],
        scheduled_at__lt=period[1],
        channel__in=channels,
    ).order_by("scheduled_at", "id")
    found = list(pending[:_MOST_SHOWN])
    audiences = audiences_of(found)
    return [
        _entry(
            each,
            zone,
            f"to {audiences[each.pk]}",
            "scheduled",
            "paused" if each.is_paused else "",
        )
        for each in found
    ]


def _sent(
    newest: QuerySet[Notification], period: tuple[datetime, datetime], zone: ZoneInfo
) -> list[Entry]:
    """Campaigns: neither tests nor what programs send to people."""
    sent = newest.filter(
        scheduled_at__gte=period[0],
        scheduled_at__lt=period[1],
        only_subscription_id__isnull=True,
        has_targets=False,
    ).exclude(status=NotificationStatus.PENDING)
    return [
        _entry(
            each,
            zone,
            f"{each.delivered_count:,} delivered",
            "sent",
            "" if each.status == NotificationStatus.SENT else each.status,
        )
        for each in sent.order_by("scheduled_at", "id")[:_MOST_SHOWN]
    ]


def _recurring(
    channels: Any, period: tuple[datetime, datetime], zone: ZoneInfo, now: datetime
) -> list[Entry]:
    """The coming occurrences of schedules, except those that already are notifications."""
    begin, end = max(now, period[0]), period[1]
    if begin >= end:
        return []
    due = Schedule.objects.filter(channel__in=channels, is_enabled=True, next_at__lt=end)
    schedules = list(due.order_by("next_at")[:_MOST_SCHEDULES])
    known = Occurrence.objects.filter(
        schedule__in=schedules, occurs_at__gte=begin, occurs_at__lt=end
    ).values_list("schedule_id", "occurs_at", "code")
    codes = {(schedule_id, at): code for schedule_id, at, code in known}
    found: list[Entry] = []
    for each in schedules:
        coming = each.recurs.after(begin, within=end - begin)
        for at in islice(takewhile(lambda at: at < end, coming), _MOST_SHOWN - len(found)):
            code = codes.get((each.pk, at))
            if code in {None, OccurrenceCode.SKIPPED}:
                url = reverse("admin:schedule_edit", args=[each.pk])
                own = each.recurs.zone if each.recurs.timezone == RECIPIENT else zone
                local = at.astimezone(own).replace(tzinfo=None)
                badge = "skipped" if code else ""
                found.append(Entry(local, each.name, url, "recurs", "recurring", badge))
    return found


def _entry(notification: Notification, zone: ZoneInfo, note: str, kind: str, badge: str) -> Entry:
    local = notification.scheduled_at.astimezone(zone).replace(tzinfo=None)
    url = reverse("admin:notifications_app_notification_change", args=[notification.pk])
    return Entry(local, str(notification), url, note, kind, badge)


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


def _by_day(found: Iterable[Entry]) -> dict[date, list[Entry]]:
    entries: dict[date, list[Entry]] = defaultdict(list)
    for each in sorted(found, key=lambda entry: (entry.local, entry.text)):
        entries[each.local.date()].append(each)
    return entries


def _day(day: date, month: date, today: date, entries: Sequence[Entry]) -> Day:
    return Day(
        day=day,
        is_outside=day.month != month.month,
        is_today=day == today,
        entries=entries[:_MOST_IN_A_DAY],
        more=max(0, len(entries) - _MOST_IN_A_DAY),
    )
