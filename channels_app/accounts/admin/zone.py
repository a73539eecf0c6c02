"""The page on which a user chooses the time zone in which the console shows times."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.urls import reverse
from typing_extensions import override

from channels_app.console.pages import ConsolePage
from pushsvc.common.console.zones import choose_zone, chosen_zone
from pushsvc.common.timestamps import timezone_names


class ZonePage(ConsolePage):
    """The choice holds for this browser."""

    title = "Time zone"
    template_name = "console/accounts/zone.html"

    @override
    def check_access(self, request: HttpRequest, **kwargs: Any) -> None:
        """Every user has a time zone."""

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        messages.success(request, "Your time zone was saved.")
        response = HttpResponseRedirect(reverse("admin:time_zone"))
        choose_zone(response, request.POST.get("zone", ""))
        return response

    @override
    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        chosen = chosen_zone(self.request)
        return super().get_context_data(chosen=chosen, zones=timezone_names(), **kwargs)
