"""Settings of the console's theme (django-unfold), and the links of the console's side bar.

Only data. The named functions are imported when they are needed.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

THEME: Final[Mapping[str, Any]] = {
    "LOGIN": {"form": "channels_app.sign_in.console.ConsoleSignInForm"},
}

# The function that creates the context of the first page.
DASHBOARD: Final = "notifications_app.admin.dashboard.dashboard_context"


class Link(NamedTuple):
    """A link of the side bar. `page`: the name of its URL.

    `shown`: the name of a function that decides whether the user sees the link; by default all do.
    `active`: the name of a function that decides whether it is current; by default it is on all
    pages below its own.
    """

    title: str
    icon: str
    page: str
    shown: str = ""
    active: str = ""


class Group(NamedTuple):
    """Links under a heading. The first group has none."""

    title: str
    links: tuple[Link, ...]


_SUPERUSERS = "channels_app.console.navigation.shows_installation"
_MEMBERS = "channels_app.console.navigation.shows_channels"
_OWNERS = "channels_app.console.navigation.shows_accounts"
NAVIGATION: Final = (
    Group(
        "",
        (
            Link(
                "Dashboard",
                "monitoring",
                "admin:index",
                active="channels_app.console.navigation.is_dashboard",
            ),
            Link(
                "Notifications",
                "notifications",
                "admin:notifications_app_notification_changelist",
                _MEMBERS,
                "channels_app.console.navigation.is_notifications",
            ),
            Link(
                "Channels",
                "hub",
                "admin:channels_app_channel_changelist",
                _MEMBERS,
                "channels_app.console.navigation.is_channels",
            ),
            Link(
                "Subscribers",
                "group",
                "admin:subscriptions_app_subscription_changelist",
                _MEMBERS,
                "channels_app.console.navigation.is_subscribers",
            ),
            Link("People", "person", "admin:subscriptions_app_person_changelist", _MEMBERS),
            Link("Segments", "filter_alt", "admin:subscriptions_app_segment_changelist", _MEMBERS),
        ),
    ),
    Group(
        "Administration",
        (
            Link("Accounts", "domain", "admin:channels_app_account_changelist", _OWNERS),
            Link("Users", "badge", "admin:auth_user_changelist", _SUPERUSERS),
            Link("Lock-outs", "lock_clock", "admin:axes_accessattempt_changelist", _SUPERUSERS),
            Link("Audit log", "history", "admin:auditlog_logentry_changelist", _MEMBERS),
            Link(
                "Periodic tasks",
                "schedule",
                "admin:django_celery_beat_periodictask_changelist",
                _SUPERUSERS,
            ),
            Link("Doctor", "stethoscope", "doctor", _SUPERUSERS),
        ),
    ),
)
