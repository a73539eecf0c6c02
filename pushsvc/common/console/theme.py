"""Settings of the console's theme (django-unfold): its look, and the links of its side bar.

settings.py uses only this data. What the data names is imported when it is shown.
"""

from typing import Any

from django.templatetags.static import static
from django.urls import reverse_lazy


def _link(title: str, icon: str, url: str, **more: Any) -> dict[str, Any]:
    return {"title": title, "icon": icon, "link": reverse_lazy(f"admin:{url}"), **more}


_SUPERUSERS = "channels_app.console.navigation.shows_installation"
_MEMBERS = "channels_app.console.navigation.shows_channels"
NAVIGATION = [
    {
        "title": "",
        "items": [
            _link("Dashboard", "monitoring", "index"),
            _link(
                "Notifications",
                "notifications",
                "notifications_app_notification_changelist",
                permission=_MEMBERS,
                active="channels_app.console.navigation.is_notifications",
            ),
            _link(
                "Channels",
                "hub",
                "channels_app_channel_changelist",
                permission=_MEMBERS,
                active="channels_app.console.navigation.is_channels",
            ),
            _link(
                "Subscribers",
                "group",
                "subscriptions_app_subscription_changelist",
                permission=_MEMBERS,
                active="channels_app.console.navigation.is_subscribers",
            ),
            _link(
                "People",
                "person",
                "subscriptions_app_person_changelist",
                permission=_MEMBERS,
            ),
            _link(
                "Segments",
                "filter_alt",
                "subscriptions_app_segment_changelist",
                permission=_MEMBERS,
            ),
        ],
    },
    {
        "title": "Administration",
        "separator": True,
        "items": [
            _link(
                "Accounts",
                "domain",
                "channels_app_account_changelist",
                permission="channels_app.console.navigation.shows_accounts",
            ),
            _link("Users", "badge", "auth_user_changelist", permission=_SUPERUSERS),
            _link(
                "Lock-outs", "lock_clock", "axes_accessattempt_changelist", permission=_SUPERUSERS
            ),
            _link(
                "Audit log",
                "history",
                "auditlog_logentry_changelist",
                permission=_MEMBERS,
            ),
            _link(
                "Periodic tasks",
                "schedule",
                "django_celery_beat_periodictask_changelist",
                permission=_SUPERUSERS,
            ),
            {
                "title": "Doctor",
                "icon": "stethoscope",
                "link": reverse_lazy("doctor"),
                "permission": _SUPERUSERS,
            },
        ],
    },
]

THEME: dict[str, Any] = {
    "SITE_TITLE": "pushsvc",
    "SITE_HEADER": "pushsvc",
    "SITE_SUBHEADER": "Push notifications",
    "SITE_SYMBOL": "campaign",
    "SITE_URL": "/",
    "SITE_FAVICONS": [
        {
            "rel": "icon",
            "type": "image/svg+xml",
            "href": lambda _request: static("console/icon.svg"),
        }
    ],
    "LOGIN": {"form": "channels_app.sign_in.console.ConsoleSignInForm"},
    "ACCOUNT": {
        "navigation": [
            {"title": "Change password", "link": reverse_lazy("admin:password_change")},
            {"title": "Two-step sign-in", "link": reverse_lazy("admin:two_step")},
        ],
    },
    "DASHBOARD_CALLBACK": "notifications_app.admin.dashboard.dashboard_context",
    "SHOW_HISTORY": False,
    "SHOW_BACK_BUTTON": True,
    "SHOW_VIEW_ON_SITE": False,
    "BORDER_RADIUS": "6px",
    "STYLES": [lambda _request: static("console/console.css")],
    "SCRIPTS": [
        lambda _request: static("console/console.js"),
        lambda _request: static("console/times.js"),
    ],
    "COLORS": {
        "primary": {
            "50": "oklch(97% .014 254.6)",
            "100": "oklch(93.2% .032 255.6)",
            "200": "oklch(88.2% .059 254.1)",
            "300": "oklch(80.9% .105 251.8)",
            "400": "oklch(70.7% .165 254.6)",
            "500": "oklch(62.3% .214 259.8)",
            "600": "oklch(54.6% .245 262.9)",
            "700": "oklch(48.8% .243 264.4)",
            "800": "oklch(42.4% .199 265.6)",
            "900": "oklch(37.9% .146 265.5)",
            "950": "oklch(28.2% .091 267.9)",
        },
    },
    "SIDEBAR": {"show_search": False, "navigation": NAVIGATION},
}
