"""The console's site: the context of all pages, and the first page."""

from typing import TYPE_CHECKING, Any

from django.contrib.admin import AdminSite
from django.http import HttpRequest
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.module_loading import import_string
from typing_extensions import override

from pushsvc.common.console import theme

if TYPE_CHECKING:  # the theme has no types
    ThemedSite = AdminSite
else:
    from unfold.sites import UnfoldAdminSite as ThemedSite


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
            "is_popup": False,
            "side_bar": _side_bar(request) if has_permission else [],
        }

    @override
    def index(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> TemplateResponse:
        """The dashboard."""
        request.current_app = self.name
        context = import_string(theme.DASHBOARD)(request, self.each_context(request))
        return TemplateResponse(request, "admin/index.html", context)


def _side_bar(request: HttpRequest) -> list[dict[str, Any]]:
    """The groups of links that the user may open."""
    return [
        {
            "title": group.title,
            "links": [_shown(link, request) for link in group.links if _is_shown(link, request)],
        }
        for group in theme.NAVIGATION
    ]


def _is_shown(link: theme.Link, request: HttpRequest) -> bool:
    return not link.shown or import_string(link.shown)(request)


def _shown(link: theme.Link, request: HttpRequest) -> dict[str, Any]:
    url = reverse(link.page)
    is_active = import_string(link.active)(request) if link.active else request.path.startswith(url)
    return {"title": link.title, "icon": link.icon, "url": url, "is_active": is_active}
