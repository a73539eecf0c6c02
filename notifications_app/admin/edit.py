"""Changes the texts of a notification before it is sent, or while it is paused."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from rest_framework.exceptions import ValidationError
from typing_extensions import override

from channels_app.models import Role
from notifications_app.admin.compose import faults_by_field
from notifications_app.admin.page import OneNotification
from notifications_app.editing import notification_edit
from notifications_app.errors import NotEditable, StillSending
from pushsvc.common.errors import BadRequest, Fault, Invalid
from pushsvc.common.http.drf import faults_of
from pushsvc.common.http.strict_json import check_text

# With their labels, in the order of the form.
_TEXTS: Final[Mapping[str, str]] = {
    "title": "Title",
    "body": "Text",
    "url": "Opens",
    "icon": "Icon",
    "image": "Large image",
}


class EditPage(OneNotification):
    """A form with the texts. Everything else stays as it is."""

    title = "Edit"
    role = Role.SENDER
    template_name = "console/notifications/edit.html"

    @override
    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        return self._shown({name: getattr(self.notification, name) for name in _TEXTS})

    def post(self, request: HttpRequest, **kwargs: Any) -> HttpResponse:
        texts = {name: request.POST.get(name, "").replace("\r\n", "\n") for name in _TEXTS}
        try:
            self._edit(texts)
            messages.success(request, "The notification is changed.")
        except Invalid as error:
            return self._shown(texts, error.faults)
        except StillSending as error:
            return self._shown(texts, [Fault("", error.code, error.detail)])
        except NotEditable:
            messages.warning(request, "It could not be changed, because it is being sent or over.")
        page = reverse("admin:notifications_app_notification_change", args=[self.notification.pk])
        return HttpResponseRedirect(page)

    def _edit(self, texts: Mapping[str, str]) -> None:
        """Raises Invalid, also for what the API's JSON cannot hold."""
        try:
            check_text("".join(texts.values()))
            notification_edit(
                channel=self.channel,
                notification_id=self.notification.pk,
                changes={name: text or None for name, text in texts.items()},
            )
        except BadRequest as error:
            raise Invalid([Fault("", error.code, error.detail)]) from error
        except ValidationError as error:
            raise Invalid(faults_of(error)) from error

    def _shown(self, texts: Mapping[str, str], faults: Sequence[Fault] = ()) -> HttpResponse:
        found = faults_by_field(faults)
        context = self.get_context_data(
            notification=self.notification,
            fields=[(name, _TEXTS[name], texts[name], found.pop(name, [])) for name in _TEXTS],
            general_faults=[detail for details in found.values() for detail in details],
        )
        return self.render_to_response(context, status=400 if faults else 200)
