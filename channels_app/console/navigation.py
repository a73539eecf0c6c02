"""The links of the console's side bar: who sees each, and which is current."""

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from django.http import HttpRequest
from django.urls import reverse

from channels_app.console.access import is_superuser, may_anywhere
from channels_app.models import Role
from pushsvc.common.texts import later

# Tabs of a channel whose pages belong to another app.
_TABS: Final = (
    "/notifications_app/notification/automations/",
    "/notifications_app/notification/best-hours/",
    "/notifications_app/notification/delete-channel/",
    "/notifications_app/notification/delivery/",
    "/notifications_app/notification/images/",
    "/notifications_app/notification/newsfeeds/",
    "/notifications_app/notification/schedules/",
    "/notifications_app/notification/templates/",
    "/subscriptions_app/subscription/test-devices/",
    "/subscriptions_app/subscription/tags/",
    "/subscriptions_app/subscription/categories/",
    "/subscriptions_app/subscription/identity/",
)


class Link(NamedTuple):
    """`page`: the name of its URL. `is_shown`: whether the user sees it; by default all do.
    `is_current`: by default it is on all pages below its own."""

    title: str
    icon: str
    page: str
    is_shown: Callable[[HttpRequest], bool] | None = None
    is_current: Callable[[HttpRequest], bool] | None = None


def side_bar(request: HttpRequest) -> list[dict[str, Any]]:
    """The groups of links that the user may open."""
    return [
        {
            "title": title,
            "links": [
                _shown(link, request)
                for link in links
                if link.is_shown is None or link.is_shown(request)
            ],
        }
        for title, links in _GROUPS.items()
    ]


def _shown(link: Link, request: HttpRequest) -> dict[str, Any]:
    url = reverse(link.page)
    is_active = link.is_current(request) if link.is_current else request.path.startswith(url)
    return {"title": link.title, "icon": link.icon, "url": url, "is_active": is_active}


def _is_owner(request: HttpRequest) -> bool:
    return may_anywhere(request.user, Role.OWNER)


def _is_member(request: HttpRequest) -> bool:
    return may_anywhere(request.user, Role.VIEWER)


def _is_superuser(request: HttpRequest) -> bool:
    return is_superuser(request.user)


def _is_dashboard(request: HttpRequest) -> bool:
    """Whether this is the dashboard itself, because all pages are below its address."""
    return request.path == reverse("admin:index")


def _is_notifications(request: HttpRequest) -> bool:
    """Whether this is a page about notifications or drafts."""
    return "/notifications_app/" in request.path and not _is_tab(request)


def _is_channels(request: HttpRequest) -> bool:
    return "/channels_app/channel/" in request.path or _is_tab(request)


def _is_subscribers(request: HttpRequest) -> bool:
    return "/subscriptions_app/subscription/" in request.path and not _is_tab(request)


def _is_tab(request: HttpRequest) -> bool:
    return any(tab in request.path for tab in _TABS)


# By heading. The first group has none.
_GROUPS: Final[Mapping[str, tuple[Link, ...]]] = {
    "": (
        Link(later("Dashboard"), "monitoring", "admin:index", is_current=_is_dashboard),
        Link(
            later("Notifications"),
            "notifications",
            "admin:notifications_app_notification_changelist",
            _is_member,
            _is_notifications,
        ),
        Link(
            later("Channels"),
            "hub",
            "admin:channels_app_channel_changelist",
            _is_member,
            _is_channels,
        ),
        Link(
            later("Subscribers"),
            "group",
            "admin:subscriptions_app_subscription_changelist",
            _is_member,
            _is_subscribers,
        ),
        Link(later("People"), "person", "admin:subscriptions_app_person_changelist", _is_member),
        Link(
            later("Segments"),
            "filter_alt",
            "admin:subscriptions_app_segment_changelist",
            _is_member,
        ),
    ),
    later("Administration"): (
        Link(later("Accounts"), "domain", "admin:channels_app_account_changelist", _is_owner),
        Link(later("Users"), "badge", "admin:auth_user_changelist", _is_superuser),
        Link(
            later("Lock-outs"), "lock_clock", "admin:axes_accessattempt_changelist", _is_superuser
        ),
        Link(later("Audit log"), "history", "admin:auditlog_logentry_changelist", _is_member),
        Link(
            later("Periodic tasks"),
            "schedule",
            "admin:django_celery_beat_periodictask_changelist",
            _is_superuser,
        ),
        Link(later("Doctor"), "stethoscope", "doctor", _is_superuser),
    ),
}
