"""A calendar of a month, and the sizes of scheduled notifications' audiences."""

import calendar
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from itertools import chain, islice, takewhile
from typing import Any, Final
from uuid import UUID
from zoneinfo import ZoneInfo

from django.db.models import QuerySet
from django.urls import reverse
from django.utils.dates import WEEKDAYS
from django.utils.translation import gettext
from typing_extensions import override

from channels_app.console.access import AnyUser, channels_of, is_superuser, may_anywhere
from channels_app.console.pages import ConsolePage
from channels_app.models import Role
from notifications_app.admin.states import Shown, state_of, usual
from notifications_app.content.values import AudienceKind
from notifications_app.models import Notification, Occurrence, OccurrenceCode, Schedule
from notifications_app.recurrence import RECIPIENT
from notifications_app.reporting.activity import states_of
from notifications_app.selectors import newest_ids
from notifications_app.states import NotificationStatus
from pushsvc.common.console.figures import NOTHING, grouped
from pushsvc.common.console.zones import reader_zone
from pushsvc.common.errors import Busy
from pushsvc.common.platforms import Platform
from pushsvc.common.store import sql
from pushsvc.common.texts import later
from subscriptions_app.audiences.sizes import audience_size
from subscriptions_app.segments.selectors import segment_find

MOST_AUDIENCES: Final = 10  # counted on a page, because counting a segment reads its rows
_MOST_SHOWN: Final = 500  # of each kind
_MOST_SCHEDULES: Final = 100
_LOOKED_AT: Final = 10_000  # newest notifications, among which those sent in the month are found
_MOST_IN_A_DAY: Final = 4
_MONTH: Final = re.compile(r"(?P<year>[1-9]\d{3})-(?P<month>0[1-9]|1[0-2])", re.ASCII)
# Their own pages show how many they reach.
_UNCOUNTED: Final = {AudienceKind.RULE, AudienceKind.TARGETS, AudienceKind.CORRECTION}
_BY_CLOCKS: Final = later("by each recipient\u2019s clock")
_DAY: Final = timedelta(days=1)
_LAST_YEAR: Final = 9998  # the year after it has no dates
_USUAL: Final = {usual(NotificationStatus.PENDING), usual(NotificationStatus.SENT)}


@dataclass(frozen=True, slots=True)
class Entry:
    """Something on the calendar, at a time of its clock. `note`: to how many, or what became of
    it. `tone`: of the mark that shows whether it was sent, is scheduled or recurs. `move`: the
    address at which it can be moved."""

    local: datetime
    text: str
    url: str
    note: str
    kind: str
    state: Shown | None
    move: str = ""


@dataclass(frozen=True, slots=True)
class Day:
    """`more`: the entries that are shown on request."""

    day: date
    is_outside: bool
    is_today: bool
    is_past: bool
    entries: Sequence[Entry]
    more: Sequence[Entry]


class CalendarPage(ConsolePage):
    """A month in weeks from Monday to Sunday: what was sent, is scheduled, and will recur."""

    title = later("Calendar")
    template_name = "console/notifications/calendar.html"

    @override
    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        now = sql.now()
        zone = reader_zone(self.request)
        today = now.astimezone(zone).date()
        month = _month(self.request.GET.get("month", "")) or today.replace(day=1)
        weeks = calendar.Calendar().monthdatescalendar(month.year, month.month)
        days = weeks[0][0], weeks[-1][-1]
        period = _period(*days, zone)
        # By each recipient's clock, it is a day earlier or later at most.
        around = _period(days[0] - _DAY, days[1] + _DAY, zone)
        user = self.request.user
        channels = channels_of(user)
        kinds = (
            _notifications(_pending(channels, around), user, zone, now),
            _notifications(_sent(self._newest(), around), user, zone, now),
            _recurring(channels, period, zone, now),
        )
        entries = _by_day(chain.from_iterable(found for found, _ in kinds), *days)
        return super().get_context_data(
            tab="calendar",
            may_write=may_anywhere(self.request.user, Role.WRITER),
            month=month,
            previous=(month - timedelta(days=1)).replace(day=1),
            following=(month + timedelta(days=31)).replace(day=1),
            weekdays=list(WEEKDAYS.values()),
            weeks=[[_day(day, month, today, entries[day]) for day in week] for week in weeks],
            has_entries=any(entries.values()),
            has_movable=any(each.move for own in entries.values() for each in own),
            most=_MOST_SHOWN,
            most_schedules=_MOST_SCHEDULES,
            is_cut=any(is_cut for _, is_cut in kinds),
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


def _pending(channels: Any, period: tuple[datetime, datetime]) -> QuerySet[Notification]:
    return Notification.objects.filter(
        status=NotificationStatus.PENDING,
        scheduled_at__gte=period[0],
        scheduled_at__lt=period[1],
        channel__in=channels,
    )


def _sent(
    newest: QuerySet[Notification], period: tuple[datetime, datetime]
) -> QuerySet[Notification]:
    """Campaigns: neither tests nor what programs send to people."""
    return newest.filter(
        scheduled_at__gte=period[0],
        scheduled_at__lt=period[1],
        only_subscription_id__isnull=True,
        has_targets=False,
    ).exclude(status=NotificationStatus.PENDING)


def _notifications(
    own: QuerySet[Notification], user: AnyUser, zone: ZoneInfo, now: datetime
) -> tuple[list[Entry], bool]:
    """At most _MOST_SHOWN of them, and whether there are more."""
    found = list(own.order_by("scheduled_at", "id")[: _MOST_SHOWN + 1])
    shown = found[:_MOST_SHOWN]
    pending = [each for each in shown if each.status == NotificationStatus.PENDING]
    audiences, states = audiences_of(pending), states_of(shown)
    moves = _movable(user, pending) if pending else set()
    entries = []
    for each in shown:
        is_pending = each.pk in audiences
        note = (
            gettext("to %(audience)s") % {"audience": audiences[each.pk]}
            if is_pending
            else gettext("%(number)s delivered") % {"number": grouped(each.delivered_count)}
        )
        state = state_of(each, states.get(each.pk), now)
        entry = _entry(each, zone, note, "scheduled" if is_pending else "sent", state)
        move = reverse("admin:notification_move", args=[each.pk]) if each.pk in moves else ""
        entries.append(replace(entry, move=move))
    return entries, len(found) > _MOST_SHOWN


def _movable(user: AnyUser, pending: Sequence[Notification]) -> set[UUID]:
    """Those that the user may move: neither tests, nor what schedules make."""
    channels = channels_of(user, Role.SENDER).filter(pk__in={each.channel_id for each in pending})
    own = set(channels.values_list("pk", flat=True))
    of_schedules = Occurrence.objects.filter(notification_id__in=[each.pk for each in pending])
    made = set(of_schedules.values_list("notification_id", flat=True))
    return {
        each.pk
        for each in pending
        if each.channel_id in own and each.pk not in made and not each.is_test
    }


def _recurring(
    channels: Any, period: tuple[datetime, datetime], zone: ZoneInfo, now: datetime
) -> tuple[list[Entry], bool]:
    """The coming occurrences of schedules, except those that already are notifications, and whether
    there are more of them."""
    begin, end = max(now, period[0]), period[1]
    if begin >= end:
        return [], False
    due = Schedule.objects.filter(channel__in=channels, is_enabled=True, next_at__lt=end)
    schedules = list(due.order_by("next_at")[: _MOST_SCHEDULES + 1])
    known = Occurrence.objects.filter(
        schedule__in=schedules, occurs_at__gte=begin, occurs_at__lt=end
    ).values_list("schedule_id", "occurs_at", "code")
    codes = {(schedule_id, at): code for schedule_id, at, code in known}
    occurrences = (
        (each, at)
        for each in schedules[:_MOST_SCHEDULES]
        for at in takewhile(lambda at: at < end, each.recurs.after(begin, within=end - begin))
        if codes.get((each.pk, at)) in {None, OccurrenceCode.SKIPPED}
    )
    found = list(islice(occurrences, _MOST_SHOWN + 1))
    is_cut = len(found) > _MOST_SHOWN or len(schedules) > _MOST_SCHEDULES
    return [_coming(*each, codes.get((each[0].pk, each[1])), zone) for each in found], is_cut


def _coming(schedule: Schedule, at: datetime, code: str | None, zone: ZoneInfo) -> Entry:
    recurs = schedule.recurs
    own = recurs.zone if recurs.timezone == RECIPIENT else zone
    return Entry(
        local=at.astimezone(own).replace(tzinfo=None),
        text=schedule.name,
        url=reverse("admin:schedule_edit", args=[schedule.pk]),
        note=f"{gettext('recurs')} {_BY_CLOCKS}"
        if recurs.timezone == RECIPIENT
        else gettext("recurs"),
        kind="recurring",
        state=Shown(gettext("skipped"), "warn") if code else None,
    )


def _entry(notification: Notification, zone: ZoneInfo, note: str, kind: str, state: Shown) -> Entry:
    local = notification.scheduled_at.astimezone(zone).replace(tzinfo=None)
    if (timed := notification.timed) and timed.local_at:
        note += f" {_BY_CLOCKS}"
        local = local if timed.is_daily else datetime.fromisoformat(timed.local_at)
    url = reverse("admin:notifications_app_notification_change", args=[notification.pk])
    shown = None if state in _USUAL else state
    return Entry(local, str(notification), url, note, kind, shown)


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
    size = grouped(sum(each.size for each in sizes))
    is_estimated = any(each.estimated for each in sizes)
    return gettext("about %(number)s") % {"number": size} if is_estimated else size


def _month(text: str) -> date | None:
    found = _MONTH.fullmatch(text)
    if found is None or int(found["year"]) > _LAST_YEAR:
        return None
    return date(int(found["year"]), int(found["month"]), 1)


def _by_day(found: Iterable[Entry], first: date, last: date) -> dict[date, list[Entry]]:
    entries: dict[date, list[Entry]] = defaultdict(list)
    for each in sorted(found, key=lambda entry: (entry.local, entry.text)):
        if first <= each.local.date() <= last:
            entries[each.local.date()].append(each)
    return entries


def _day(day: date, month: date, today: date, entries: Sequence[Entry]) -> Day:
    return Day(
        day=day,
        is_outside=day.month != month.month,
        is_today=day == today,
        is_past=day < today,
        entries=entries[:_MOST_IN_A_DAY],
        more=entries[_MOST_IN_A_DAY:],
    )
