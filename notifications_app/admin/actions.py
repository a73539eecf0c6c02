"""Actions of senders on a notification's page: cancel, pause, resume and stop."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from typing_extensions import override

from channels_app.models import Role
from notifications_app.admin.page import OneNotification, must_type_name
from notifications_app.errors import NotCancellable, NotRunning
from notifications_app.sends.services import (
    notification_cancel,
    notification_pause,
    notification_resume,
    notification_stop,
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


def _letters(name: str) -> str:
    """The name without white space, because a page shows several spaces as one, and its field has
    no line breaks."""
    return "".join(name.split())
