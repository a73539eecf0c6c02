"""Views of segments, for programs with an API key.

They are in this app, because a segment that an unfinished notification targets cannot be deleted.
"""

from typing import Any, Final
from uuid import UUID

from drf_spectacular.utils import OpenApiExample, OpenApiResponse, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from channels_app.http import KeyedView, own_channel, require_scope
from channels_app.models import Scope
from channels_app.selectors import ChannelNotFound
from notifications_app.api.segment_serializers import SegmentInput, SegmentOutput, SizeOutput
from notifications_app.errors import SegmentInUse
from notifications_app.sends.services import segment_delete
from pushsvc.common.errors import Fault, Invalid, MissingScope
from pushsvc.common.http.openapi import follow_ups, problem_responses
from pushsvc.common.http.paging import PAGE_DESCRIPTION, PAGE_PARAMETERS, read_page
from subscriptions_app.audiences.sizes import segment_size
from subscriptions_app.errors import NotificationNotFound, SegmentNameTaken, TooManySegments
from subscriptions_app.models import Segment
from subscriptions_app.segments import selectors
from subscriptions_app.segments.services import segment_create, segment_update

_TAG: Final = "segments"
_ID: Final = "019aa2f0-5a3e-7c11-9f3a-3f0c6d1f7b52"
_GIVEN: Final[dict[str, Any]] = {
    "name": "Pro, seen lately",
    "rule": {
        "all": [
            {"attribute": "plan", "operator": "eq", "value": "pro"},
            {"field": "last_seen_at", "operator": "gte", "value": {"days_ago": 30}},
        ]
    },
}
_SHOWN: Final = {
    "segment_id": _ID,
    **_GIVEN,
    "created_at": "2026-11-20T15:11:00.123Z",
    "updated_at": "2026-11-20T15:11:00.123Z",
}
_INPUT: Final = OpenApiExample("A segment", _GIVEN, request_only=True)
_OUTPUT: Final = OpenApiExample("A segment", _SHOWN, response_only=True)
_SIZE: Final = OpenApiExample("Exact", {"size": 1200, "estimated": False}, response_only=True)
_BAD_RULE: Final = Invalid(
    [Fault("rule.all.1.not.operator", "not_a_choice", "Must be one of: eq, ne, in.")]
)
_FOREIGN: Final = NotificationNotFound("rule", UUID(_ID))
_OF_ONE: Final = ("segment_read", "segment_update", "segment_size", "segment_delete")
_IN_CHANNEL: Final = {"channel_id": "$request.path.channel_id"}
_REFUSED: Final = (401, MissingScope(Scope.MANAGE), ChannelNotFound(), 429, 503)


class _SegmentsView(KeyedView):
    permission_classes = (require_scope(Scope.MANAGE),)


class SegmentListView(_SegmentsView):
    @extend_schema(
        operation_id="segment_list",
        summary="List the channel's segments, newest first",
        description=PAGE_DESCRIPTION,
        tags=[_TAG],
        parameters=PAGE_PARAMETERS,
        extensions=follow_ups(
            200, *_OF_ONE, segment_id="$response.body#/0/segment_id", **_IN_CHANNEL
        ),
        responses={
            200: OpenApiResponse(SegmentOutput(many=True), "A page.", [_OUTPUT]),
            **problem_responses(400, *_REFUSED),
        },
    )
    def get(self, request: Request, channel_id: UUID) -> Response:
        channel = own_channel(request, channel_id)
        found, links = read_page(request, selectors.segment_page, channel_id=channel.id)
        return Response([_shown(each) for each in found], headers=links)

    @extend_schema(
        operation_id="segment_create",
        summary="Create a segment",
        description="A segment is a name and a rule. A send names it in `segment_id`.",
        tags=[_TAG],
        request=SegmentInput,
        examples=[_INPUT],
        extensions=follow_ups(
            201, *_OF_ONE, segment_id="$response.body#/segment_id", **_IN_CHANNEL
        ),
        responses={
            201: OpenApiResponse(SegmentOutput, "Created.", [_OUTPUT]),
            **problem_responses(
                _BAD_RULE,
                _FOREIGN,
                *_REFUSED,
                SegmentNameTaken(),
                TooManySegments("The channel has 1,000 segments. Delete one first."),
                413,
                415,
            ),
        },
    )
    def post(self, request: Request, channel_id: UUID) -> Response:
        channel = own_channel(request, channel_id)
        segment = segment_create(channel=channel, **SegmentInput.checked(request.data))
        return Response(_shown(segment), status=201)


class SegmentView(_SegmentsView):
    @extend_schema(
        operation_id="segment_read",
        summary="Get a segment",
        description="Its name and its rule, as they were stored last.",
        tags=[_TAG],
        responses={
            200: OpenApiResponse(SegmentOutput, "The segment.", [_OUTPUT]),
            **problem_responses(404, *_REFUSED),
        },
    )
    def get(self, request: Request, channel_id: UUID, segment_id: UUID) -> Response:
        channel = own_channel(request, channel_id)
        segment = selectors.segment_get(channel_id=channel.id, segment_id=segment_id)
        return Response(_shown(segment))

    @extend_schema(
        operation_id="segment_update",
        summary="Replace a segment's name and rule",
        description="Notifications that are `pending` use the new rule; notifications that are"
        " `processing` keep the old one.",
        tags=[_TAG],
        request=SegmentInput,
        examples=[_INPUT],
        responses={
            200: OpenApiResponse(SegmentOutput, "Replaced.", [_OUTPUT]),
            **problem_responses(_BAD_RULE, _FOREIGN, 404, *_REFUSED, SegmentNameTaken(), 413, 415),
        },
    )
    def put(self, request: Request, channel_id: UUID, segment_id: UUID) -> Response:
        channel = own_channel(request, channel_id)
        segment = segment_update(
            channel_id=channel.id, segment_id=segment_id, **SegmentInput.checked(request.data)
        )
        return Response(_shown(segment))

    @extend_schema(
        operation_id="segment_delete",
        summary="Delete a segment that no unfinished notification targets",
        description="Finished notifications keep its id. A second call answers 404.",
        tags=[_TAG],
        responses={
            204: OpenApiResponse(description="Deleted."),
            **problem_responses(404, *_REFUSED, SegmentInUse(UUID(_ID), "pending")),
        },
    )
    def delete(self, request: Request, channel_id: UUID, segment_id: UUID) -> Response:
        channel = own_channel(request, channel_id)
        segment_delete(channel_id=channel.id, segment_id=segment_id)
        return Response(status=204)


class SegmentSizeView(_SegmentsView):
    @extend_schema(
        operation_id="segment_size",
        summary="Count the subscribers that a segment reaches now",
        description="Exact up to 10,000; beyond that an estimate, as docs/segments.md explains.",
        tags=[_TAG],
        responses={
            200: OpenApiResponse(SizeOutput, "On all platforms together.", [_SIZE]),
            **problem_responses(404, *_REFUSED),
        },
    )
    def get(self, request: Request, channel_id: UUID, segment_id: UUID) -> Response:
        channel = own_channel(request, channel_id)
        segment = selectors.segment_get(channel_id=channel.id, segment_id=segment_id)
        return Response(SizeOutput(segment_size(segment)).data)


def _shown(segment: Segment) -> dict[str, Any]:
    return dict(SegmentOutput(segment).data)
