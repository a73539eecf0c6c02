"""A subscriber's history of notifications, and the export of everything that is stored."""

from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from typing_extensions import override

from channels_app import audit
from channels_app.models import Role
from notifications_app.selectors import SubscriberDelivery, subscriber_deliveries
from pushsvc.common.timestamps import format_timestamp
from subscriptions_app.admin.subscriptions import SubscriberPage
from subscriptions_app.models import Subscription

_SHOWN = 50  # newest notifications of the channel that are looked through
_EXPORTED = 10_000
_TONES = {"delivered": "good", "bounced": "bad", "waiting": "busy"}


class HistoryPage(SubscriberPage):
    """A part of the subscriber's page."""

    title = "History"
    template_name = "console/subscribers/history.html"

    @override
    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        found = subscriber_deliveries(self.subscription, notifications=_SHOWN)
        deliveries = [
            {
                "notification": each.notification,
                "delivery": each.delivery,
                "outcome": each.outcome,
                "tone": _TONES[each.outcome],
            }
            for each in found
        ]
        return {"deliveries": deliveries, "looked_at": _SHOWN}


class ExportPage(SubscriberPage):
    """A file for the person whom it concerns. The export is recorded in the audit log."""

    title = "Export"
    role = Role.MANAGER

    @override
    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        deliveries = subscriber_deliveries(self.subscription, notifications=_EXPORTED)
        audit.record(self.subscription, audit.Action.ACCESS, note="Everything known was exported.")
        answer = JsonResponse(
            _known(self.subscription, deliveries), json_dumps_params={"indent": 2}
        )
        name = f"subscriber-{self.subscription.pk}.json"
        answer.headers["Content-Disposition"] = f'attachment; filename="{name}"'
        answer.headers["Cache-Control"] = "no-store"
        return answer


def _known(subscription: Subscription, deliveries: list[SubscriberDelivery]) -> dict[str, Any]:
    times = ("created_at", "registered_at", "expired_at")
    texts = ("platform", "address", "p256dh", "auth", "push_service", "expired_code")
    return {
        "subscription_id": str(subscription.pk),
        "channel_id": str(subscription.channel_id),
        **{name: getattr(subscription, name) for name in texts},
        "attributes": subscription.attributes,
        **{name: _moment(getattr(subscription, name)) for name in times},
        "deliveries": [
            {
                "notification_id": str(each.notification.pk),
                "title": each.notification.title,
                "body": each.notification.body,
                "outcome": each.outcome,
                "code": each.delivery.code,
                "finished_at": _moment(each.delivery.finished_at),
                "clicked_at": _moment(each.delivery.clicked_at),
            }
            for each in deliveries
        ],
    }


def _moment(moment: Any) -> str | None:
    return format_timestamp(moment) if moment else None
