"""Views of a channel's tags, for programs with an API key."""

from typing import Any, Final
from urllib.parse import urlencode
from uuid import UUID

from drf_spectacular.utils import OpenApiExample, OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from typing_extensions import override

from channels_app.http import KeyedView, own_channel
from channels_app.models import Scope
from channels_app.resources import Resource
from channels_app.selectors import recent_channel
from pushsvc.common.errors import FieldError, Invalid
from pushsvc.common.http.drf import django_request
from pushsvc.common.http.fields import Flag, Id, ListOf, StrictSerializer
from pushsvc.common.http.openapi import problem_responses
from pushsvc.common.http.origin import own_origin
from pushsvc.common.http.paging import PAGE_PARAMETERS, page_from
from pushsvc.common.ids import is_tag_start
from subscriptions_app.models import MAX_TAG
from subscriptions_app.people.fields import ExternalId
from subscriptions_app.tags.selectors import MOST_COUNTED, tags_page
from subscriptions_app.tags.services import (
    MAX_MEMBERS,
    MembersChanged,
    tag_delete,
    tag_members_change,
)

_ID: Final = "019aa2f0-5a3e-7c11-9f3a-3f0c6d1f7b52"
_GIVEN: Final = {"external_ids": ["user-42"], "subscription_ids": [_ID]}
_CHANGED: Final = {
    "devices": 3,
    "full": 0,
    "unknown": {"external_ids": [], "subscription_ids": []},
}
_LISTED: Final = {"tag": "team-7", "devices": MOST_COUNTED, "more": True}
_LIMIT, _, _LINK = PAGE_PARAMETERS


class MembersInput(StrictSerializer):
    """The devices that get the tag, or lose it."""

    external_ids = ListOf(
        ExternalId(),
        min_length=0,
        max_length=MAX_MEMBERS,
        default=list,
        help_text="Your ids of people. The change concerns all their current devices.",
    )
    subscription_ids = ListOf(
        Id(),
        min_length=0,
        max_length=MAX_MEMBERS,
        default=list,
        help_text="Ids that `POST /subscribe` returned.",
    )
    remove = Flag(default=False, help_text="Removes the tag.")

    @override
    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        number = len(attrs["external_ids"]) + len(attrs["subscription_ids"])
        if number == 0:
            raise serializers.ValidationError("Name at least one.", code="empty")
        if number > MAX_MEMBERS:
            detail = f"Must name at most {MAX_MEMBERS} in all."
            raise serializers.ValidationError(detail, code="too_many")
        return attrs


class UnknownMembers(serializers.Serializer[MembersChanged]):
    """Ids that the channel does not have. They are no error."""

    external_ids = serializers.ListField(
        source="missing_external_ids", child=serializers.CharField(), help_text="Of people."
    )
    subscription_ids = serializers.ListField(
        source="missing_subscription_ids", child=serializers.UUIDField(), help_text="Of devices."
    )


class MembersOutput(serializers.Serializer[MembersChanged]):
    """What was changed."""

    devices = serializers.IntegerField(
        help_text="Named devices that have the tag now, or no longer have it."
    )
    full = serializers.IntegerField(
        help_text="Named devices that did not get the tag, because they have 100."
    )
    unknown = UnknownMembers(source="*")


class TagOutput(serializers.Serializer[Any]):
    """A tag of the channel."""

    tag = serializers.CharField(help_text="As devices have it.")
    devices = serializers.IntegerField(
        help_text=f"Stored devices that have it, including expired ones; at most {MOST_COUNTED}."
    )
    more = serializers.BooleanField(help_text="Whether there are more devices than that.")


_TAG: Final = Resource(
    "tag",
    "tags",
    tag="tags",
    id_name="tag",
    id_field="tag",
    input=MembersInput,
    output=TagOutput,
    given=_GIVEN,
    shown=_LISTED,
    follow_ups=("change_tag_members", "delete_tag"),
    scope=Scope.SUBSCRIBERS,
)


class TagListView(KeyedView):
    permission_classes = _TAG.permissions

    @extend_schema(
        operation_id="list_tags",
        summary="List the channel's tags, in the order of their characters",
        description="The `Link` header holds the address of the next page.",
        tags=["tags"],
        parameters=[
            _LIMIT,
            OpenApiParameter("prefix", description="Only tags with this prefix."),
            OpenApiParameter("after", description="Only tags that follow this one."),
            _LINK,
        ],
        extensions=_TAG.links(200, "/0/tag"),
        responses={
            200: OpenApiResponse(
                TagOutput(many=True),
                "A page.",
                [OpenApiExample("Tags", _LISTED, response_only=True)],
            ),
            **problem_responses(400, *_TAG.refusals),
        },
    )
    def get(self, request: Request, channel_id: UUID) -> Response:
        channel = own_channel(request, channel_id)
        limit = page_from(request).limit
        bounds = {name: _bound(request, name) for name in ("prefix", "after")}
        found = tags_page(channel_id=channel.pk, limit=limit + 1, **bounds)
        shown = found[:limit]
        links = {}
        if len(found) > limit:
            links["Link"] = _next(request, limit, bounds["prefix"], after=shown[-1].tag)
        return Response(TagOutput(shown, many=True).data, headers=links)


class TagView(KeyedView):
    permission_classes = _TAG.permissions
    delete = _TAG.delete(
        lambda channel_id, tag: tag_delete(channel=recent_channel(channel_id), tag=tag),
        "Remove a tag from every device",
        "It is removed in steps, from at least 100,000 devices a minute, even from devices that get"
        " it meanwhile. After that, a second call returns 404.",
        status=202,
    )


class TagMembersView(KeyedView):
    permission_classes = _TAG.permissions

    @extend_schema(
        operation_id="change_tag_members",
        summary="Add a tag to devices, or remove it",
        description="Names people and devices, at most 1,000 together. Devices that a person adds"
        " later do not have the tag. Safe to repeat.",
        tags=["tags"],
        request=MembersInput,
        examples=[OpenApiExample("Followers", _GIVEN, request_only=True)],
        responses={
            200: OpenApiResponse(
                MembersOutput,
                "Changed.",
                [OpenApiExample("Changed", _CHANGED, response_only=True)],
            ),
            **problem_responses(400, *_TAG.refusals, 413, 415),
        },
    )
    def post(self, request: Request, channel_id: UUID, tag: str) -> Response:
        channel = own_channel(request, channel_id)
        given = MembersInput.checked(request.data)
        return Response(MembersOutput(tag_members_change(channel=channel, tag=tag, **given)).data)


def _bound(request: Request, name: str) -> str:
    text = request.query_params.get(name, "")
    if not is_tag_start(text):
        raise Invalid(
            [FieldError(name, "not_a_tag", f"Must be at most {MAX_TAG} characters of a tag.")]
        )
    return text


def _next(request: Request, limit: int, prefix: str, *, after: str) -> str:
    query = urlencode({"limit": limit, **({"prefix": prefix} if prefix else {}), "after": after})
    return f'<{own_origin(django_request(request))}{request.path}?{query}>; rel="next"'
