"""Moves a scheduled notification to another time: where the calendar's drag and drop leads."""

from datetime import UTC, date, datetime
from typing import Any, Final
from zoneinfo import ZoneInfo

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.formats import date_format
from django.utils.translation import gettext
from rest_framework.exceptions import ValidationError
from typing_extensions import override

from channels_app.console.pages import own_or_404
from channels_app.models import Role
from notifications_app.admin.compose.form import ComposeForm, moment_of
from notifications_app.admin.page import OneNotification
from notifications_app.admin.scheduled import audiences_of
from notifications_app.errors import NotEditable, TooManyPending
from notifications_app.models import Notification
from notifications_app.sends.editing import notification_move
from notifications_app.sends.schedules import schedule_of
from notifications_app.states import NotificationStatus
from pushsvc.common.console.zones import reader_zone
from pushsvc.common.errors import Invalid, Outdated, TooManyRequests
from pushsvc.common.http.drf import errors_of
from pushsvc.common.store import sql
from pushsvc.common.texts import later
from pushsvc.common.timestamps import format_timestamp

_OVER: Final = later("It was not moved, because it has started or ended.")
_TEST: Final = later("A test cannot be moved.")
_OF_SCHEDULE: Final = later(
    "It was not moved, because the schedule “{}” makes it: change that, or skip it."
)
_MEANWHILE: Final = later(
    "It was not moved, because it was changed meanwhile. Check it, and move it again."
)
_PASSED: Final = later("This time has passed.")
_INPUT: Final = "%Y-%m-%dT%H:%M"


class MovePage(OneNotification):
    """The present time and the new one, to be confirmed. `day` in the query: where it was dropped.

    Times are those of the reader's clock, or of each recipient's for a send by local time. Moving
    it twice to the same time moves it once. A move sends nothing at once.
    """

    title = later("Move")
    role = Role.SENDER
    template_name = "console/notifications/move.html"

    @override
    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if reason := self._fixed():
            return self._left(reason)
        zone = reader_zone(request).key
        present = _local(self.notification, zone)
        chosen = _dropped(request.GET.get("day", ""), present)
        errors = self._foreseen(chosen, zone) if chosen != present else []
        return self._shown(f"{chosen:{_INPUT}}", zone, errors)

    def post(self, request: HttpRequest, **kwargs: Any) -> HttpResponse:
        if reason := self._fixed():
            return self._left(reason)
        typed = request.POST.get("local_time", "")
        zone = request.POST.get("time_zone", "")
        try:
            moment = self._moment(typed, zone)
            chosen = datetime.fromisoformat(typed)
            if chosen != _local(self.notification, zone):
                self._move(chosen, moment)
        except Invalid as error:
            return self._shown(typed, zone, [each.detail for each in error.errors])
        except (TooManyPending, TooManyRequests) as error:
            return self._shown(typed, zone, [error.detail])
        except NotEditable:
            return self._left(_OVER)
        except Outdated:
            self.notification = own_or_404(Notification, request, self.notification.pk)
            reason = self._fixed()
            return self._left(reason) if reason else self._shown(typed, zone, [_MEANWHILE])
        clock = gettext("the time zone of each recipient") if _is_zoned(self.notification) else zone
        words = gettext("“%(notification)s” is scheduled for %(moment)s, in %(clock)s.") % {
            "notification": self.notification,
            "moment": date_format(chosen, "DAY_AND_TIME"),
            "clock": clock,
        }
        messages.success(request, words)
        return HttpResponseRedirect(_calendar(chosen))

    def _move(self, chosen: datetime, moment: datetime) -> None:
        """Raises what `notification_move` raises, without DRF's ValidationError."""
        start: dict[str, Any] = {"scheduled_at": format_timestamp(moment)}
        if _is_zoned(self.notification):
            start = {"local_at": f"{chosen:{_INPUT}}", "scheduled_at": None}
        try:
            notification_move(
                channel=self.channel,
                notification_id=self.notification.pk,
                start=start,
                seen=self.request.POST.get("version", ""),
            )
        except ValidationError as error:
            raise Invalid(errors_of(error)) from error

    def _fixed(self) -> str:
        """Why it cannot be moved; "" if it can be."""
        if self.notification.status != NotificationStatus.PENDING:
            return _OVER
        if self.notification.is_test:
            return _TEST
        schedule = schedule_of(self.notification.pk)
        return _OF_SCHEDULE.format(schedule) if schedule else ""

    def _left(self, reason: str) -> HttpResponse:
        messages.warning(self.request, reason)
        page = reverse("admin:notifications_app_notification_change", args=[self.notification.pk])
        return HttpResponseRedirect(page)

    def _foreseen(self, chosen: datetime, zone: str) -> list[str]:
        """Why it cannot be moved there, as far as that is known before it is tried."""
        try:
            moment = self._moment(f"{chosen:{_INPUT}}", zone)
        except Invalid as error:
            return [each.detail for each in error.errors]
        is_past = moment <= sql.now() and not _is_zoned(self.notification)
        return [_PASSED] if is_past else []

    def _moment(self, typed: str, zone: str) -> datetime:
        """The moment at which clocks of the zone show this; the first of two. Raises Invalid."""
        name = "UTC" if _is_zoned(self.notification) else zone
        moment = moment_of(ComposeForm(when="later", local_time=typed, time_zone=name))
        assert moment is not None  # noqa: S101 - it is for later
        return moment

    def _shown(self, typed: str, zone: str, errors: list[str]) -> HttpResponse:
        is_zoned = _is_zoned(self.notification)
        present = _local(self.notification, zone)
        own = self.channel.timezone
        context = self.get_context_data(
            notification=self.notification,
            original=self.notification,  # for the theme's breadcrumbs
            present=present,
            is_zoned=is_zoned,
            elsewhere=own if own not in {zone, "UTC"} and not is_zoned else "",
            there=_local(self.notification, own),
            typed=typed,
            time_zone=zone,
            version=self.notification.edit_version,
            errors=errors,
            audience=audiences_of([self.notification])[self.notification.pk],
            back=_calendar(present),
        )
        return self.render_to_response(
            context, status=400 if self.request.method == "POST" else 200
        )


def _is_zoned(notification: Notification) -> bool:
    """Whether its time is that of each recipient's clock."""
    return notification.timed is not None and notification.timed.local_at is not None


def _local(notification: Notification, zone: str) -> datetime:
    """Its time to the minute, without a zone. UTC if the zone is unknown, or has no such date."""
    if notification.timed is not None and notification.timed.local_at is not None:
        return datetime.fromisoformat(notification.timed.first_local)
    try:
        shown = notification.scheduled_at.astimezone(ZoneInfo(zone))
    except (LookupError, ValueError, OSError, OverflowError):
        shown = notification.scheduled_at.astimezone(UTC)
    return shown.replace(second=0, microsecond=0, tzinfo=None)


def _dropped(day: str, present: datetime) -> datetime:
    """The same time of day on another day."""
    try:
        return datetime.combine(date.fromisoformat(day), present.time())
    except ValueError:
        return present


def _calendar(shown: datetime) -> str:
    return f"{reverse('admin:notification_calendar')}?month={shown:%Y-%m}"
