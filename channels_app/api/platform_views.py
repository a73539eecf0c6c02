"""The state of a channel's platforms, for programs with an API key."""

from typing import Any
from uuid import UUID

from drf_spectacular.utils import OpenApiExample, OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from channels_app.http import ReadingView, own_channel_now
from channels_app.models import Channel, ProviderCredential
from channels_app.selectors import (
    ChannelNotFound,
    channel_credentials,
    channel_totals,
    current_vapid_key,
)
from pushsvc.common.errors import MissingScope
from pushsvc.common.http.fields import Timestamp
from pushsvc.common.http.openapi import problem_responses
from pushsvc.common.platforms import Platform

# The fact that names each platform's credentials, and the kind of the credentials.
_NAMED_BY = {
    Platform.ANDROID: ("fcm_service_account", "project_id"),
    Platform.IOS: ("apns_key", "key_id"),
}
_EXAMPLE = {
    "platforms": {
        "web": {
            "enabled": True,
            "subscriber_count": 1200,
            "paused": None,
            "credential": {
                "kind": "vapid_key",
                "id": "BDd3_hVL9fZi9Ybo2UUzA284WG5FZR30_95YeZJsiApwXKpNcF1rRPF3foIiBHXRdJI2Qhumhf6"
                "_LFTeZaNndIo",
            },
        },
        "android": {
            "enabled": True,
            "subscriber_count": 340,
            "paused": {
                "code": "permission_denied",
                "detail": "The caller does not have permission",
                "since": "2026-11-20T15:11:00.123Z",
                "retried_at": "2026-11-20T15:32:02.017Z",
                "retry_at": "2026-11-20T16:02:02.017Z",
            },
            "credential": {"kind": "fcm_service_account", "id": "alices-shop"},
        },
        "ios": {"enabled": False, "subscriber_count": 0, "paused": None, "credential": None},
    }
}


class PauseOutput(serializers.Serializer[Any]):
    """Why a platform is paused."""

    code = serializers.CharField(help_text="Why the push service refused the credentials.")
    detail = serializers.CharField(help_text="The push service's response; may be empty.")
    since = Timestamp(help_text="When they were refused.")
    retried_at = Timestamp(
        allow_null=True,
        help_text="The last retry with one recipient; null: not yet.",
    )
    retry_at = Timestamp(
        help_text="The next retry. Sending resumes automatically once the push service accepts."
    )


class CredentialOutput(serializers.Serializer[Any]):
    """Which credential a platform uses; never a secret."""

    kind = serializers.ChoiceField(
        ["vapid_key", "fcm_service_account", "apns_key"], help_text="Depends on the platform."
    )
    id = serializers.CharField(
        help_text="The public key (`vapid_key`), the project id (`fcm_service_account`) or the key"
        " id (`apns_key`). Never a secret."
    )


class PlatformStateOutput(serializers.Serializer[Any]):
    """One platform of a channel."""

    enabled = serializers.BooleanField(help_text="Whether sends may target the platform.")
    subscriber_count = serializers.IntegerField(help_text="Active subscriptions.")
    paused = PauseOutput(
        allow_null=True,
        help_text="Set while recipients wait because the credentials were refused; else null.",
    )
    credential = CredentialOutput(
        allow_null=True, help_text="What sends use; null if nothing is stored."
    )


class PlatformStatesOutput(serializers.Serializer[Any]):
    """The platforms of a channel."""

    web = PlatformStateOutput(help_text="Browsers.")
    android = PlatformStateOutput(help_text="Through FCM.")
    ios = PlatformStateOutput(help_text="Through APNs.")


class ChannelPlatformsOutput(serializers.Serializer[Any]):
    """The state of each platform of a channel."""

    platforms = PlatformStatesOutput(help_text="Every platform, enabled or not.")


class PlatformsView(ReadingView):
    @extend_schema(
        operation_id="get_channel_platforms",
        summary="Get the state of the channel's platforms",
        description="For each platform: whether it is enabled, how many subscribers it has, whether"
        " sending is paused because the push service refused the credentials, and which credentials"
        " it uses.",
        tags=["channel"],
        responses={
            200: OpenApiResponse(
                ChannelPlatformsOutput,
                "The platforms.",
                [OpenApiExample("Platforms", value=_EXAMPLE, response_only=True)],
            ),
            **problem_responses(401, MissingScope("read"), ChannelNotFound(), 429, 503),
        },
    )
    def get(self, request: Request, channel_id: UUID) -> Response:
        return Response(_platforms(own_channel_now(request, channel_id)))


def _platforms(channel: Channel) -> dict[str, Any]:
    totals, stored = channel_totals(channel.id), channel_credentials(channel.id)
    credentials = {name: _credential(row) for name, row in stored.items()}
    credentials[Platform.WEB] = {"kind": "vapid_key", "id": current_vapid_key(channel).public_key}
    platforms = {
        platform: {
            "enabled": channel.platforms[platform],
            "subscriber_count": getattr(totals, f"{platform}_subscribers"),
            "paused": _pause(stored.get(platform)),
            "credential": credentials.get(platform),
        }
        for platform in Platform
    }
    return dict(ChannelPlatformsOutput({"platforms": platforms}).data)


def _credential(row: ProviderCredential) -> dict[str, str]:
    kind, name = _NAMED_BY[Platform(row.platform)]
    return {"kind": kind, "id": row.facts[name]}


def _pause(row: ProviderCredential | None) -> dict[str, Any] | None:
    if row is None or row.tries is None:
        return None
    return {
        "code": row.paused_code,
        "detail": row.paused_detail,
        "since": row.paused_at,
        "retried_at": row.tries.last_at,
        "retry_at": row.tries.next_at,
    }
