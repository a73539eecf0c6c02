"""A channel over HTTP: its statistics, provider credentials and public VAPID key."""

from uuid import UUID

from django.conf import settings
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from typing_extensions import override

from channels_app.api.serializers import (
    ChannelStatisticsOutput,
    MessageOutput,
    ProvidersInput,
    WebPushKeyOutput,
    channel_statistics,
)
from channels_app.http import (
    ChannelIdMissing,
    KeyedView,
    ReadingView,
    channel_from_header,
    own_channel,
    own_channel_now,
    require_scope,
)
from channels_app.openapi import CHANNEL_ID_HEADER
from channels_app.selectors import (
    ChannelDeleted,
    ChannelNotFound,
    channel_totals,
    current_vapid_key,
    refuse_deleted,
    retired_vapid_keys,
)
from channels_app.services import provider_credentials_store
from pushsvc.common.errors import FieldError, Invalid, MissingScope
from pushsvc.common.http.client_address import counted_address
from pushsvc.common.http.drf import ApiView, django_request
from pushsvc.common.http.openapi import problem_responses
from pushsvc.common.http.ratelimit import Limit

_STATISTICS = {
    "channel_info": {
        "channel_id": "0193a1b2-7c3d-7e4f-8a5b-6c7d8e9f0a1b",
        "name": "Alice's shop",
        "created_at": "2026-11-20T15:11:00.123Z",
        "platforms": {"web": True, "android": True, "ios": False},
    },
    "subscriber_count": 1200,
    "notification_stats": {
        "total_notifications_sent": 12,
        "total_recipients": 13400,
        "total_delivered": 13100,
        "total_bounced": 290,
        "total_clicked": 870,
    },
}
_PROVIDERS = {
    "providers_config": {
        "fcm_service_account": '{"project_id": "alices-shop", "client_email": "…", …}',
        "apns_key": "-----BEGIN PRIVATE KEY-----\n…\n-----END PRIVATE KEY-----\n",
        "apns_key_id": "ABC123DEFG",
        "apns_team_id": "DEF123GHIJ",
        "apns_topic": "com.example.shop",
        "apns_environment": "production",
    }
}
_PUBLIC_KEY = (
    "BDd3_hVL9fZi9Ybo2UUzA284WG5FZR30_95YeZJsiApwXKpNcF1rRPF3foIiBHXRdJI2Qhumhf6_LFTeZaNndIo"
)
_MISSPELT = Invalid(
    [FieldError("providers_config.apns_kye", "unknown_field", "There is no such field.")]
)


class ChannelView(ReadingView):
    @extend_schema(
        operation_id="get_channel_statistics",
        summary="Get channel statistics",
        description="Counts are exact and as of now.",
        tags=["channel"],
        responses={200: ChannelStatisticsOutput}
        | problem_responses(401, MissingScope("read"), ChannelNotFound(), 429, 503),
        examples=[OpenApiExample("A channel", value=_STATISTICS, response_only=True)],
    )
    def get(self, request: Request, channel_id: UUID) -> Response:
        channel = own_channel_now(request, channel_id)
        return Response(channel_statistics(channel, channel_totals(channel.id)))


class ProvidersView(KeyedView):
    permission_classes = (require_scope("manage"),)

    @extend_schema(
        operation_id="update_provider_credentials",
        summary="Update provider credentials",
        description="Give at least one of the two. A platform that is not given does not change.",
        tags=["channel"],
        request=ProvidersInput,
        responses={200: MessageOutput}
        | problem_responses(
            _MISSPELT, 401, MissingScope("manage"), ChannelNotFound(), 413, 415, 429, 503
        ),
        examples=[
            OpenApiExample("Both platforms", value=_PROVIDERS, request_only=True),
            OpenApiExample(
                "Updated",
                value={"message": "The provider configuration was updated."},
                response_only=True,
                status_codes=["200"],
            ),
        ],
    )
    def put(self, request: Request, channel_id: UUID) -> Response:
        channel = own_channel(request, channel_id)
        given = ProvidersInput.checked(request.data)["providers_config"]
        provider_credentials_store(channel=channel, **given)
        return Response({"message": "The provider configuration was updated."})


class WebPushKeyView(ApiView):
    """Public, because browsers need the key before they can subscribe."""

    @override
    def limit(self, request: Request) -> Limit | None:
        address = counted_address(django_request(request))
        return Limit("web-push-keys", address, settings.WEB_PUSH_KEYS_PER_MINUTE, 60)

    @extend_schema(
        operation_id="get_web_push_key",
        summary="Get the channel's public key for web push",
        tags=["subscriptions"],
        auth=[],
        parameters=[CHANNEL_ID_HEADER],
        responses={200: WebPushKeyOutput}
        | problem_responses(ChannelIdMissing(), ChannelDeleted(), ChannelNotFound(), 429, 503),
        examples=[
            OpenApiExample(
                "A key",
                value={"public_key": _PUBLIC_KEY, "retired_keys": []},
                response_only=True,
                status_codes=["200"],
            )
        ],
    )
    def get(self, request: Request) -> Response:
        channel = channel_from_header(request)
        refuse_deleted(channel.deletion_asked_at)
        return Response(
            {
                "public_key": current_vapid_key(channel).public_key,
                "retired_keys": [key.public_key for key in retired_vapid_keys(channel)],
            }
        )
