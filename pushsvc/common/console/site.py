"""The console's site: the context of all pages, and the first page."""

from typing import TYPE_CHECKING, Any, Final

from django.contrib.admin import AdminSite
from django.http import HttpRequest, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.module_loading import import_string
from typing_extensions import override

from pushsvc.common.console.zones import chosen_zone, reader_zone

if TYPE_CHECKING:  # the theme has no types
    ThemedSite = AdminSite
else:
    from unfold.sites import UnfoldAdminSite as ThemedSite

# Functions of apps, which are loaded later than the site.
_DASHBOARD: Final = "notifications_app.admin.dashboard.dashboard_context"
_SIDE_BAR: Final = "channels_app.console.navigation.side_bar"


class ConsoleSite(ThemedSite):
    site_title = "pushsvc"

    @override
    def each_context(self, request: HttpRequest) -> dict[str, Any]:
        """The context that the console's templates need. The theme's version reads its settings
        about thirty times for each page, and checks the user's permissions for every model."""
        has_permission = self.has_permission(request)
        return {
            "site_title": self.site_title,
            "site_url": "/",
            "has_permission": has_permission,
            "reader_zone": reader_zone(request).key,
            "is_zone_chosen": bool(chosen_zone(request)),
            "is_popup": False,
            "side_bar": import_string(_SIDE_BAR)(request) if has_permission else [],
        }

    @override
    def app_index(  # type: ignore[override] # any response will do
        self, request: HttpRequest, app_label: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponseRedirect:
        """Redirects to the dashboard: the side bar replaces Django's lists of models."""
        return HttpResponseRedirect(reverse("admin:index"))

    @override
    def index(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> TemplateResponse:
        """The dashboard."""
        request.current_app = self.name
        context = import_string(_DASHBOARD)(request, self.each_context(request))
        return TemplateResponse(request, "admin/index.html", context)
