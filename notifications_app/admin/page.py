"""A notification's page: what it says, how far it has come, how its recipients ended."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django.conf import settings
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from typing_extensions import override

from channels_app.access import channels_of, may
from channels_app.console import ConsolePage, require
from channels_app.models import ProviderCredential, Role
from channels_app.selectors import channel_credentials
from notifications_app import selectors
from notifications_app.errors import NotCancellable
from notifications_app.models import Notification
from notifications_app.progress import PLATFORM_NAMES, Progress, Reason, progress_of
from notifications_app.reasons import Words, words_for
from notifications_app.services import notification_cancel
from notifications_app.states import BatchStatus, NotificationStatus
from pushsvc.common.ids import parse_uuid
from subscriptions_app.models import Segment

STATE_TONES: Final = {
    NotificationStatus.PENDING: "",
    NotificationStatus.PROCESSING: "busy",
    NotificationStatus.SENT: "good",
    NotificationStatus.FAILED: "bad",
    NotificationStatus.CANCELLED: "warn",
}


@dataclass(frozen=True, slots=True)
class Step:
    """Of the timeline. `state` is `done`, `now` or `ahead`."""

    name: str
    at: datetime | None
    state: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class ToldReason:
    reason: Reason
    words: Words

    @property
    def platform(self) -> str:
        return PLATFORM_NAMES.get(self.reason.platform, "")


class OneNotification(ConsolePage):
    """About one notification, found as `self.notification`; 404 for one of another account."""

    notification: Notification

    @override
    def check_access(self, request: HttpRequest, **kwargs: Any) -> None:
        super().check_access(request, **kwargs)
        own = Notification.objects.filter(channel__in=channels_of(request.user))
        found = (
            own.filter(id=id_or_404(str(kwargs["notification_id"])))
            .select_related("channel")
            .first()
        )
        if found is None:
            raise Http404
        self.notification = found
        require(self.may(self.role), self.role)

    def may(self, role: Role) -> bool:
        return may(self.request.user, self.notification.channel.account_id, role)


class _Reported(OneNotification):
    """With how far it has come, as of now."""

    @override
    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        now = selectors.database_now()
        progress = progress_of(self.notification, now=now)
        return super().get_context_data(
            notification=self.notification,
            progress=progress,
            targets=[(name, PLATFORM_NAMES[name]) for name in self.notification.target_platforms],
            state_tone=STATE_TONES[NotificationStatus(self.notification.status)],
            state=state_words(self.notification, now),
            rates=_rates(self.notification),
            widths=_widths(self.notification),
            time_left=_time_left(progress),
            ended=self.notification.delivered_count + self.notification.bounced_count,
            steps=_steps(self.notification, progress),
            reasons=[ToldReason(each, words_for(*each[:2])) for each in progress.reasons],
            pauses=_pauses(self.notification, progress),
            chart=_chart(progress),
            poll_seconds=_POLL_SECONDS.get(NotificationStatus(self.notification.status)),
            **kwargs,
        )


class NotificationPage(_Reported):
    """All of it."""

    title = "Notification"
    template_name = "console/notifications/page.html"

    @override
    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        notification = self.notification
        may_send = self.may(Role.SENDER)
        is_pending = notification.status == NotificationStatus.PENDING
        return super().get_context_data(
            original=notification,  # for the theme's trail
            may_send=may_send,
            may_cancel=may_send and is_pending,
            segment=segment_of(notification.channel_id, notification.segment_id),
            is_log_kept=_is_log_kept(notification, selectors.database_now()),
            log_days=settings.DELIVERY_RETENTION_DAYS,
            ttl=ttl_words(notification.ttl),
            composed="composed" in self.request.GET,
            **kwargs,
        ) | {"title": str(notification)}


class ProgressPart(_Reported):
    """What changes of the page; tells it to load anew once its state is not the one it shows."""

    title = "Progress"
    http_method_names = ["get"]
    template_name = "console/notifications/progress.html"

    @override
    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if request.GET.get("seen") != self.notification.status:
            return HttpResponse(headers={"HX-Refresh": "true"})
        return super().get(request, *args, **kwargs)


class TestPart(_Reported):
    """What became of a test, for the page on which it was composed."""

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
            messages.success(request, "The notification is cancelled. Nobody gets it.")
        except NotCancellable:
            messages.warning(request, "Too late to cancel: it has been started already.")
        page = reverse("admin:notifications_app_notification_change", args=[self.notification.pk])
        return HttpResponseRedirect(page)


_POLL_SECONDS: Final = {NotificationStatus.PENDING: 5, NotificationStatus.PROCESSING: 2}


def state_words(notification: Notification, now: datetime) -> str:
    """The state in a word that says more than `pending`."""
    if notification.status != NotificationStatus.PENDING:
        return str(notification.status)
    return "scheduled" if notification.scheduled_at > now else "about to start"


def segment_of(channel_id: UUID, segment_id: UUID | None) -> Segment | None:
    """None for the whole channel, and for a segment that is there no more."""
    if segment_id is None:
        return None
    return Segment.objects.filter(channel_id=channel_id, id=segment_id).first()


def share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "—"


def _rates(notification: Notification) -> dict[str, str]:
    return {
        "delivered": share(notification.delivered_count, notification.recipient_count),
        "bounced": share(notification.bounced_count, notification.recipient_count),
        "clicked": share(notification.clicked_count, notification.delivered_count),
        "ended": share(
            notification.delivered_count + notification.bounced_count, notification.recipient_count
        ),
    }


def _widths(notification: Notification) -> dict[str, str]:
    """In per cent, with a point whatever the language."""
    whole = max(1, notification.recipient_count)
    return {
        "delivered": f"{100 * notification.delivered_count / whole:.2f}",
        "bounced": f"{100 * notification.bounced_count / whole:.2f}",
    }


def _time_left(progress: Progress) -> str:
    """ "" where it is not to be known."""
    if progress.pace is None or progress.pace.seconds_left is None:
        return ""
    return duration_words(max(1, round(progress.pace.seconds_left)))


def duration_words(seconds: int) -> str:
    """The two largest units: `2 h 5 min`."""
    units = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))
    parts = []
    for name, size in units:
        count, seconds = divmod(seconds, size)
        if count:
            parts.append(f"{count} {name}")
    return " ".join(parts[:2]) or "0 s"


def ttl_words(ttl: int) -> str:
    return duration_words(ttl) if ttl else "at once or never"


def _steps(notification: Notification, progress: Progress) -> list[Step]:
    """Cancelled ones end where they were."""
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
    is_under_way = notification.started_at is not None
    return Step("Being sent", None, "now") if is_under_way else Step("Sent", None, "ahead")


def _pauses(notification: Notification, progress: Progress) -> list[dict[str, str]]:
    """Platforms whose recipients wait for credentials, with what the push service said."""
    parked = {each.platform for each in progress.waiting if each.status == BatchStatus.PARKED}
    stored = channel_credentials(notification.channel_id) if parked else {}
    return [_pause(platform, stored.get(platform)) for platform in sorted(parked)]


def _pause(platform: str, credential: ProviderCredential | None) -> dict[str, str]:
    code = credential.paused_code if credential else "credentials_refused"
    words = words_for(platform, code or "credentials_refused")
    return {
        "platform": PLATFORM_NAMES[platform],
        "title": words.title,
        "meaning": words.meaning,
        "detail": credential.paused_detail if credential else "",
    }


def _chart(progress: Progress) -> dict[str, Any]:
    return {
        "step_minutes": progress.step // timedelta(minutes=1),
        "points": [[p.start.isoformat(), p.delivered, p.bounced] for p in progress.points],
    }


def _is_log_kept(notification: Notification, now: datetime) -> bool:
    kept = timedelta(days=settings.DELIVERY_RETENTION_DAYS)
    return notification.finished_at is None or notification.finished_at > now - kept


def id_or_404(text: str) -> UUID:
    try:
        return parse_uuid(text)
    except ValueError as error:
        raise Http404 from error
