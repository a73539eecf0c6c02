"""The export of a notification's deliveries, for programs with an API key."""

from typing import Any
from uuid import UUID

from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request

from channels_app.http import ReadingView, key_of, require_scope
from channels_app.models import Scope
from notifications_app.reporting.deliveries import FIELDS, deliveries_page, delivery_texts
from notifications_app.selectors import OUTCOMES, notification_get
from pushsvc.common.errors import MissingScope
from pushsvc.common.http.exports import (
    export_page,
    export_parameters,
    export_response,
    export_responses,
)
from pushsvc.common.http.fields import Timestamp
from pushsvc.common.http.openapi import problem_responses
from pushsvc.common.platforms import PLATFORM_VALUES

_OUTCOMES = list(OUTCOMES.values())


class ExportedDeliveryOutput(serializers.Serializer[Any]):
    """A row of the export of deliveries."""  # documents what delivery_texts makes

    subscription_id = serializers.UUIDField(help_text="The subscription's id.")
    external_id = serializers.CharField(
        allow_null=True, help_text="The person whose the device is now."
    )
    platform = serializers.ChoiceField(PLATFORM_VALUES, help_text="What it receives push by.")
    outcome = serializers.ChoiceField(_OUTCOMES, help_text="What became of the message.")
    code = serializers.CharField(allow_null=True, help_text="Why it bounced, or why it waits.")
    detail = serializers.CharField(allow_null=True, help_text="What the push service responded.")
    attempts = serializers.IntegerField(help_text="How often it was sent to the push service.")
    action = serializers.CharField(
        allow_null=True, help_text="The id of the button that was clicked first."
    )
    finished_at = Timestamp(allow_null=True, help_text="When the outcome was known.")
    received_at = Timestamp(allow_null=True, help_text="When the device reported it.")
    clicked_at = Timestamp(allow_null=True, help_text="When the device reported it.")
    dismissed_at = Timestamp(allow_null=True, help_text="When the device reported it.")


class DeliveriesExportView(ReadingView):
    permission_classes = (require_scope(Scope.SUBSCRIBERS),)

    @extend_schema(
        operation_id="export_deliveries",
        summary="Export a notification's deliveries",
        description="A row for each recipient, in the order of ids, as long as deliveries are kept."
        " The `Link` header has the address of the next page. With `outcome`, a page"
        " reads at most 5,000 recipients, so it can be empty although a `Link` follows. See"
        " docs/data.md.",
        tags=["notifications"],
        parameters=export_parameters(outcome=_OUTCOMES),
        responses=export_responses(ExportedDeliveryOutput)
        | problem_responses(400, 401, MissingScope(Scope.SUBSCRIBERS), 404, 429, 503),
    )
    def get(self, request: Request, notification_id: UUID) -> HttpResponse:
        channel_id = key_of(request).channel_id
        notification = notification_get(channel_id=channel_id, notification_id=notification_id)
        asked = export_page(request, outcome=_OUTCOMES)
        page = deliveries_page(
            notification.pk, after=asked.after, limit=asked.limit, outcome=asked.chosen["outcome"]
        )
        texts = delivery_texts(notification, page, is_csv=asked.is_csv)
        return export_response(request, asked, page, texts, FIELDS)
