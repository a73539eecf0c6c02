"""Checks a channel's credentials. It is in this app because the check needs a transport."""

from typing import Any

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from typing_extensions import override

from channels_app.admin.tabs import TabPage
from channels_app.models import Role
from notifications_app.credential_check import CredentialCheck, credentials_check
from notifications_app.pipeline.targets import CredentialsMissing, CredentialsUnreadable
from pushsvc.common.platforms import Platform
from pushsvc.common.store.crypto import SecretUnreadable

_HEADLINES = {
    True: ("good", "The credentials are good: the push service accepted them."),
    False: ("bad", "The push service refused the credentials. Replace them."),
    None: ("warn", "The push service could not be reached. Try again in a minute."),
}


class CredentialTestPage(TabPage):
    """POST only, with `platform`. Answers htmx with a fragment, others with a page."""

    title = "Test credentials"
    tab = "channel_credentials"
    role = Role.MANAGER
    http_method_names = ("post",)

    @override
    def get_template_names(self) -> list[str]:
        is_fragment = self.request.headers.get("HX-Request")
        name = "credential_check" if is_fragment else "credential_check_page"
        return [f"console/channels/{name}.html"]

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        tone, headline, words = self._asked(request.POST.get("platform", ""))
        context = self.get_context_data(tone=tone, headline=headline, words=words)
        return self.render_to_response(context)

    def _asked(self, name: str) -> tuple[str, str, str]:
        if name not in {Platform.ANDROID, Platform.IOS}:
            return "bad", "Only Android and iOS have credentials.", ""
        try:
            check = credentials_check(channel_id=self.channel.pk, platform=Platform(name))
        except CredentialsMissing:
            return "bad", "No credentials are stored.", ""
        except (CredentialsUnreadable, SecretUnreadable):
            return "bad", "The stored credentials cannot be read. Store them again.", ""
        return (*_HEADLINES[check.is_good], _words(check))


def _words(check: CredentialCheck) -> str:
    return f"{check.code}: {check.detail}" if check.detail else check.code
