"""Public views for devices. X-Channel-ID names the channel."""

from functools import cached_property
from typing import Any, ClassVar

from django.conf import settings
from drf_spectacular.utils import OpenApiExample, OpenApiResponse, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from typing_extensions import override

from channels_app.http import ChannelIdMissing, channel_from_header
from channels_app.models import Channel
from channels_app.openapi import CHANNEL_ID_HEADER
from channels_app.selectors import ChannelDeleted, ChannelNotFound, refuse_deleted
from pushsvc.common.http.client_address import counted_address
from pushsvc.common.http.drf import ApiView, django_request
from pushsvc.common.http.openapi import follow_ups, problem_responses
from pushsvc.common.http.ratelimit import Limit, enforce
from pushsvc.common.platforms import Platform
from subscriptions_app.api.serializers import (
    DeviceInput,
    SubscribeInput,
    SubscriptionOutput,
    UnsubscribeOutput,
)
from subscriptions_app.devices.registration import subscription_register
from subscriptions_app.devices.services import subscription_unsubscribe
from subscriptions_app.errors import (
    EndpointRefused,
    IdentityOff,
    IdentityRefused,
    PlatformNotEnabled,
    SubscriptionsFull,
    TooManyDevices,
    VapidKeyUnknown,
)

BROWSER = {
    "endpoint": "https://updates.push.services.mozilla.com/wpush/v2/gAAAAABn",
    "keys": {
        "p256dh": "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyP"
        "js7Vd8pZGH6SRpkNtoIAiw4",
        "auth": "BTBZMqHH6r4Tts7J_aSIgg",
    },
    "attributes": {"plan": "pro", "visits": 3},
    "tags": ["team-7"],
}
_PHONE = {"platform": "ios", "provider_token": "00fc13adff785122b4ad28809a3420982341241421348097"}
_RESUBSCRIBE = (
    "The push service takes no message for this endpoint with the channel's key. Subscribe again."
)
_ID = "019aa2f0-5a3e-7c11-9f3a-3f0c6d1f7b52"


class DeviceView(ApiView):
    limit_name: ClassVar[str]
    serves_deleted: ClassVar[bool] = False  # also while the channel is being deleted

    @override
    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        if not self.serves_deleted:
            refuse_deleted(self.channel.deletion_asked_at)

    @cached_property
    def channel(self) -> Channel:
        return channel_from_header(self.request)

    @override
    def limit(self, request: Request) -> Limit | None:
        """The limit of the address. A channel with its own limit is counted separately. Unknown
        channels too, so that requests for them do not use up the limit of real channels."""
        address = counted_address(django_request(request))
        try:
            own = self.channel.subscribes_per_minute
        except ChannelNotFound:
            enforce(Limit("unknown-channels", address, settings.UNKNOWN_CHANNELS_PER_MINUTE, 60))
            raise
        if own is None:
            return Limit(self.limit_name, address, settings.SUBSCRIBES_PER_MINUTE, 60)
        return Limit(self.limit_name, f"{self.channel.id}:{address}", own, 60)


class SubscribeView(DeviceView):
    limit_name = "subscribes"

    @extend_schema(
        operation_id="subscribe",
        summary="Create or update a subscription",
        description="Call it at every visit. `attributes`, if given, replace the stored ones. If a"
        " browser's endpoint changed, send the old one as `previous_endpoint`, and prove that it"
        " was its own with `previous_auth` or `previous_subscription_id`. Then id, attributes, tags"
        " and history stay. Without proof, the result is a new subscription. The same is true for a"
        " known endpoint with another `auth`. `external_id` says whose device it is. A channel"
        " requires an `identity_token` when that changes, unless its setting `identity` is `trust`;"
        " see docs/identity.md.",
        tags=["subscriptions"],
        auth=[],
        parameters=[CHANNEL_ID_HEADER],
        request=SubscribeInput,
        extensions=follow_ups(
            201,
            "unsubscribe",
            body="$request.body",
            **{CHANNEL_ID_HEADER.name: f"$request.header.{CHANNEL_ID_HEADER.name}"},
        ),
        examples=[
            OpenApiExample("A browser", BROWSER, request_only=True),
            OpenApiExample("A phone", _PHONE, request_only=True),
        ],
        responses={
            201: OpenApiResponse(
                SubscriptionOutput,
                "The device is new.",
                [
                    OpenApiExample(
                        "New", {"message": "Subscription created.", "subscriptionId": _ID}
                    )
                ],
            ),
            200: OpenApiResponse(
                SubscriptionOutput,
                "The device is known. It is active now, even if it had expired, unless the"
                " response has `resubscribe`.",
                [
                    OpenApiExample(
                        "Known", {"message": "Subscription updated.", "subscriptionId": _ID}
                    ),
                    OpenApiExample(
                        "Made with another key",
                        {
                            "message": _RESUBSCRIBE,
                            "subscriptionId": _ID,
                            "resubscribe": "vapid_refused",
                        },
                    ),
                ],
            ),
            **problem_responses(
                400,
                ChannelIdMissing(),
                PlatformNotEnabled("platform", Platform.IOS),
                EndpointRefused("The endpoint must be an https URL."),
                VapidKeyUnknown(),
                IdentityOff(),
                IdentityRefused(),
                ChannelDeleted(),
                ChannelNotFound(),
                TooManyDevices(),
                413,
                415,
                429,
                503,
                SubscriptionsFull(),
            ),
        },
    )
    def post(self, request: Request) -> Response:
        given = SubscribeInput.checked(request.data)
        try:
            stored = subscription_register(channel=self.channel, **given)
        except IdentityRefused:
            count_refused(request)
            raise
        message = "Subscription created." if stored.is_new else "Subscription updated."
        body = {"message": message, "subscriptionId": str(stored.id)}
        if stored.resubscribe:
            body |= {"message": _RESUBSCRIBE, "resubscribe": stored.resubscribe}
        return Response(body, status=201 if stored.is_new else 200)


def count_refused(request: Request) -> None:
    """Counts a refused token. Raises 429 instead of 403 if the address sent too many of them."""
    address, quota = counted_address(django_request(request)), settings.REFUSED_TOKENS_PER_MINUTE
    enforce(Limit("refused-tokens", address, quota, 60))


class UnsubscribeView(DeviceView):
    limit_name = "unsubscribes"
    serves_deleted = True  # the deletion may be undone, and the device must not come back then

    @extend_schema(
        operation_id="unsubscribe",
        summary="End a subscription",
        description="The device gets no more messages, whether or not it was known.",
        tags=["subscriptions"],
        auth=[],
        parameters=[CHANNEL_ID_HEADER],
        request=DeviceInput,
        examples=[
            OpenApiExample("A browser", {"endpoint": BROWSER["endpoint"]}, request_only=True)
        ],
        responses={
            200: OpenApiResponse(
                UnsubscribeOutput,
                "The device is not subscribed.",
                [OpenApiExample("Done", {"message": "Unsubscribed."})],
            ),
            **problem_responses(400, ChannelIdMissing(), ChannelNotFound(), 413, 415, 429, 503),
        },
    )
    def post(self, request: Request) -> Response:
        subscription_unsubscribe(channel=self.channel, **DeviceInput.checked(request.data))
        return Response({"message": "Unsubscribed."})
