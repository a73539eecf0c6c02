"""A channel's delivery settings, for programs with an API key."""

from typing import Any, Final
from uuid import UUID

from drf_spectacular.utils import (
    OpenApiExample,
    OpenApiResponse,
    extend_schema,
    extend_schema_field,
)
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from channels_app.http import KeyedView, own_channel, own_channel_now, require_scope
from channels_app.models import MAX_INBOX_DAYS, Channel, Scope
from channels_app.selectors import ChannelNotFound
from notifications_app.sends.delivery_settings import (
    MAX_CAP_HOURS,
    MAX_CAP_LIMIT,
    MOST_CAPS,
    delivery_settings_replace,
)
from notifications_app.sends.schema import MAX_RATE, QuietTimes
from pushsvc.common.errors import FieldError, Invalid, MissingScope
from pushsvc.common.http.fields import Flag, ListOf, StrictSerializer, WholeNumber
from pushsvc.common.http.openapi import problem_responses
from pushsvc.common.timestamps import NOT_A_TIMEZONE
from subscriptions_app.devices.fields import TimeZone

_EXAMPLE: Final = {
    "timezone": "Europe/Berlin",
    "rate_per_minute": 5000,
    "category_required": False,
    "quiet_hours": {"from": "22:00", "to": "08:00"},
    "inbox_days": 7,
    "caps": [{"limit": 3, "hours": 24}],
}
_SHOWN: Final = OpenApiExample("Delivery settings", _EXAMPLE, response_only=True)
_REFUSED: Final = (401, MissingScope(Scope.MANAGE), ChannelNotFound(), 429, 503)
_UNKNOWN_ZONE: Final = Invalid([FieldError("timezone", "not_a_timezone", NOT_A_TIMEZONE)])


class CapInput(StrictSerializer):
    """How many sends of the channel may contact a person in any time of this length."""

    limit = WholeNumber(min=1, max=MAX_CAP_LIMIT, help_text="Sends.")
    hours = WholeNumber(min=1, max=MAX_CAP_HOURS, help_text="Within so many hours.")


class DeliverySettingsInput(StrictSerializer):
    """All delivery settings of a channel. A setting that is not given gets its default."""

    timezone = TimeZone(
        min_length=1,
        max_length=64,
        default="UTC",
        help_text="An IANA name: the time zone of subscribers whose own is unknown.",
    )
    rate_per_minute = WholeNumber(
        min=1,
        max=MAX_RATE,
        default=None,
        help_text="Recipients a minute of a send that has no `rate_per_minute`, from its start on."
        " null: as fast as possible.",
    )
    category_required = Flag(
        default=False,
        help_text="Whether a send to the whole channel, a segment or a rule must name a category.",
    )
    quiet_hours = QuietTimes(
        default=None,
        allow_null=True,
        help_text="When nobody is sent anything, unless the send says otherwise. Null: never.",
    )
    inbox_days = WholeNumber(
        min=0,
        max=MAX_INBOX_DAYS,
        default=0,
        help_text="For how many days devices can list what they were sent (`POST /inbox`). 0: they"
        " cannot.",
    )
    caps = ListOf(
        CapInput(),
        min_length=0,
        max_length=MOST_CAPS,
        default=list,
        help_text="How many sends may contact a person, or a device without one. Who had enough is"
        " skipped. See docs/caps.md.",
    )


class DeliverySettingsOutput(serializers.Serializer[Any]):
    """A channel's delivery settings."""

    timezone = serializers.CharField(
        help_text="An IANA name: the time zone of subscribers whose own is unknown."
    )
    rate_per_minute = serializers.IntegerField(
        allow_null=True,
        help_text="Recipients a minute of a send that has no `rate_per_minute`; null: as fast as"
        " possible.",
    )
    category_required = serializers.BooleanField(
        help_text="Whether a send to the whole channel, a segment or a rule must name a category."
    )
    quiet_hours = serializers.DictField(
        child=serializers.CharField(),
        allow_null=True,
        help_text="From and to when nobody is sent anything, by the clock where the device is.",
    )
    inbox_days = serializers.IntegerField(
        help_text="For how many days devices can list what they were sent. 0: they cannot."
    )
    caps = serializers.SerializerMethodField(
        help_text="How many sends may contact a person; empty: any number."
    )

    @extend_schema_field(CapInput(many=True))
    def get_caps(self, channel: Channel) -> list[dict[str, int]]:
        return channel.caps or []


class DeliverySettingsView(KeyedView):
    permission_classes = (require_scope(Scope.MANAGE),)

    @extend_schema(
        operation_id="get_delivery_settings",
        summary="Get the channel's delivery settings",
        description="What sends use unless they say otherwise.",
        tags=["channel"],
        responses={
            200: OpenApiResponse(DeliverySettingsOutput, "The settings.", [_SHOWN]),
            **problem_responses(*_REFUSED),
        },
    )
    def get(self, request: Request, channel_id: UUID) -> Response:
        return Response(DeliverySettingsOutput(own_channel_now(request, channel_id)).data)

    @extend_schema(
        operation_id="update_delivery_settings",
        summary="Replace the channel's delivery settings",
        description="Replaces all of them: a setting that is not given gets its default. Safe to"
        " repeat.",
        tags=["channel"],
        request=DeliverySettingsInput,
        responses={
            200: OpenApiResponse(DeliverySettingsOutput, "Replaced.", [_SHOWN]),
            **problem_responses(_UNKNOWN_ZONE, *_REFUSED, 413, 415),
        },
        examples=[OpenApiExample("Delivery settings", _EXAMPLE, request_only=True)],
    )
    def put(self, request: Request, channel_id: UUID) -> Response:
        channel = own_channel(request, channel_id)
        given = DeliverySettingsInput.checked(request.data)
        replaced = delivery_settings_replace(channel_id=channel.pk, **given)
        return Response(DeliverySettingsOutput(replaced).data)
