"""How the console looks and what its side bar leads to: settings for its theme (django-unfold).

Named by settings.py as data only; nothing here is imported before it is shown.
"""

from typing import Any

from django.templatetags.static import static
from django.urls import reverse_lazy


def _link(title: str, icon: str, url: str, **more: Any) -> dict[str, Any]:
    return {"title": title, "icon": icon, "link": reverse_lazy(f"admin:{url}"), **more}


NAVIGATION = [
    {
        "title": "",
        "items": [
            _link("Dashboard", "monitoring", "index"),
            _link("Notifications", "notifications", "notifications_app_notification_changelist"),
            _link("Channels", "hub", "channels_app_channel_changelist"),
            _link("Subscribers", "group", "subscriptions_app_subscription_changelist"),
        ],
    },
    {
        "title": "Administration",
        "separator": True,
        "items": [
            _link("Accounts", "domain", "channels_app_account_changelist"),
        ],
    },
]

THEME: dict[str, Any] = {
    "SITE_TITLE": "pushsvc",
    "SITE_HEADER": "pushsvc",
    "SITE_SUBHEADER": "Push notifications",
    "SITE_SYMBOL": "campaign",
    "SITE_URL": "/",
    "SHOW_HISTORY": False,
    "SHOW_BACK_BUTTON": True,
    "SHOW_VIEW_ON_SITE": False,
    "BORDER_RADIUS": "6px",
    "STYLES": [lambda _request: static("console/console.css")],
    "SCRIPTS": [lambda _request: static("console/console.js")],
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
