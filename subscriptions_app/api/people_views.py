"""Views of people and their devices, for programs with an API key."""

from typing import Any, Final
from uuid import UUID

from drf_spectacular.utils import OpenApiExample, OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from typing_extensions import override

from channels_app.http import KeyedView, own_channel, require_scope
from channels_app.models import Scope
from channels_app.selectors import ChannelNotFound
from pushsvc.common.errors import MissingScope
from pushsvc.common.http.fields import Id, ListOf, StrictSerializer
from pushsvc.common.http.openapi import problem_responses
from subscriptions_app.errors import TooManyDevices
from subscriptions_app.people.fields import ExternalId
from subscriptions_app.people.linking import MOST_LINKS, devices_link

_ID: Final = "019aa2f0-5a3e-7c11-9f3a-3f0c6d1f7b52"
_GIVEN: Final = {"links": [{"subscription_id": _ID, "external_id": "user-42"}]}


class LinkInput(StrictSerializer):
    """A device and its person."""

    subscription_id = Id(help_text="As `POST /subscribe` returned it.")
    external_id = ExternalId(allow_null=True, help_text="Your id of the user. null: nobody.")


class LinksInput(StrictSerializer):
    """Devices to link."""

    links = ListOf(LinkInput(), max_length=MOST_LINKS, help_text="Each device once.")

    @override
    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Returns the arguments of `devices_link`."""
        links = {link["subscription_id"]: link["external_id"] for link in attrs["links"]}
        if len(links) < len(attrs["links"]):
            error = serializers.ErrorDetail("A device is named twice.", code="given_twice")
            raise serializers.ValidationError({"links": [error]})
        return {"links": links}


class LinkedOutput(serializers.Serializer[Any]):
    """What was linked."""

    linked = serializers.IntegerField(
        source="count", help_text="Devices that are now linked as requested."
    )
    unknown = serializers.ListField(
        child=serializers.UUIDField(), help_text="Ids of no subscription of the channel."
    )


class PeopleDevicesView(KeyedView):
    permission_classes = (require_scope(Scope.SUBSCRIBERS),)

    @extend_schema(
        operation_id="link_devices",
        summary="Link devices to people",
        description="For backends that know the ids of subscriptions. It needs no"
        " `identity_token`, and works whatever the channel's setting `identity` is. All or none"
        " are linked, but unknown ids are no error.",
        tags=["people"],
        request=LinksInput,
        examples=[OpenApiExample("A device", _GIVEN, request_only=True)],
        responses={
            200: OpenApiResponse(
                LinkedOutput,
                "Linked.",
                [OpenApiExample("Linked", {"linked": 1, "unknown": []}, response_only=True)],
            ),
            **problem_responses(
                400,
                401,
                MissingScope(Scope.SUBSCRIBERS),
                ChannelNotFound(),
                TooManyDevices(),
                413,
                415,
                429,
                503,
            ),
        },
    )
    def post(self, request: Request, channel_id: UUID) -> Response:
        channel = own_channel(request, channel_id)
        linked = devices_link(channel=channel, **LinksInput.checked(request.data))
        return Response(LinkedOutput(linked).data)
