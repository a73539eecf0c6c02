"""The page on which a user chooses the language and the time zone of the console."""

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils import translation
from django.utils.translation import gettext
from typing_extensions import override

from channels_app.console.pages import ConsolePage
from channels_app.sign_in import mails
from pushsvc.common.console.languages import choose_language, chosen_language
from pushsvc.common.console.zones import choose_zone, chosen_zone
from pushsvc.common.texts import later
from pushsvc.common.timestamps import timezone_names


class ZonePage(ConsolePage):
    """The choices hold for this browser, and the language also for mails."""

    title = later("Language and time zone")
    template_name = "console/accounts/zone.html"

    @override
    def check_access(self, request: HttpRequest, **kwargs: Any) -> None:
        """Every user has a language and a time zone."""

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        response = HttpResponseRedirect(reverse("admin:time_zone"))
        choose_zone(response, request.POST.get("zone", ""))
        language = choose_language(request, response, request.POST.get("language", ""))
        mails.language_keep(user=self.staff, language=language)
        with translation.override(language):
            messages.success(request, gettext("Your choice was saved."))
        return response

    @override
    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(
            chosen=chosen_zone(self.request),
            zones=timezone_names(),
            language=chosen_language(self.request),
            languages=settings.LANGUAGES,
            **kwargs,
        )
