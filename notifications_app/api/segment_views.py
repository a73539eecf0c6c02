"""Views of segments, for programs with an API key.

They are in this app, because a segment that an unfinished notification targets cannot be deleted.
"""

from typing import Any, Final
from uuid import UUID

from drf_spectacular.utils import OpenApiExample

from channels_app.http import KeyedView
from channels_app.resources import Resource
from notifications_app.api.segment_serializers import SegmentInput, SegmentOutput, SizeOutput
from notifications_app.errors import SegmentInUse
from notifications_app.sends.services import segment_delete
from pushsvc.common.errors import FieldError, Invalid
from subscriptions_app.audiences.sizes import segment_size
from subscriptions_app.errors import NotificationNotFound, SegmentNameTaken, TooManySegments
from subscriptions_app.segments.selectors import segment_get, segment_page
from subscriptions_app.segments.services import segment_create, segment_update

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
_TIMES: Final = {
    "created_at": "2026-11-20T15:11:00.123Z",
    "updated_at": "2026-11-20T15:11:00.123Z",
}
_SEGMENT: Final = Resource(
    "segment",
    "segments",
    tag="segments",
    id_name="segment_id",
    id_field="segment_id",
    input=SegmentInput,
    output=SegmentOutput,
    given=_GIVEN,
    shown={"segment_id": _ID, **_GIVEN, **_TIMES},
    follow_ups=("get_segment", "update_segment", "get_segment_size", "delete_segment"),
)
_BAD_RULE: Final = (
    Invalid([FieldError("rule.all.1.not.operator", "not_a_choice", "Must be one of: eq, ne, in.")]),
    NotificationNotFound("rule", UUID(_ID)),
)


class SegmentListView(KeyedView):
    permission_classes = _SEGMENT.permissions
    get = _SEGMENT.list(segment_page, "List the channel's segments, newest first")
    post = _SEGMENT.create(
        segment_create,
        "Create a segment",
        "A segment is a name and a rule. A send names it in `segment_id`.",
        *_BAD_RULE,
        SegmentNameTaken(),
        TooManySegments("The channel has 1,000 segments. Delete one first."),
    )


class SegmentView(KeyedView):
    permission_classes = _SEGMENT.permissions
    get = _SEGMENT.read(
        segment_get, "Get a segment", "Its name and its rule, as they were stored last."
    )
    put = _SEGMENT.update(
        segment_update,
        "Replace a segment's name and rule",
        "Notifications that are `pending` use the new rule; notifications that are `processing`"
        " keep the old one.",
        *_BAD_RULE,
        SegmentNameTaken(),
    )
    delete = _SEGMENT.delete(
        segment_delete,
        "Delete a segment that no unfinished notification targets",
        "Finished notifications keep its id. A second call returns 404.",
        SegmentInUse(UUID(_ID), "pending"),
    )


class SegmentSizeView(KeyedView):
    permission_classes = _SEGMENT.permissions
    get = _SEGMENT.read(
        lambda **path: segment_size(segment_get(**path)),
        "Count the subscribers that a segment reaches now",
        "Exact up to 10,000; beyond that an estimate, as docs/segments.md explains.",
        part="size",
        output=SizeOutput,
        example=OpenApiExample("Exact", {"size": 1200, "estimated": False}, response_only=True),
    )
