"""Actions of senders on a notification's page: cancel, pause, resume, stop and duplicate."""

from typing import Any, Final, cast

from django.contrib import messages
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from typing_extensions import override

from channels_app.models import Role
from notifications_app.admin.compose.form import ComposeForm
from notifications_app.admin.compose.sender import compose_url
from notifications_app.admin.page import OneNotification, must_type_name
from notifications_app.errors import NotCancellable, NotRunning
from notifications_app.models import Target
from notifications_app.sends.drafts import draft_create
from notifications_app.sends.services import (
    notification_cancel,
    notification_pause,
    notification_resume,
    notification_stop,
)
from pushsvc.common.errors import PushsvcError

_VALUES_LEFT_OUT: Final = (
    "Values of their own, which some people or subscribers had for placeholders, are not in it."
)


class _NotificationAction(OneNotification):
    """Runs one action, and shows the notification's page with the result."""

    role = Role.SENDER
    http_method_names = ["post"]

    def post(self, request: HttpRequest, **kwargs: Any) -> HttpResponse:
        self.act(request)
        page = reverse("admin:notifications_app_notification_change", args=[self.notification.pk])
        return HttpResponseRedirect(page)

    def act(self, request: HttpRequest) -> None:
        raise NotImplementedError

    @property
    def _own(self) -> dict[str, Any]:
        return {
            "channel_id": self.notification.channel_id,
            "notification_id": self.notification.pk,
        }


class CancelAction(_NotificationAction):
    title = "Cancel"

    @override
    def act(self, request: HttpRequest) -> None:
        try:
            notification_cancel(**self._own)
            messages.success(request, "The notification is cancelled. It will not be sent.")
        except NotCancellable:
            messages.warning(request, "It could not be cancelled, because sending has started.")


class PauseAction(_NotificationAction):
    title = "Pause"

    @override
    def act(self, request: HttpRequest) -> None:
        try:
            notification_pause(**self._own)
            messages.success(request, "The notification is paused. Nobody gets it meanwhile.")
        except NotRunning:
            messages.warning(request, "It could not be paused, because it has ended.")


class ResumeAction(_NotificationAction):
    title = "Resume"

    @override
    def act(self, request: HttpRequest) -> None:
        notification_resume(**self._own)
        messages.success(request, "The notification is no longer paused.")


class StopAction(_NotificationAction):
    """Requires the typed name of the notification if many recipients wait."""

    title = "Stop"

    @override
    def act(self, request: HttpRequest) -> None:
        typed = _letters(request.POST.get("name", ""))
        if must_type_name(self.notification) and typed != _letters(str(self.notification)):
            messages.warning(request, "It was not stopped, because its name was not typed.")
            return
        try:
            notification_stop(**self._own)
            messages.success(request, "The notification is stopped. Nobody else gets it.")
        except NotRunning:
            messages.warning(request, "It could not be stopped, because it is not being sent.")


class DuplicateAction(OneNotification):
    """Creates a draft with the content and audience of an earlier notification."""

    title = "Duplicate"
    role = Role.SENDER
    http_method_names = ["post"]

    def post(self, request: HttpRequest, **kwargs: Any) -> HttpResponse:
        form = ComposeForm.like(self.notification).stored()
        user = cast(User, request.user)
        try:
            draft = draft_create(channel=self.notification.channel, owner=user, form=form)
        except PushsvcError as error:
            messages.error(request, error.detail)
            own = "admin:notifications_app_notification_change"
            return HttpResponseRedirect(reverse(own, args=[self.notification.pk]))
        messages.success(request, f"This draft is a copy of “{self.notification}”.")
        if Target.objects.of(self.notification.pk).filter(vars__isnull=False).exists():
            messages.warning(request, _VALUES_LEFT_OUT)
        return HttpResponseRedirect(compose_url(draft.pk))


def _letters(name: str) -> str:
    """The name without white space, because a page shows several spaces as one, and its field has
    no line breaks."""
    return "".join(name.split())
