"""The page on which managers store and replace credentials. The secrets are never shown again.

The page that follows tests new credentials at once (notifications_app/admin/credentials.py).
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils.translation import gettext
from typing_extensions import override

from channels_app.admin.forms import ApnsForm, FcmForm
from channels_app.admin.tabs import TabPage
from channels_app.models import ProviderCredential, Role
from channels_app.selectors import channel_credentials
from channels_app.services import provider_credentials_store
from pushsvc.common.errors import FieldError, Invalid
from pushsvc.common.texts import later

_FORMS: dict[str, type[FcmForm | ApnsForm]] = {"android": FcmForm, "ios": ApnsForm}
_HEADINGS = {
    "android": later("Android (Firebase Cloud Messaging)"),
    "ios": later("iOS (Apple Push)"),
}
_APNS_FIELDS = ("key_id", "team_id", "topic", "environment")
_FACT_NAMES = {
    "project_id": later("Project"),
    "client_email": later("Service account"),
    "key_id": later("Key id"),
    "team_id": later("Team"),
    "topic": later("Topic"),
    "environment": later("Environment"),
}
# A service account has about 2,400 characters. A longer file is another kind of file.
_MOST_BYTES = 32 * 1024


def shown_facts(credential: ProviderCredential | None) -> list[tuple[str, str]]:
    """The parts of the credentials that are not secret, with their names, in a fixed order."""
    facts = credential.facts if credential else {}
    return [(title, facts[name]) for name, title in _FACT_NAMES.items() if name in facts]


class CredentialsPage(TabPage):
    title = later("Credentials")
    template_name = "console/channels/credentials.html"
    tab = "channel_credentials"
    post_role = Role.MANAGER

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        form = _given_form(request)
        if form.is_valid() and self._store(form):
            messages.success(
                request,
                gettext("The %(value)s credentials were stored.")
                % {"value": _HEADINGS[str(form.prefix)]},
            )
            own = reverse(f"admin:{self.tab}", args=[self.channel.pk])
            return HttpResponseRedirect(f"{own}?stored={form.prefix}")
        return self.render_to_response(self.get_context_data(refused=form), status=400)

    def _store(self, form: FcmForm | ApnsForm) -> bool:
        """Stores the credentials. Returns False if they were refused; the form shows the errors."""
        try:
            provider_credentials_store(channel=self.channel, **_arguments(form))
        except Invalid as error:
            error = Invalid(_shown_errors(error))
            form.add_errors(error, _field_names(error))
            return False
        return True

    @override
    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        stored = channel_credentials(self.channel.pk)
        refused = kwargs.get("refused")
        platforms = [
            {
                "name": name,
                "heading": _HEADINGS[name],
                "credential": stored.get(name),
                "facts": shown_facts(stored.get(name)),
                "is_new": self.request.GET.get("stored") == name and _is_unchecked(stored, name),
                "form": refused if isinstance(refused, kind) else _empty(kind, stored.get(name)),
            }
            for name, kind in _FORMS.items()
        ]
        return super().get_context_data(platforms=platforms, **kwargs)


def _is_unchecked(stored: Mapping[str, ProviderCredential], platform: str) -> bool:
    return platform in stored and stored[platform].checked_at is None


def _given_form(request: HttpRequest) -> FcmForm | ApnsForm:
    is_apns = any(name.startswith("ios-") for name in [*request.POST, *request.FILES])
    return _FORMS["ios" if is_apns else "android"](request.POST, request.FILES)


def _empty(kind: type[FcmForm | ApnsForm], stored: ProviderCredential | None) -> FcmForm | ApnsForm:
    initial = {"environment": "production"} | (stored.facts if stored else {})
    return kind(initial=initial)


def _arguments(form: FcmForm | ApnsForm) -> dict[str, Any]:
    """The arguments of `provider_credentials_store`."""
    text = _text(form)
    if isinstance(form, FcmForm):
        return {"fcm_service_account": text}
    entries = {name: form.cleaned_data[name].strip() for name in _APNS_FIELDS}
    return {"apns_key": text, "apns_entries": entries}


def _text(form: FcmForm | ApnsForm) -> str:
    file = form.cleaned_data["file"]
    if not file:
        return str(form.cleaned_data["text"])
    data = file.read(_MOST_BYTES)
    return str(data.decode(json.detect_encoding(data), "replace"))


def _shown_errors(error: Invalid) -> list[FieldError]:
    """The errors, each with the name of its entry in the pasted JSON. Missing entries are one
    error."""
    inside = {
        field_error: _entry(field_error) for field_error in error.errors if _entry(field_error)
    }
    missing = [name for field_error, name in inside.items() if field_error.code == "required"]
    shown = [
        replace(field_error, detail=f"{inside[field_error]}: {field_error.detail}")
        if field_error in inside
        else field_error
        for field_error in error.errors
        if field_error not in inside or field_error.code != "required"
    ]
    if missing:
        shown.insert(
            0,
            FieldError(
                "text",
                "required",
                gettext("Missing in the JSON: %(join)s.") % {"join": ", ".join(missing)},
            ),
        )
    return shown


def _entry(field_error: FieldError) -> str:
    """The name of the entry after `providers_config.fcm_service_account.` or the prefix for
    APNs."""
    return ".".join(field_error.attr.split(".")[2:])


def _field_names(error: Invalid) -> dict[str, str]:
    """The form's field for each path in the API's body. Most errors are in the text itself."""
    paths = {field_error.attr: "text" for field_error in error.errors}
    return paths | {f"providers_config.apns_{name}": name for name in _APNS_FIELDS}
