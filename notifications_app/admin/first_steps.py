"""What to do first in a new installation or channel."""

from typing import Any

from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext

from channels_app.console.access import may_anywhere
from channels_app.models import Channel, Role
from channels_app.selectors import ChannelTotals


def first_steps(
    request: HttpRequest, channel: Channel | None, totals: ChannelTotals
) -> list[dict[str, Any]]:
    """First steps of a new installation, or of the channel; empty when all are done."""
    has_subscribers, has_sent = totals.subscribers > 0, totals.notifications_sent > 0
    if has_subscribers and has_sent:
        return []
    compose = f"{reverse('admin:notification_compose')}?channel={channel.pk}" if channel else ""
    steps: list[dict[str, Any]] = [
        {
            "is_done": channel is not None,
            "title": gettext("Create a channel"),
            "text": gettext("It holds the subscribers of one site or app, and has its own keys."),
            "link": gettext("New channel"),
            "url": reverse("admin:channels_app_channel_add"),
            "role": Role.MANAGER,
        },
        {
            "is_done": has_subscribers,
            "title": gettext("Add it to your site"),
            "text": gettext(
                "Paste the snippet, open the site in a browser and allow notifications. That "
                "makes the first subscriber. Apps subscribe through the API."
            ),
            "link": gettext("The snippet"),
            "url": reverse("admin:channel_snippet", args=[channel.pk]) if channel else "",
            "role": Role.VIEWER,
        },
        {
            "is_done": has_sent,
            "title": gettext("Send a test"),
            "text": gettext("Send it to yourself first. The preview shows how it will look."),
            "link": gettext("Compose"),
            "url": compose,
            "role": Role.SENDER,
        },
    ]
    current = next(step for step in steps if not step["is_done"])
    for step in steps:
        step["is_next"] = step is current
        step["url"] = step["url"] if may_anywhere(request.user, step["role"]) else ""
    return steps
