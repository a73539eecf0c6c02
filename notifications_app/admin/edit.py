"""Changes a notification before it is sent, or its content while it is paused."""

from collections.abc import Sequence
from typing import Any, Final

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext
from rest_framework.exceptions import ValidationError
from typing_extensions import override

from channels_app.console.pages import own_or_404
from channels_app.models import Role
from notifications_app.admin.compose.audience import audiences_of
from notifications_app.admin.compose.errors import FIELDS, field_of
from notifications_app.admin.compose.form import ComposeForm, is_edited, read_changes
from notifications_app.admin.compose.writing import content_and_audience_context
from notifications_app.admin.page import OneNotification
from notifications_app.errors import NotEditable, StillSending, TooManyPending
from notifications_app.models import Notification
from notifications_app.sends.editing import notification_edit
from pushsvc.common.errors import FieldError, Invalid, Outdated, TooManyRequests
from pushsvc.common.http.drf import errors_of
from pushsvc.common.texts import later

_OVER: Final = later("It could not be changed, because it is being sent or over.")


class EditPage(OneNotification):
    """The form of the compose page, with the fields that can still be changed."""

    title = later("Edit")
    role = Role.SENDER
    template_name = "console/notifications/edit.html"
    version: str  # the one that the user saw

    @override
    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        self.version = self.notification.edit_version
        return self._shown(ComposeForm.of(self.notification))

    def post(self, request: HttpRequest, **kwargs: Any) -> HttpResponse:
        form = ComposeForm.posted(request.POST)
        self.version = request.POST.get("version", "")
        if is_edited(request.POST):
            return self._shown(form)
        try:
            self._edit(form)
            messages.success(request, gettext("The notification is changed."))
        except Invalid as error:
            return self._shown(form, error.errors)
        except (StillSending, TooManyPending, TooManyRequests) as error:
            return self._shown(form, [FieldError("", error.code, error.detail)])
        except Outdated as error:
            self.notification = own_or_404(Notification, request, self.notification.pk)
            self.version = self.notification.edit_version
            if self._is_editable():
                return self._shown(form, [FieldError("", error.code, error.detail)])
            messages.warning(request, _OVER)
        except NotEditable:
            messages.warning(request, _OVER)
        page = reverse("admin:notifications_app_notification_change", args=[self.notification.pk])
        return HttpResponseRedirect(page)

    def _is_editable(self) -> bool:
        return self.notification.started_at is None or self.notification.is_paused

    def _edit(self, form: ComposeForm) -> None:
        """Raises what `notification_edit` raises, without DRF's ValidationError."""
        try:
            notification_edit(
                channel=self.channel,
                notification_id=self.notification.pk,
                changes=read_changes(form, self.notification),
                keeps_values=True,  # the form does not show them
                seen=self.version,
            )
        except ValidationError as error:
            raise Invalid(errors_of(error)) from error

    def _shown(self, form: ComposeForm, errors: Sequence[FieldError] = ()) -> HttpResponse:
        context = self.get_context_data(
            notification=self.notification,
            version=self.version,
            has_field_errors=any(field_of(each) in FIELDS for each in errors),
            is_started=self.notification.started_at is not None,
            must_have_segment=self.notification.segment_id is not None,
            kind=self.notification.audience_kind,
            audiences=audiences_of(self.notification.audience_kind),
            **content_and_audience_context(self.channel, form, errors, self.request),
        )
        return self.render_to_response(context, status=400 if errors else 200)
