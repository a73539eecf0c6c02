"""A notification's page: its content, its progress and its results. Its actions are in
actions.py."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.conf import settings
from django.db.models import Value
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.functional import cached_property
from django.utils.text import get_text_list
from django.utils.translation import gettext
from typing_extensions import override

from channels_app.console.pages import ChannelPage, own_or_404
from channels_app.models import Channel, Role
from notifications_app.admin.charts import chart_file
from notifications_app.admin.compose.audience import rule_words
from notifications_app.admin.compose.extras import flat
from notifications_app.admin.compose.form import ComposeForm, ttl_words
from notifications_app.admin.compose.sections import platforms_of, simple_of
from notifications_app.admin.results import apart_of, clicks_chart, funnel_context, outcomes_chart
from notifications_app.admin.scheduled import audiences_of
from notifications_app.admin.states import state_of
from notifications_app.admin.targets import named_context
from notifications_app.admin.variants import test_state, variants_context
from notifications_app.content.values import IGNORE
from notifications_app.models import Notification, automation_of
from notifications_app.pipeline.contacts import caps_from
from notifications_app.reporting.activity import Sending, states_of
from notifications_app.reporting.attention import pauses_of
from notifications_app.reporting.bounce_reasons import Words, words_for
from notifications_app.reporting.details import (
    MOST_CORRECTIONS,
    clicks_of_buttons,
    corrections_of,
)
from notifications_app.reporting.event_hours import events_of
from notifications_app.reporting.limited import outlooks
from notifications_app.reporting.progress import Progress, Reason, Release, progress_of
from notifications_app.sends.schedules import schedule_of
from notifications_app.sends.templates import template_find
from notifications_app.states import APART, BatchStatus, NotificationStatus
from pushsvc.common.console.figures import grouped
from pushsvc.common.findings import Finding
from pushsvc.common.platforms import PLATFORM_NAMES
from pushsvc.common.quantities import share
from pushsvc.common.store import sql
from pushsvc.common.texts import later
from subscriptions_app.segments.selectors import segment_find


@dataclass(frozen=True, slots=True)
class Step:
    """A step of the timeline. `state` is `done`, `now` or `ahead`."""

    name: str
    at: datetime | None
    state: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class DescribedReason:
    reason: Reason
    words: Words

    @property
    def platform(self) -> str:
        return PLATFORM_NAMES.get(self.reason.platform or "", "")


class OneNotification(ChannelPage):
    """A page about one notification, which is `self.notification`."""

    notification: Notification

    @property
    def files(self) -> str:
        """The address of a chart's file, without the chart's name."""
        return reverse("admin:notification_chart", args=[self.notification.pk]) + "?chart="

    @override
    def find_channel(self, request: HttpRequest, **kwargs: Any) -> Channel:
        self.notification = own_or_404(Notification, request, kwargs["notification_id"])
        return self.notification.channel


class _WithProgress(OneNotification):
    """A page with the notification's current progress."""

    @cached_property
    def now(self) -> datetime:
        """The database's time, the same for the whole page."""
        return sql.now()

    @override
    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        progress = progress_of(self.notification, now=self.now)
        sending = states_of([self.notification]).get(self.notification.pk)
        events = events_of(self.notification)
        apart = apart_of(self.notification)
        return super().get_context_data(
            notification=self.notification,
            progress=progress,
            targets=[(name, PLATFORM_NAMES[name]) for name in self.notification.target_platforms],
            sending=sending,
            state=state_of(self.notification, sending, self.now),
            seen=_seen(self.notification),
            shares=_shares(self.notification),
            ended=_ended_count(self.notification),
            waiting=_waiting_count(self.notification),
            steps=_steps(self.notification, progress, sending),
            apart=apart,
            platforms=[
                (each, [each.apart[one.code] for one in apart]) for each in progress.platforms
            ],
            **_reasons(progress),
            releases=_releases(self.notification, progress),
            left_out=_left_out(progress),
            pauses=_pauses(self.notification, progress),
            limits=outlooks(self.notification, self.now),
            chart=_chart(progress),
            charts=clicks_chart(events.clicks, self.files) if events.clicks else None,
            files=self.files,
            **funnel_context(self.notification, progress, events),
            buttons=clicks_of_buttons(self.notification),
            **variants_context(self.notification),
            may_choose=self.may(Role.SENDER) and self.notification.is_deciding,
            poll_seconds=_POLL_SECONDS.get(NotificationStatus(self.notification.status)),
            **kwargs,
        )


class NotificationPage(_WithProgress):
    """The whole page."""

    title = later("Notification")
    template_name = "console/notifications/page.html"

    @override
    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        notification = self.notification
        may_send = self.may(Role.SENDER)
        is_pending = notification.status == NotificationStatus.PENDING
        form = ComposeForm(extras=flat(notification.content))
        return super().get_context_data(
            original=notification,  # for the theme's breadcrumbs
            may_write=self.may(Role.WRITER),
            may_send=may_send,
            may_make_template=self.may(Role.EDITOR),
            may_edit=may_send
            and not notification.is_test
            and (is_pending or notification.is_paused),
            may_pause=may_send and notification.is_unfinished and not notification.is_halted,
            may_correct=self.may(Role.WRITER) and _may_correct(notification, self.now),
            may_resend=self.may(Role.WRITER) and _may_resend(notification, self.now),
            may_resume=may_send and notification.is_paused,
            version=notification.pause_version,
            must_type_name=must_type_name(notification),
            audience=audiences_of([notification])[notification.pk] if is_pending else "",
            segment=segment_find(
                channel_id=notification.channel_id, segment_id=notification.segment_id
            ),
            template=template_find(
                channel_id=notification.channel_id, template_id=notification.template_id
            ),
            schedule=schedule_of(notification.pk),
            automation=automation_of(notification.pk).first() if notification.has_targets else None,
            rule_words=rule_words(notification.own_rule, self.request),
            corrections=_corrections(notification),
            **named_context(notification),
            is_log_kept=_is_log_kept(notification, self.now),
            log_days=settings.DELIVERY_RETENTION_DAYS,
            ttl=ttl_words(notification.ttl),
            caps=_caps(notification),
            rate_per_minute=notification.rate(notification.channel.rate_per_minute),
            platform_sections=platforms_of(form),
            simple=simple_of(form),
            composed="composed" in self.request.GET,
            **kwargs,
        ) | {"title": str(notification)}


class ChartDownload(OneNotification):
    """A chart of the page as CSV."""

    title = later("Chart")
    http_method_names = ["get"]

    @override
    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        charts = outcomes_chart(progress_of(self.notification, now=sql.now()))
        if request.GET.get("chart") == "clicks":
            clicks = events_of(self.notification).clicks
            charts = clicks_chart(clicks, self.files) if clicks else charts
        return chart_file(request, charts)


class ProgressPart(_WithProgress):
    """The part of the page that refreshes. Makes the browser reload when the state changes."""

    title = later("Progress")
    http_method_names = ["get"]
    template_name = "console/notifications/progress.html"

    @override
    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if request.GET.get("seen") != _seen(self.notification):
            return HttpResponse(headers={"HX-Refresh": "true"})
        return super().get(request, *args, is_part=True, **kwargs)


class TestPart(_WithProgress):
    """The progress of a test, for the page on which it was composed."""

    title = later("Test")
    http_method_names = ["get"]
    template_name = "console/notifications/test.html"


def must_type_name(notification: Notification) -> bool:
    """Whether a user who stops the notification for good must type its name."""
    return _waiting_count(notification) > _MANY_WAITING


def _ended_count(notification: Notification) -> int:
    return notification.delivered_count + notification.bounced_count


def _waiting_count(notification: Notification) -> int:
    return notification.recipient_count - _ended_count(notification)


_FEWEST_RELEASES: Final = 2
_MANY_WAITING: Final = 10_000
_POLL_SECONDS: Final = {NotificationStatus.PENDING: 5, NotificationStatus.PROCESSING: 2}


def _seen(notification: Notification) -> str:
    """The state on which the page's buttons depend, which edit the page shows, and whether its test
    is decided."""
    halt = " paused" if notification.is_paused else " stopped" if notification.is_stopped else ""
    edit = f" {notification.edited_at.isoformat()}" if notification.edited_at else ""
    return notification.status + halt + edit + test_state(notification)


def _shares(notification: Notification) -> dict[str, float | None]:
    delivered, bounced = notification.delivered_count, notification.undeliverable_count
    return {
        "delivered": share(delivered, notification.recipient_count),
        "bounced": share(bounced, notification.recipient_count),
        "apart": share(notification.bounced_count - bounced, notification.recipient_count),
        "ended": share(delivered + notification.bounced_count, notification.recipient_count),
        "clicked": share(notification.clicked_count, delivered),
    }


def _steps(notification: Notification, progress: Progress, sending: Sending | None) -> list[Step]:
    """The timeline. It ends where the notification was cancelled."""
    is_waiting = sending is not None and sending.stage == "waiting"
    state = "done" if notification.started_at else "ahead"
    accepted = Step(gettext("Accepted"), notification.created_at, "done")
    if notification.status == NotificationStatus.CANCELLED and not notification.is_stopped:
        return [accepted, Step(gettext("Cancelled"), notification.finished_at, "done")]
    steps = [
        accepted,
        Step(gettext("Due"), notification.scheduled_at, state),
        Step(gettext("Started"), notification.started_at, state),
        _planned(notification, progress, "now" if is_waiting else state),
    ]
    if notification.is_paused:
        steps.append(Step(gettext("Paused"), notification.paused_at, "now"))
    elif notification.is_stopped:
        steps.append(Step(gettext("Stopped"), notification.stopped_at, "done"))
    return [*steps, _ended(notification, is_waiting=is_waiting)]


def _releases(notification: Notification, progress: Progress) -> list[tuple[Release, float | None]]:
    """Each release with its share of the largest; none unless it is sent in parts."""
    if not notification.timing or len(progress.releases) < _FEWEST_RELEASES:
        return []
    most = max((each.recipients for each in progress.releases), default=0)
    return [(each, share(each.recipients, most)) for each in progress.releases]


def _left_out(progress: Progress) -> list[tuple[int, str]]:
    """How many of the audience are no recipients, and why."""
    counts = progress.left_out
    return [(counts[name], words) for name, words in _LEFT_OUT.items() if counts.get(name)]


_LEFT_OUT: Final = {
    "opted_out": later("refuse the category"),
    "capped": later("have had enough"),
    "repeated": later("were reached by the schedule lately"),
}


def _caps(notification: Notification) -> str:
    """The caps in force, for people."""
    if notification.cap == IGNORE:
        return gettext("Ignored and not counted")
    return get_text_list([each.words for each in caps_from(notification.caps)], gettext("and"))


def _planned(notification: Notification, progress: Progress, state: str) -> Step:
    if progress.next_release_at and notification.is_deciding:
        return Step(gettext("Decision of the test"), notification.decides_at, "ahead")
    if progress.next_release_at:
        ahead = state if state == "now" else "ahead"
        return Step(gettext("Next release"), progress.next_release_at, ahead)
    if progress.is_planning:
        note = gettext("%(recipient_count)s so far") % {
            "recipient_count": grouped(notification.recipient_count)
        }
        return Step(gettext("Counting recipients"), None, "now", note)
    note = (
        gettext("%(recipient_count)s of them")
        % {"recipient_count": grouped(notification.recipient_count)}
        if state == "done"
        else ""
    )
    return Step(gettext("Recipients counted"), progress.planned_at, state, note)


def _ended(notification: Notification, *, is_waiting: bool) -> Step:
    if not notification.is_unfinished:
        names = {
            NotificationStatus.FAILED: gettext("Failed"),
            NotificationStatus.CANCELLED: gettext("Cancelled"),
        }
        name = names.get(NotificationStatus(notification.status), gettext("Sent"))
        return Step(name, notification.finished_at, "done")
    is_held = notification.is_paused or is_waiting
    is_running = notification.started_at is not None and not is_held
    return (
        Step(gettext("Being sent"), None, "now")
        if is_running
        else Step(gettext("Sent"), None, "ahead")
    )


def _pauses(notification: Notification, progress: Progress) -> list[Finding]:
    """Paused platforms on which recipients wait, or will wait after the start."""
    if notification.status == NotificationStatus.PENDING:
        return pauses_of(notification.channel_id, notification.target_platforms)
    parked = {each.platform for each in progress.waiting if each.status == BatchStatus.PARKED}
    unfinished = {each.platform for each in progress.platforms if each.waiting or each.is_planning}
    is_running = notification.status == NotificationStatus.PROCESSING
    waiting = sorted(parked | unfinished) if is_running else []
    return pauses_of(notification.channel_id, waiting)


def _reasons(progress: Progress) -> dict[str, list[DescribedReason]]:
    """Why recipients bounced, and apart from that how many a stop, an opt-out or the deadline
    ended."""
    described = [DescribedReason(each, words_for(*each[:2])) for each in progress.reasons]
    return {
        "reasons": [each for each in described if each.reason.code not in APART],
        "apart_reasons": [each for each in described if each.reason.code in APART],
    }


def _chart(progress: Progress) -> dict[str, Any]:
    (chart,) = outcomes_chart(progress).charts
    return {
        "step_minutes": progress.step // timedelta(minutes=1),
        "starts": [point.start.isoformat() for point in progress.points],
        "lines": chart.drawn,
    }


def _may_correct(notification: Notification, now: datetime) -> bool:
    """Whether there are devices that have it, and it is known which."""
    has_ended = not notification.is_unfinished or notification.is_stopped
    return has_ended and notification.delivered_count > 0 and _is_log_kept(notification, now)


def _corrections(notification: Notification) -> list[Notification]:
    found = corrections_of(Value(notification.pk), Value(notification.root_id))
    return list(found[:MOST_CORRECTIONS])


def _may_resend(notification: Notification, now: datetime) -> bool:
    """Whether there may be recipients who did not click, whose deliveries are kept."""
    has_some = notification.delivered_count > notification.clicked_count
    return has_some and not notification.is_test and _is_log_kept(notification, now)


def _is_log_kept(notification: Notification, now: datetime) -> bool:
    kept = timedelta(days=settings.DELIVERY_RETENTION_DAYS)
    return notification.finished_at is None or notification.finished_at > now - kept
