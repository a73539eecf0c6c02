"""A subscriber's history of notifications, and the export of everything that is stored."""

from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse, JsonResponse
from typing_extensions import override

from channels_app import audit
from channels_app.models import Role
from notifications_app.reporting.stored_data import devices_data
from notifications_app.selectors import SubscriberDelivery, notification_page, subscriber_deliveries
from pushsvc.common.texts import later
from subscriptions_app.admin.subscriptions import SubscriberPage

_SHOWN = 50  # newest notifications of the channel that are searched
_TONES = {"delivered": "good", "bounced": "bad", "waiting": "busy"}


class HistoryPage(SubscriberPage):
    """A part of the subscriber's page."""

    title = later("History")
    template_name = "console/subscribers/history.html"

    @override
    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        found = subscriber_deliveries(self.subscription, notifications=_SHOWN)
        return {
            "deliveries": shown_deliveries(found),
            "looked_at": _SHOWN,
            **why_context(self.subscription.channel_id, str(self.subscription.pk)),
        }


def why_context(channel_id: UUID, who: str) -> dict[str, Any]:
    """The context of console/notifications/why.html for a person or a subscriber."""
    newest = notification_page(channel_id=channel_id, limit=_SHOWN, offset=0)
    return {"who": who, "notifications": newest, "channel_id": channel_id}


def shown_deliveries(found: list[SubscriberDelivery]) -> list[dict[str, Any]]:
    return [
        {
            "notification": each.notification,
            "delivery": each.delivery,
            "outcome": each.outcome,
            "tone": _TONES[each.outcome],
        }
        for each in found
    ]


class ExportPage(SubscriberPage):
    """A file with everything stored about the subscriber. The audit log records the export."""

    title = later("Export")
    role = Role.MANAGER

    @override
    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        audit.record(self.subscription, audit.Action.ACCESS, note="Everything known was exported.")
        (known,) = devices_data([self.subscription])
        return json_download(f"subscriber-{self.subscription.pk}.json", known)


def json_download(name: str, data: dict[str, Any]) -> HttpResponse:
    """A download with this file name. No cache keeps it."""
    headers = {
        "Content-Disposition": f'attachment; filename="{name}"',
        "Cache-Control": "no-store",
    }
    return JsonResponse(data, json_dumps_params={"indent": 2}, headers=headers)
