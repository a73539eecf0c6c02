"""Public views for devices. X-Channel-ID names the channel."""

from drf_spectacular.utils import OpenApiExample, OpenApiResponse, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from channels_app.http import ChannelIdMissing
from channels_app.openapi import CHANNEL_ID_HEADER
from channels_app.selectors import ChannelDeleted, ChannelNotFound
from pushsvc.common.http.openapi import follow_ups, problem_responses
from pushsvc.common.platforms import Platform
from subscriptions_app.api.serializers import (
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
from subscriptions_app.http import BROWSER, DeviceInput, DeviceView, count_refused

_PHONE = {"platform": "ios", "provider_token": "00fc13adff785122b4ad28809a3420982341241421348097"}
_RESUBSCRIBE = (
    "The push service takes no message for this endpoint with the channel's key. Subscribe again."
)
_ID = "019aa2f0-5a3e-7c11-9f3a-3f0c6d1f7b52"


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
