"""A notification's page: its content, its progress and its results."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from typing_extensions import override

from channels_app.console.pages import ChannelPage, own_or_404
from channels_app.models import Channel, Role
from notifications_app.admin.pauses import Pause, pauses_of
from notifications_app.errors import NotCancellable
from notifications_app.models import Notification
from notifications_app.reporting.bounce_reasons import Words, words_for
from notifications_app.reporting.progress import Progress, Reason, progress_of
from notifications_app.services import notification_cancel
from notifications_app.states import BatchStatus, NotificationStatus
from pushsvc.common.console.figures import duration, share
from pushsvc.common.platforms import PLATFORM_NAMES
from pushsvc.common.store import sql
from subscriptions_app.selectors import segment_find

STATE_TONES: Final = {
    NotificationStatus.PENDING: "",
    NotificationStatus.PROCESSING: "busy",
    NotificationStatus.SENT: "good",
    NotificationStatus.FAILED: "bad",
    NotificationStatus.CANCELLED: "warn",
}
STATE_WORDS: Final = {
    NotificationStatus.PENDING: "scheduled",
    NotificationStatus.PROCESSING: "running",
    NotificationStatus.SENT: "sent",
    NotificationStatus.FAILED: "failed",
    NotificationStatus.CANCELLED: "cancelled",
}


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

    @override
    def find_channel(self, request: HttpRequest, **kwargs: Any) -> Channel:
        self.notification = own_or_404(Notification, request, kwargs["notification_id"])
        return self.notification.channel


class _WithProgress(OneNotification):
    """With its progress as of now."""

    @override
    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        now = sql.now()
        progress = progress_of(self.notification, now=now)
        return super().get_context_data(
            notification=self.notification,
            progress=progress,
            targets=[(name, PLATFORM_NAMES[name]) for name in self.notification.target_platforms],
            state_tone=STATE_TONES[NotificationStatus(self.notification.status)],
            state=state_words(self.notification, now),
            shares=_shares(self.notification),
            ended=self.notification.delivered_count + self.notification.bounced_count,
            steps=_steps(self.notification, progress),
            reasons=[DescribedReason(each, words_for(*each[:2])) for each in progress.reasons],
            pauses=_pauses(self.notification, progress),
            chart=_chart(progress),
            poll_seconds=_POLL_SECONDS.get(NotificationStatus(self.notification.status)),
            **kwargs,
        )


class NotificationPage(_WithProgress):
    """The whole page."""

    title = "Notification"
    template_name = "console/notifications/page.html"

    @override
    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        notification = self.notification
        may_send = self.may(Role.SENDER)
        is_pending = notification.status == NotificationStatus.PENDING
        return super().get_context_data(
            original=notification,  # for the theme's breadcrumbs
            may_send=may_send,
            may_cancel=may_send and is_pending,
            segment=segment_find(
                channel_id=notification.channel_id, segment_id=notification.segment_id
            ),
            is_log_kept=_is_log_kept(notification, sql.now()),
            log_days=settings.DELIVERY_RETENTION_DAYS,
            ttl=ttl_words(notification.ttl),
            composed="composed" in self.request.GET,
            **kwargs,
        ) | {"title": str(notification)}


class ProgressPart(_WithProgress):
    """The part of the page that changes. Makes the browser reload when the status changes."""

    title = "Progress"
    http_method_names = ["get"]
    template_name = "console/notifications/progress.html"

    @override
    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if request.GET.get("seen") != self.notification.status:
            return HttpResponse(headers={"HX-Refresh": "true"})
        return super().get(request, *args, **kwargs)


class TestPart(_WithProgress):
    """The progress of a test, for the page on which it was composed."""

    title = "Test"
    http_method_names = ["get"]
    template_name = "console/notifications/test.html"


class CancelAction(OneNotification):
    title = "Cancel"
    role = Role.SENDER
    http_method_names = ["post"]

    def post(self, request: HttpRequest, **kwargs: Any) -> HttpResponse:
        try:
            notification_cancel(
                channel_id=self.notification.channel_id, notification_id=self.notification.pk
            )
            messages.success(request, "The notification is cancelled. It will not be sent.")
        except NotCancellable:
            messages.warning(request, "It could not be cancelled, because sending has started.")
        page = reverse("admin:notifications_app_notification_change", args=[self.notification.pk])
        return HttpResponseRedirect(page)


_POLL_SECONDS: Final = {NotificationStatus.PENDING: 5, NotificationStatus.PROCESSING: 2}


def state_words(notification: Notification, now: datetime) -> str:
    status = NotificationStatus(notification.status)
    if status == NotificationStatus.PENDING and notification.scheduled_at <= now:
        return "about to start"
    return STATE_WORDS[status]


def _shares(notification: Notification) -> dict[str, float | None]:
    delivered, bounced = notification.delivered_count, notification.bounced_count
    return {
        "delivered": share(delivered, notification.recipient_count),
        "bounced": share(bounced, notification.recipient_count),
        "ended": share(delivered + bounced, notification.recipient_count),
        "clicked": share(notification.clicked_count, delivered),
    }


def ttl_words(ttl: int) -> str:
    return duration(ttl) if ttl else "deliver at once or drop"


def _steps(notification: Notification, progress: Progress) -> list[Step]:
    """The timeline. It ends where the notification was cancelled."""
    first = [
        Step("Accepted", notification.created_at, "done"),
        _step("Due", notification.scheduled_at, notification.started_at is not None),
    ]
    if notification.status == NotificationStatus.CANCELLED:
        return [first[0], Step("Cancelled", notification.finished_at, "done")]
    return [
        *first,
        _step("Started", notification.started_at, notification.started_at is not None),
        _planned(notification, progress),
        _ended(notification),
    ]


def _step(name: str, at: datetime | None, is_done: bool) -> Step:
    return Step(name, at, "done" if is_done else "ahead")


def _planned(notification: Notification, progress: Progress) -> Step:
    if progress.is_planning:
        note = f"{notification.recipient_count:,} so far"
        return Step("Counting recipients", None, "now", note)
    is_done = notification.started_at is not None
    note = f"{notification.recipient_count:,} of them" if is_done else ""
    return Step("Recipients counted", progress.planned_at, "done" if is_done else "ahead", note)


def _ended(notification: Notification) -> Step:
    if notification.finished_at is not None:
        name = "Sent" if notification.status == NotificationStatus.SENT else "Failed"
        return Step(name, notification.finished_at, "done")
    is_running = notification.started_at is not None
    return Step("Being sent", None, "now") if is_running else Step("Sent", None, "ahead")


def _pauses(notification: Notification, progress: Progress) -> list[Pause]:
    """Paused platforms on which recipients wait, or will wait when the notification starts."""
    if notification.status == NotificationStatus.PENDING:
        return pauses_of(notification.channel_id, notification.target_platforms)
    parked = {each.platform for each in progress.waiting if each.status == BatchStatus.PARKED}
    unfinished = {each.platform for each in progress.platforms if each.waiting or each.is_planning}
    is_running = notification.status == NotificationStatus.PROCESSING
    waiting = sorted(parked | unfinished) if is_running else []
    return pauses_of(notification.channel_id, waiting)


def _chart(progress: Progress) -> dict[str, Any]:
    return {
        "step_minutes": progress.step // timedelta(minutes=1),
        "points": [[p.start.isoformat(), p.delivered, p.bounced] for p in progress.points],
    }


def _is_log_kept(notification: Notification, now: datetime) -> bool:
    kept = timedelta(days=settings.DELIVERY_RETENTION_DAYS)
    return notification.finished_at is None or notification.finished_at > now - kept
