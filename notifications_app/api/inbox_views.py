"""The public view of what a device or a person was sent."""

from typing import Any, ClassVar, Final

from drf_spectacular.utils import OpenApiExample, OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from channels_app.http import ChannelIdMissing
from channels_app.openapi import CHANNEL_ID_HEADER
from channels_app.selectors import ChannelDeleted, ChannelNotFound
from notifications_app.errors import InboxOff
from notifications_app.reporting.inbox import MOST_INBOX_DEVICES, InboxMessage, inbox_read
from pushsvc.common.http.fields import Id, StrictSerializer, Text, Timestamp, WholeNumber
from pushsvc.common.http.openapi import problem_responses
from subscriptions_app.devices.selectors import device_proven, devices_of_token
from subscriptions_app.errors import DeviceUnproven, IdentityOff, IdentityRefused
from subscriptions_app.http import (
    BROWSER,
    MAX_IDENTITY_TOKEN,
    DeviceView,
    ProvableInput,
    count_refused,
)

MAX_MESSAGES: Final = 50
_DEFAULT_MESSAGES: Final = 20
_SHOWN: Final = {
    "messages": [
        {
            "notification_id": "019aa2f0-5a3e-7c11-9f3a-3f0c6d1f7b52",
            "sent_at": "2026-11-20T15:11:00.123Z",
            "title": "Your order is on its way",
            "body": "It arrives tomorrow.",
            "url": "https://shop.example.com/orders/17",
            "icon": "",
            "image": "",
            "actions": [],
            "data": {"order": "17"},
            "received": False,
            "clicked": False,
            "dismissed": False,
            "token": "AZqi8Fo-fBGfOj8MbR97UgGaovBaPnwRnzo_DG0fe1NnQx2V0yqmT7b9y3bX5kAp",
        }
    ],
    "unread": 1,
}


def _limit() -> WholeNumber:
    return WholeNumber(
        min=1, max=MAX_MESSAGES, default=_DEFAULT_MESSAGES, help_text="The most messages."
    )


def _before() -> Id:
    return Id(required=False, help_text="The last `notification_id` of the page before.")


class PersonInboxInput(StrictSerializer):
    """A person, and which page. Undeclared fields are ignored, as for devices."""

    refuse_unknown = False

    identity_token = Text(min_length=1, max_length=MAX_IDENTITY_TOKEN)
    limit = _limit()
    before = _before()


class InboxInput(ProvableInput):
    """A device with its proof, or a person in its place, and which page. Undeclared fields are
    ignored, because browsers add their own, but a misspelling of a declared field is refused."""

    limit = _limit()
    before = _before()

    needs_proof = True
    of_person: ClassVar[type[StrictSerializer]] = PersonInboxInput


class InboxMessageOutput(serializers.Serializer[InboxMessage]):
    """A message as the device would show it now, in its language and with its values."""

    notification_id = serializers.UUIDField(help_text="The notification's id.")
    sent_at = Timestamp(help_text="When a push service took it, or when it was given up.")
    title = serializers.CharField(help_text="Empty: none.", source="content.title")
    body = serializers.CharField(source="content.body", help_text="Its text.")
    url = serializers.CharField(
        source="content.url", help_text="Empty: none. May be a path of the site."
    )
    icon = serializers.CharField(source="content.icon", help_text="Empty: none.")
    image = serializers.CharField(source="content.image", help_text="Empty: none.")
    actions = serializers.ListField(
        source="content.actions",
        child=serializers.DictField(child=serializers.CharField()),
        help_text="Its buttons: `id`, `title`, and `url` if it has one.",
    )
    data = serializers.DictField(  # type: ignore[assignment] # DRF removes it from the class
        source="content.data", child=serializers.CharField(), help_text="The sender's own."
    )
    received = serializers.BooleanField(
        source="is_received", help_text="Whether a device has reported that it arrived."
    )
    clicked = serializers.BooleanField(
        source="is_clicked", help_text="Whether a device has reported a click."
    )
    dismissed = serializers.BooleanField(
        source="is_dismissed", help_text="Whether a device has reported that it was dismissed."
    )
    token = serializers.CharField(
        help_text="For `POST /events`: `received` for a message that did not arrive, `clicked` when"
        " it is opened, `dismissed` to mark it as read."
    )


class InboxOutput(serializers.Serializer[Any]):
    """A page of messages, the newest first."""

    messages = InboxMessageOutput(many=True, help_text="The newest first.")
    unread = serializers.IntegerField(
        help_text="How many of all messages were neither clicked nor dismissed."
    )


class InboxView(DeviceView):
    limit_name = "inboxes"

    @extend_schema(
        operation_id="read_inbox",
        summary="List what a device or a person was sent",
        description="For an inbox in an app or on a site, and for its badge. It has what the"
        " device was sent within the channel's `inbox_days`, also what it missed, among the"
        " channel's newest 200 sends to many, the newest 200 that name the person, and the newest"
        " 200 that name the device. A device proves itself with its `keys` or `auth`; its address"
        " is no proof. With"
        " `identity_token` in place of a device it has what any of the person's 10 newest devices"
        " was sent. See docs/inbox.md.",
        tags=["subscriptions"],
        auth=[],
        parameters=[CHANNEL_ID_HEADER],
        request=InboxInput,
        examples=[
            OpenApiExample(
                "A browser",
                {"endpoint": BROWSER["endpoint"], "keys": BROWSER["keys"], "limit": 10},
                request_only=True,
            )
        ],
        responses={
            200: OpenApiResponse(
                InboxOutput, "The messages.", [OpenApiExample("One", _SHOWN, response_only=True)]
            ),
            **problem_responses(
                400,
                ChannelIdMissing(),
                IdentityOff(),
                DeviceUnproven(),
                IdentityRefused(),
                ChannelDeleted(),
                ChannelNotFound(),
                InboxOff(),
                413,
                415,
                429,
                503,
            ),
        },
    )
    def post(self, request: Request) -> Response:
        given = InboxInput.checked(request.data)
        page = {"limit": given["limit"], "before": given.get("before")}
        if token := given.get("identity_token"):
            try:
                devices = devices_of_token(self.channel, token, limit=MOST_INBOX_DEVICES)
            except IdentityRefused:
                count_refused(request)
                raise
        else:
            devices = [device_proven(self.channel.pk, given["address"], given["auth"])]
        return Response(InboxOutput(inbox_read(self.channel, devices, **page)).data)
