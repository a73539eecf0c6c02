"""How many devices and people a channel reaches, for programs with an API key."""

from typing import Any
from uuid import UUID

from drf_spectacular.utils import OpenApiExample, OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from channels_app.http import ReadingView, own_channel
from channels_app.selectors import ChannelNotFound, channel_totals
from pushsvc.common.errors import MissingScope
from pushsvc.common.http.openapi import problem_responses
from pushsvc.common.platforms import Platform

_EXAMPLE = {
    "devices": {"web": 5, "android": 2, "ios": 1},
    "people": 6,
    "anonymous_devices": 1,
}


class DeviceCountsOutput(serializers.Serializer[Any]):
    """Active subscriptions by platform."""

    web = serializers.IntegerField(help_text="Browsers.")
    android = serializers.IntegerField(help_text="Through FCM.")
    ios = serializers.IntegerField(help_text="Through APNs.")


class ChannelAudienceOutput(serializers.Serializer[Any]):
    """Whom the channel reaches."""

    devices = DeviceCountsOutput(help_text="Active subscriptions.")
    people = serializers.IntegerField(help_text="People with at least one active device.")
    anonymous_devices = serializers.IntegerField(help_text="Active devices that are nobody's.")


class AudienceView(ReadingView):
    @extend_schema(
        operation_id="get_channel_audience",
        summary="Count the channel's devices and people",
        description="Exact, and as of now.",
        tags=["people"],
        responses={
            200: OpenApiResponse(
                ChannelAudienceOutput, "The counts.", [OpenApiExample("Counts", value=_EXAMPLE)]
            ),
            **problem_responses(401, MissingScope("read"), ChannelNotFound(), 429, 503),
        },
    )
    def get(self, request: Request, channel_id: UUID) -> Response:
        totals = channel_totals(own_channel(request, channel_id).pk)
        values = {
            "devices": {each: getattr(totals, f"{each}_subscribers") for each in Platform},
            "people": totals.people,
            "anonymous_devices": totals.subscribers - totals.linked_devices,
        }
        return Response(ChannelAudienceOutput(values).data)
