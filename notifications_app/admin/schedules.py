"""A channel's schedules: the list, the form of a schedule, its occurrences, and actions."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any, Final, Self
from uuid import UUID

from django.http import HttpRequest, HttpResponse, QueryDict
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils.translation import gettext
from typing_extensions import override

from channels_app.admin.tabs import TabPage
from channels_app.console.pages import ChannelPage
from channels_app.models import Role
from notifications_app.admin import stored_send_page
from notifications_app.admin.recurrence_words import clock_words, recurrence_words
from notifications_app.admin.schedule_form import (
    RECURRENCE,
    WORDS,
    RecurrenceForm,
    read_once,
    read_recurrence,
    split_errors,
)
from notifications_app.admin.stored_send_page import (
    NewSendPage,
    StoredActs,
    StoredFormPage,
    StoredSendPage,
)
from notifications_app.models import (
    Notification,
    Occurrence,
    OccurrenceCode,
    Schedule,
)
from notifications_app.recurrence import FIRST_WITHIN, RECIPIENT, WEEKDAYS, zone_of
from notifications_app.sends.schedules import (
    MAX_SCHEDULES,
    coming_of,
    occurrence_page,
    occurrence_skip,
    occurrence_unskip,
    recurrence_of,
    schedule_create,
    schedule_delete,
    schedule_page,
    schedule_switch,
    schedule_update,
)
from pushsvc.common.errors import Conflict, Invalid, Outdated
from pushsvc.common.store import sql
from pushsvc.common.texts import later
from pushsvc.common.timestamps import parse_timestamp, timezone_names

COMING: Final = 3
_SHOWN: Final = 50
_CHANGED: Final = later(
    "{}, because the schedule was changed after you opened this page. Check it first."
)
_TONES: Final = {OccurrenceCode.SENT: "good", OccurrenceCode.SKIPPED: ""}


@dataclass(frozen=True, slots=True)
class Coming:
    """An occurrence that is to come. `local`: the time on the clock of the schedule, without a
    zone, so that templates do not convert it."""

    at: datetime
    local: datetime
    is_skipped: bool

    @classmethod
    def of(cls, at: datetime, timezone: str, *, is_skipped: bool = False) -> Self:
        return cls(at, at.astimezone(zone_of(timezone)).replace(tzinfo=None), is_skipped)

    @property
    def key(self) -> str:
        return self.at.isoformat()


def state_of(schedule: Schedule) -> tuple[str, str]:
    """As of all stored sends, or that it has ended."""
    has_ended = schedule.is_enabled and schedule.next_at is None
    return (gettext("ended"), "") if has_ended else stored_send_page.state_of(schedule)


class SchedulesPage(TabPage):
    title = later("Schedules")
    template_name = "console/channels/schedules.html"
    tab = "channel_schedules"
    http_method_names = ["get", "head"]

    @override
    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        found = schedule_page(channel_id=self.channel.pk, limit=MAX_SCHEDULES, offset=0)
        coming = _coming(found, sql.now())
        return super().get_context_data(
            listed=[
                {
                    "schedule": each,
                    "send": each.send,
                    "words": recurrence_words(each.recurs),
                    "clock": clock_words(each.recurrence["timezone"]),
                    "coming": coming[each.pk],
                    "state": state_of(each),
                }
                for each in found
            ],
            **kwargs,
        )


class _WritingPage(StoredSendPage):
    template_name = "console/notifications/schedule.html"
    model = Schedule
    own_words = WORDS
    own_attrs = frozenset({RECURRENCE})

    @override
    def posted(self, post: QueryDict) -> RecurrenceForm:
        return RecurrenceForm.posted(post)

    @override
    def readers(self, own: RecurrenceForm) -> dict[str, Callable[[], Any]]:
        return {
            "recurrence": lambda: read_recurrence(own),
            "once_per_days": lambda: read_once(own),
        }

    @override
    def own_context(
        self, own: RecurrenceForm, errors: Mapping[str, Sequence[str]]
    ) -> dict[str, Any]:
        return {
            "repeat": own,
            "repeat_errors": errors,
            "zones": timezone_names(),
            "recipient": RECIPIENT,
            "weekdays": WEEKDAYS,
        }

    @override
    def said(self, saved: Schedule) -> tuple[str, str]:
        words = gettext("The schedule “%(schedule)s” was saved.") % {"schedule": saved}
        return words, reverse("admin:schedule_edit", args=[saved.pk])


class NewSchedulePage(NewSendPage, _WritingPage):
    title = later("New schedule")
    create = staticmethod(schedule_create)

    @override
    def first_own(self) -> RecurrenceForm:
        return RecurrenceForm(repeat_zone=self.channel.timezone)


class SchedulePage(StoredFormPage, _WritingPage):
    """A schedule, with what became of its occurrences."""

    title = later("Schedule")
    update = staticmethod(schedule_update)

    @override
    def own_of(self) -> RecurrenceForm:
        return RecurrenceForm.of(self.row)

    @override
    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        schedule = self.row
        past = occurrence_page(
            channel_id=self.channel.pk, schedule_id=schedule.pk, limit=_SHOWN, offset=0
        )
        own = {
            "state": state_of(schedule),
            "words": recurrence_words(schedule.recurs),
            "clock": clock_words(schedule.recurrence["timezone"]),
            "coming": _coming([schedule], sql.now())[schedule.pk],
            "past": _told([each for each in past if each.code != OccurrenceCode.SKIPPED]),
        }
        return super().get_context_data(**kwargs) | own


class ScheduleActs(StoredActs):
    """Also skips an occurrence, or takes that back."""

    title = later("Schedule")
    model = Schedule
    switch = staticmethod(schedule_switch)
    delete_row = staticmethod(schedule_delete)
    is_on = later("The schedule is on.")
    is_off = later("The schedule is off.")
    was_deleted = later("The schedule “%(schedule)s” was deleted.")

    @override
    def still_off(self) -> str:
        return _CHANGED.format(gettext("The schedule is still off"))

    @override
    def acts(self) -> Mapping[str, Callable[[QueryDict], HttpResponseBase]]:
        return {**super().acts(), "skip": self._skip, "unskip": self._unskip}

    def _skip(self, post: QueryDict) -> HttpResponseBase:
        occurrence_skip(**self.named, occurs_at=_moment(post))
        return self.back(gettext("The occurrence is skipped."))

    def _unskip(self, post: QueryDict) -> HttpResponseBase:
        try:
            now = occurrence_unskip(
                **self.named, occurs_at=_moment(post), seen=post.get("version", "")
            )
        except Outdated as error:
            raise Conflict(_CHANGED.format(gettext("The occurrence was left as it is"))) from error
        words = (
            gettext("The occurrence is sent.")
            if now.is_enabled
            else gettext("The occurrence is no longer skipped, but the schedule is off.")
        )
        return self.back(words)


class RecurrencePart(ChannelPage):
    """The recurrence in the posted form in words, with the next occurrences, while the user
    chooses."""

    title = later("When")
    role = Role.SENDER
    template_name = "console/notifications/recurrence.html"
    http_method_names = ["post"]

    def post(self, request: HttpRequest, **kwargs: Any) -> HttpResponse:
        now = sql.now()
        try:
            recurs = recurrence_of(read_recurrence(RecurrenceForm.posted(request.POST)))
        except Invalid as error:
            _, errors = split_errors(error.errors, frozenset({RECURRENCE}), WORDS)
            return self.render_to_response(self.get_context_data(errors=errors))
        after = islice(recurs.after(now, within=FIRST_WITHIN), COMING)
        coming = [Coming.of(at, recurs.timezone) for at in after]
        return self.render_to_response(
            self.get_context_data(
                words=recurrence_words(recurs), coming=coming, clock=clock_words(recurs.timezone)
            )
        )


def _coming(schedules: Sequence[Schedule], now: datetime) -> dict[UUID, list[Coming]]:
    found = coming_of(schedules, now, most=COMING)
    return {
        each.pk: [
            Coming.of(at, each.recurrence["timezone"], is_skipped=is_skipped)
            for at, is_skipped in found[each.pk]
        ]
        for each in schedules
    }


def _told(past: Sequence[Occurrence]) -> list[dict[str, Any]]:
    """What became of occurrences, with their notifications."""
    ids = [each.notification_id for each in past if each.notification_id]
    sent = Notification.objects.in_bulk(ids)
    words = dict(OccurrenceCode.choices)
    return [
        {
            "at": each.occurs_at,
            "words": words.get(each.code, f"refused: {each.code}"),
            "tone": _TONES.get(OccurrenceCode(each.code), "warn") if each.code in words else "bad",
            "notification": sent.get(each.notification_id) if each.notification_id else None,
        }
        for each in past
    ]


def _moment(post: QueryDict) -> datetime:
    try:
        return parse_timestamp(post.get("occurs_at", ""))
    except ValueError as error:
        raise Conflict(gettext("There is no such occurrence.")) from error
