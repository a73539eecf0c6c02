"""A channel's API keys, shown once when they are issued, and its key pair for web push."""

from typing import Any
from uuid import UUID

from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404
from typing_extensions import override

from channels_app.admin.forms import KeyForm
from channels_app.admin.tabs import TabPage
from channels_app.console import require
from channels_app.models import ApiKey, Role, VapidKey
from channels_app.selectors import channel_api_keys, current_vapid_key
from channels_app.services import api_key_issue, api_key_revoke, vapid_key_rotate
from pushsvc.common.errors import Invalid
from pushsvc.sdk import snippet, worker_snippet


class KeysPage(TabPage):
    title = "API keys"
    template_name = "console/channels/keys.html"
    tab = "channel_keys"

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        require(self.may(Role.MANAGER), Role.MANAGER)
        form = KeyForm(request.POST)
        if not form.is_valid():
            return self.render_to_response(self.get_context_data(form=form), status=400)
        try:
            issued, text = api_key_issue(channel=self.channel, **form.cleaned_data)
        except Invalid as error:
            form.add_faults(error)
            return self.render_to_response(self.get_context_data(form=form), status=400)
        # Rendered at once and never again: a redirect would have to keep the text somewhere.
        answer = self.render_to_response(self.get_context_data(issued=issued, issued_text=text))
        answer.headers["Cache-Control"] = "no-store"
        return answer

    @override
    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        kwargs.setdefault("form", KeyForm())
        return super().get_context_data(keys=channel_api_keys(self.channel.pk), **kwargs)


class RevokePage(TabPage):
    """POST only."""

    title = "Revoke"
    tab = "channel_keys"
    role = Role.MANAGER
    http_method_names = ("post",)

    def post(self, request: HttpRequest, *args: Any, key_id: UUID, **kw: Any) -> HttpResponseBase:
        key = get_object_or_404(ApiKey, pk=key_id, channel=self.channel)
        api_key_revoke(api_key=key)
        return self.back(f"The key “{key}” is revoked: it is refused from now on.")


class VapidPage(TabPage):
    title = "Web push key"
    template_name = "console/channels/vapid.html"
    tab = "channel_vapid"

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        require(self.may(Role.MANAGER), Role.MANAGER)
        vapid_key_rotate(channel=self.channel)
        return self.back("Browsers subscribe with a new key from now on.")

    @override
    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        earlier = VapidKey.objects.filter(channel=self.channel, retired_at__isnull=False)
        return super().get_context_data(
            current=current_vapid_key(self.channel),
            retired=earlier.defer("private_key_encrypted").order_by("-retired_at")[:50],
            **kwargs,
        )


class SnippetPage(TabPage):
    title = "Add to a site"
    template_name = "console/channels/snippet.html"
    tab = "channel_snippet"

    @override
    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        base_url = settings.PUBLIC_BASE_URL or self.request.build_absolute_uri("/").rstrip("/")
        return super().get_context_data(
            base_url=base_url,
            page_snippet=snippet(base_url, self.channel.pk),
            worker_snippet=worker_snippet(base_url),
            **kwargs,
        )
