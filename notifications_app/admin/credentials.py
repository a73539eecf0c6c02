"""Checks a channel's credentials. It is in this app because the check needs a transport."""

from typing import Any

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.translation import gettext
from typing_extensions import override

from channels_app.admin.tabs import TabPage
from channels_app.models import Role
from channels_app.selectors import channel_credentials
from notifications_app.pipeline.credential_checks import credentials_check
from notifications_app.pipeline.destinations import CredentialsMissing, CredentialsUnreadable
from pushsvc.common.platforms import Platform
from pushsvc.common.store.crypto import SecretUnreadable
from pushsvc.common.texts import later


class CredentialCheckPage(TabPage):
    """POST only, with `platform`. Responds to htmx with a fragment, to others with a page."""

    title = later("Check credentials")
    tab = "channel_credentials"
    role = Role.MANAGER
    http_method_names = ("post",)

    @override
    def get_template_names(self) -> list[str]:
        is_fragment = self.request.headers.get("HX-Request")
        name = "credential_checked" if is_fragment else "credential_check_page"
        return [f"console/channels/{name}.html"]

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        name = request.POST.get("platform", "")
        headline = self._checked(name)
        credential = channel_credentials(self.channel.pk).get(name)
        context = self.get_context_data(headline=headline, credential=credential)
        return self.render_to_response(context)

    def _checked(self, name: str) -> str:
        """Checks the credentials. Returns why they cannot be checked, or ""."""
        if name not in {Platform.ANDROID, Platform.IOS}:
            return gettext("Only Android and iOS have credentials.")
        try:
            credentials_check(channel_id=self.channel.pk, platform=Platform(name))
        except CredentialsMissing:
            return gettext("No credentials are stored.")
        except (CredentialsUnreadable, SecretUnreadable):
            return gettext("The stored credentials cannot be read. Store them again.")
        return ""
