"""Actions of senders on a notification's page.

An action that halts a notification never depends on what the page showed. An action that sets
something in motion runs only if the user saw what it sets in motion.
"""

from dataclasses import replace
from json import dumps
from typing import Any, Final, cast

from django.contrib import messages
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext
from typing_extensions import override

from channels_app.models import Role
from notifications_app.admin.compose.audience import CORRECTION, RULE
from notifications_app.admin.compose.form import ComposeForm
from notifications_app.admin.compose.sender import compose_url
from notifications_app.admin.page import OneNotification, must_type_name
from notifications_app.errors import AlreadyDecided, NotCancellable, NoTest, NotRunning
from notifications_app.models import Notification, Target
from notifications_app.selectors import notification_get
from notifications_app.sends.drafts import draft_create
from notifications_app.sends.services import (
    notification_cancel,
    notification_decide,
    notification_pause,
    notification_resume,
    notification_stop,
)
from notifications_app.states import NotificationStatus
from pushsvc.common.errors import Invalid, Outdated, PushsvcError
from pushsvc.common.texts import later

_VALUES_LEFT_OUT: Final = later(
    "Values of their own, which some people or subscribers had for placeholders, are not in it."
)

_CHANGED: Final = later(
    "It is still paused, because it was edited or paused again after you opened "
    "this page. Check it first."
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
    def current(self) -> Notification:
        """The notification as it is now."""
        return notification_get(**self._own)

    @property
    def _own(self) -> dict[str, Any]:
        return {
            "channel_id": self.notification.channel_id,
            "notification_id": self.notification.pk,
        }


class PauseAction(_NotificationAction):
    """Halts the notification, whatever has happened since the page was loaded."""

    title = later("Pause")
    done = later("The notification is paused. Nobody gets it meanwhile.")

    @override
    def act(self, request: HttpRequest) -> None:
        try:
            notification_pause(**self._own)
            messages.success(request, self.done)
        except NotRunning:
            messages.warning(request, _over(self.current))


class StopAction(PauseAction):
    """Halts the notification as a pause does. The page then offers to end it or to resume it."""

    title = later("Stop")
    done = later("Nobody else gets it for now. Decide below whether it ends here.")


class ResumeAction(_NotificationAction):
    """Resumes what the user saw. A notification that was edited or paused again since stays
    paused."""

    title = later("Resume")

    @override
    def act(self, request: HttpRequest) -> None:
        try:
            now = notification_resume(**self._own, seen=request.POST.get("version", ""))
        except Outdated:
            messages.warning(request, _CHANGED)
            return
        if now.is_unfinished and not now.is_stopped:
            messages.success(request, gettext("The notification is no longer paused."))
        else:
            messages.warning(request, _over(now))


class EndAction(_NotificationAction):
    """Cancels the notification, or stops it for good if sending has started.

    If many recipients wait, this requires the typed name of the notification. Without it, the
    notification is paused until the user has decided.
    """

    title = later("End")

    @override
    def act(self, request: HttpRequest) -> None:
        typed = _letters(request.POST.get("name", ""))
        if must_type_name(self.notification) and typed != _letters(str(self.notification)):
            self._hold(request)
            return
        try:
            notification_cancel(**self._own)
            messages.success(
                request, gettext("The notification is cancelled. It will not be sent.")
            )
        except NotCancellable:
            self._stop(request)

    def _stop(self, request: HttpRequest) -> None:
        try:
            notification_stop(**self._own)
            messages.success(request, gettext("The notification is stopped. Nobody else gets it."))
        except NotRunning:
            messages.warning(request, _over(self.current))

    def _hold(self, request: HttpRequest) -> None:
        try:
            notification_pause(**self._own)
            messages.warning(request, gettext("It is paused. To stop it for good, type its name."))
        except NotRunning:
            messages.warning(request, _over(self.current))


class WinnerAction(_NotificationAction):
    """Decides the test of the variants, as `POST /notification/:id/winner`."""

    title = later("Choose as winner")

    @override
    def act(self, request: HttpRequest) -> None:
        name = request.POST.get("variant", "")
        try:
            notification_decide(**self._own, name=name)
            messages.success(
                request, gettext("The rest of the audience gets “%(name)s”.") % {"name": name}
            )
        except AlreadyDecided:
            messages.warning(
                request, gettext("The test was already decided for another variant: see below.")
            )
        except NotRunning:
            messages.warning(
                request, gettext("There is nothing to choose: the test has not begun, or is over.")
            )
        except NoTest:
            messages.warning(request, gettext("This notification has no test."))
        except Invalid:
            messages.warning(request, gettext("The notification has no such variant."))


class DuplicateAction(OneNotification):
    """Creates a draft with the content and audience of an earlier notification."""

    title = later("Duplicate")
    role = Role.WRITER
    http_method_names = ["post"]
    done = later("This draft is a copy of “{}”.")

    def form(self) -> ComposeForm:
        return ComposeForm.like(self.notification)

    def post(self, request: HttpRequest, **kwargs: Any) -> HttpResponse:
        form = self.form().stored()
        user = cast(User, request.user)
        try:
            draft = draft_create(channel=self.notification.channel, owner=user, form=form)
        except PushsvcError as error:
            messages.error(request, error.detail)
            own = "admin:notifications_app_notification_change"
            return HttpResponseRedirect(reverse(own, args=[self.notification.pk]))
        messages.success(request, self.done.format(self.notification))
        if Target.objects.of(self.notification.pk).filter(vars__isnull=False).exists():
            messages.warning(request, _VALUES_LEFT_OUT)
        return HttpResponseRedirect(compose_url(draft.pk))


class CorrectAction(DuplicateAction):
    """Creates a draft that corrects the notification, with its content without variants and
    their test."""

    title = later("Correct")
    done = later("This draft replaces “{}” where it was delivered, and reaches no other device.")

    @override
    def form(self) -> ComposeForm:
        copy = ComposeForm.like(self.notification)
        one = {
            name: value for name, value in copy.extras.items() if not name.startswith("variants.")
        }
        copy = replace(copy, segment_id="", tag="", rule="", ids="", extras=one, test_share="")
        return replace(copy, audience=CORRECTION, replaces=str(self.notification.pk))


class ResendAction(DuplicateAction):
    """Creates a draft with the same content for the recipients who did not click."""

    title = later("Send again")
    done = later(
        "This draft is a copy of “{}”, for those to whom it was delivered and who did not click."
    )

    @override
    def form(self) -> ComposeForm:
        rule = {"notification": str(self.notification.pk), "outcome": "not_clicked"}
        copy = ComposeForm.like(self.notification)
        return replace(copy, audience=RULE, rule=dumps(rule), segment_id="", tag="", ids="")


def _over(notification: Notification) -> str:
    """Why nothing was changed."""
    if notification.is_stopped or notification.status == NotificationStatus.CANCELLED:
        return gettext("It had already been stopped or cancelled.")
    return gettext("It had already ended: every recipient has an outcome.")


def _letters(name: str) -> str:
    """The name without white space, because a page shows several spaces as one, and its field has
    no line breaks."""
    return "".join(name.split())
