"""Decides which links the side bar shows, and which of them is current."""

from typing import Final

from django.http import HttpRequest
from django.urls import reverse

from channels_app.console.access import is_superuser, may_anywhere
from channels_app.models import Role

# Tabs of a channel whose pages belong to another app.
_TABS: Final = (
    "/notifications_app/notification/best-hours/",
    "/notifications_app/notification/templates/",
    "/subscriptions_app/subscription/test-devices/",
    "/subscriptions_app/subscription/tags/",
    "/subscriptions_app/subscription/categories/",
    "/subscriptions_app/subscription/identity/",
)


def shows_accounts(request: HttpRequest) -> bool:
    return may_anywhere(request.user, Role.OWNER)


def shows_channels(request: HttpRequest) -> bool:
    return may_anywhere(request.user, Role.VIEWER)


def shows_installation(request: HttpRequest) -> bool:
    return is_superuser(request.user)


def is_dashboard(request: HttpRequest) -> bool:
    """Whether this is the dashboard itself, because all pages are below its address."""
    return request.path == reverse("admin:index")


def is_notifications(request: HttpRequest) -> bool:
    """Whether this is a page about notifications or drafts."""
    return "/notifications_app/" in request.path and not _is_tab(request)


def is_channels(request: HttpRequest) -> bool:
    return "/channels_app/channel/" in request.path or _is_tab(request)


def is_subscribers(request: HttpRequest) -> bool:
    return "/subscriptions_app/subscription/" in request.path and not _is_tab(request)


def _is_tab(request: HttpRequest) -> bool:
    return any(tab in request.path for tab in _TABS)
