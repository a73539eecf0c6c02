"""A channel's API keys, its VAPID key, and the lines for a site."""

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponseRedirect, QueryDict
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404
from django.utils.translation import gettext
from typing_extensions import override

from channels_app.admin.forms import KeyForm
from channels_app.admin.tabs import TabPage
from channels_app.console.pages import FormPage
from channels_app.models import Role
from channels_app.selectors import (
    channel_api_keys,
    current_vapid_key,
    retired_vapid_keys,
)
from channels_app.services import (
    TooManyVapidKeys,
    api_key_issue,
    api_key_revoke,
    vapid_key_rotate,
)
from pushsvc.common.console.zones import reader_zone
from pushsvc.common.errors import Outdated
from pushsvc.common.http.origin import own_origin
from pushsvc.common.texts import later
from pushsvc.sdk import snippet, worker_snippet


class KeysPage(TabPage, FormPage):
    title = later("API keys")
    template_name = "console/channels/keys.html"
    tab = "channel_keys"
    post_role = Role.MANAGER
    form_class = KeyForm

    @override
    def make_form(self, data: QueryDict | None = None) -> KeyForm:
        return KeyForm.of(reader_zone(self.request).key, data)

    @override
    def accept(self, form: KeyForm) -> HttpResponseBase:
        issued, text = api_key_issue(channel=self.channel, **form.cleaned_data)
        return self.shown_once(issued=issued, issued_text=text)

    @override
    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(keys=channel_api_keys(self.channel.pk), **kwargs)


class RevokePage(TabPage):
    """POST only."""

    title = later("Revoke")
    tab = "channel_keys"
    role = Role.MANAGER
    http_method_names = ("post",)

    def post(self, request: HttpRequest, *args: Any, key_id: UUID, **kw: Any) -> HttpResponseBase:
        key = get_object_or_404(channel_api_keys(self.channel.pk), pk=key_id)
        api_key_revoke(api_key=key)
        return self.back(
            gettext("The key “%(key)s” was revoked. Requests with it are refused from now on.")
            % {"key": key}
        )


class VapidPage(TabPage):
    title = later("Web push key")
    template_name = "console/channels/vapid.html"
    tab = "channel_vapid"
    post_role = Role.MANAGER

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        try:
            vapid_key_rotate(channel=self.channel, seen=request.POST.get("key", ""))
        except Outdated:
            messages.warning(request, gettext("The key was rotated after you opened this page."))
            return HttpResponseRedirect(request.path)
        except TooManyVapidKeys as error:
            messages.error(request, error.detail)
            return HttpResponseRedirect(request.path)
        return self.back(gettext("Browsers now subscribe with a new key."))

    @override
    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(
            current=current_vapid_key(self.channel),
            retired=retired_vapid_keys(self.channel)[:50],
            **kwargs,
        )


class SnippetPage(TabPage):
    title = later("Add to a site")
    template_name = "console/channels/snippet.html"
    tab = "channel_snippet"

    @override
    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        base_url = own_origin(self.request)
        return super().get_context_data(
            base_url=base_url,
            page_snippet=snippet(base_url, self.channel.pk),
            worker_snippet=worker_snippet(base_url),
            **kwargs,
        )
