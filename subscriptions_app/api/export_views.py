"""The export of a channel's subscriptions, for programs with an API key."""

from typing import Any
from uuid import UUID

from django.http import HttpResponse
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request

from channels_app.audit import record_once_an_hour
from channels_app.http import ReadingView, own_channel, require_scope
from channels_app.models import Scope
from channels_app.selectors import ChannelNotFound
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
from subscriptions_app.devices.exporting import (
    ADDRESS_FIELDS,
    FIELDS,
    STATES,
    subscription_texts,
    subscriptions_page,
)
from subscriptions_app.devices.fields import Attributes


class ExportedKeysOutput(serializers.Serializer[Any]):
    """The keys of a browser, as it gave them."""

    p256dh = serializers.CharField(help_text="The browser's public key, base64url.")
    auth = serializers.CharField(help_text="The browser's secret of 16 bytes, base64url.")


class ExportedSubscriptionOutput(serializers.Serializer[Any]):
    """A row of the export of subscriptions."""  # documents what subscription_texts makes

    subscription_id = serializers.UUIDField(help_text="The subscription's id.")
    platform = serializers.ChoiceField(PLATFORM_VALUES, help_text="What it receives push by.")
    active = serializers.BooleanField(help_text="Whether it gets messages.")
    external_id = serializers.CharField(allow_null=True, help_text="The person, if it has one.")
    language = serializers.CharField(allow_null=True, help_text="BCP 47.")
    timezone = serializers.CharField(allow_null=True, help_text="An IANA name.")
    attributes = Attributes()
    tags = serializers.ListField(child=serializers.CharField(), help_text="In their order.")
    choices = serializers.DictField(
        child=serializers.BooleanField(),
        help_text="By category. A choice of the person counts before the device's.",
    )
    created_at = Timestamp(help_text="When it first subscribed.")
    last_seen_at = Timestamp(help_text="When it last subscribed.")
    expired_at = Timestamp(allow_null=True, help_text="When it ended.")
    expired_code = serializers.CharField(allow_null=True, help_text="Why it ended.")
    endpoint = serializers.CharField(
        required=False, help_text="Of a browser, with `include=address`."
    )
    keys = ExportedKeysOutput(required=False, help_text="Of a browser, with `include=address`.")
    vapid_public_key = serializers.CharField(
        required=False,
        allow_null=True,
        help_text="With which the browser subscribed, with `include=address`.",
    )
    provider_token = serializers.CharField(
        required=False, help_text="Of a phone, with `include=address`."
    )
    auth = serializers.CharField(
        required=False,
        allow_null=True,
        help_text="The secret of a phone that has one, with `include=address`.",
    )


class SubscriptionsExportView(ReadingView):
    permission_classes = (require_scope(Scope.SUBSCRIBERS),)

    @extend_schema(
        operation_id="export_subscriptions",
        summary="Export the channel's subscriptions",
        description="In the order of ids. Who is subscribed throughout is in exactly one page. The"
        " `Link` header has the address of the next page. An export that was interrupted continues"
        " with `after`. With `include=address`, a row is what `pushsvc_ndjson` of an import takes,"
        " and the audit log gets an entry, once an hour for each key. See docs/data.md.",
        tags=["subscriptions"],
        parameters=[
            *export_parameters(state=STATES),
            OpenApiParameter(
                "include", enum=["address"], description="Adds addresses and keys of the devices."
            ),
        ],
        responses=export_responses(ExportedSubscriptionOutput)
        | problem_responses(400, 401, MissingScope(Scope.SUBSCRIBERS), ChannelNotFound(), 429, 503),
    )
    def get(self, request: Request, channel_id: UUID) -> HttpResponse:
        channel = own_channel(request, channel_id)
        asked = export_page(request, state=STATES, include=("address",))
        with_address = asked.chosen["include"] is not None
        if with_address:
            record_once_an_hour(channel, "Subscriptions were exported with their addresses.")
        page = subscriptions_page(
            channel.pk, after=asked.after, limit=asked.limit, state=asked.chosen["state"]
        )
        texts = subscription_texts(page, with_address=with_address, is_csv=asked.is_csv)
        names = (*FIELDS, *ADDRESS_FIELDS) if with_address else FIELDS
        return export_response(request, asked, page, texts, names)
