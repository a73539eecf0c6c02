"""Views of newsfeeds, for programs with an API key."""

from typing import Any, Final
from uuid import UUID

from drf_spectacular.utils import OpenApiExample, OpenApiResponse, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from channels_app.http import KeyedView, own_channel
from channels_app.models import Channel, Scope
from channels_app.resources import Resource
from notifications_app.api.newsfeed_serializers import (
    NewsfeedAsked,
    NewsfeedInput,
    NewsfeedOutput,
    NewsfeedPreview,
)
from notifications_app.content.values import SendRequest
from notifications_app.errors import (
    CategoryRequired,
    NotCombinable,
    PayloadTooLarge,
    SegmentNotFound,
    TemplateNotFound,
    TooManyNewsfeeds,
)
from notifications_app.models import Newsfeed
from notifications_app.sends.newsfeed_schema import read_newsfeed
from notifications_app.sends.newsfeeds import (
    MOST_NEWSFEEDS,
    newsfeed_check,
    newsfeed_create,
    newsfeed_delete,
    newsfeed_get,
    newsfeed_page,
    newsfeed_preview,
    newsfeed_update,
)
from notifications_app.sends.templates import with_template
from pushsvc.common.errors import FieldError, Invalid
from pushsvc.common.http.fields import errors_within
from pushsvc.common.http.openapi import problem_responses
from pushsvc.common.platforms import Platform
from subscriptions_app.errors import CategoryUnknown, PlatformNotEnabled

_GIVEN: Final[dict[str, Any]] = {
    "name": "News",
    "url": "https://example.com/feed/",
    "daily_limit": 5,
    "notification": {
        "title": "{{ entry.title }}",
        "body": "{{ entry.summary }}",
        "image": "{{ entry.image }}",
    },
}
_SHOWN: Final[dict[str, Any]] = {
    "newsfeed_id": "019aa2f0-5a3e-7c11-9f3a-3f0c6d1f7b52",
    **_GIVEN,
    "enabled": True,
    "every_minutes": 15,
    "notification": {**_GIVEN["notification"], "target_platforms": ["web"]},
    "next_check_at": "2026-12-03T08:15:00.000Z",
    "checked_at": "2026-12-03T08:00:00.000Z",
    "last_error": None,
    "failures": 0,
    "entries": 10,
    "sent_today": 1,
    "last_notification_id": "019aa2f0-7d11-7c11-9f3a-3f0c6d1f7b52",
    "disabled_code": None,
    "created_at": "2026-11-20T15:11:00.123Z",
    "updated_at": "2026-11-20T15:11:00.123Z",
}
_ENTRY: Final = {
    "title": "A new bridge",
    "summary": "It opens on Monday.",
    "link": "https://example.com/news/bridge",
    "image": "https://example.com/bridge.jpg",
    "author": "A. Writer",
    "categories": "City, Traffic",
    "published": "2026-12-03T07:58:00.000Z",
}
_PREVIEW: Final = {
    "checked_at": "2026-12-03T08:00:00.000Z",
    "last_error": None,
    "entry": _ENTRY,
    "notification": {
        "title": _ENTRY["title"],
        "body": _ENTRY["summary"],
        "url": _ENTRY["link"],
        "image": _ENTRY["image"],
    },
}
_NEWSFEED: Final = Resource(
    "newsfeed",
    "newsfeeds",
    tag="newsfeeds",
    id_name="newsfeed_id",
    id_field="newsfeed_id",
    input=NewsfeedInput,
    reader=NewsfeedAsked,
    output=NewsfeedOutput,
    given=_GIVEN,
    shown=_SHOWN,
    follow_ups=("get_newsfeed", "get_newsfeed_preview", "update_newsfeed", "delete_newsfeed"),
    scope=Scope.SEND,
)
_REFUSED: Final = (
    Invalid([FieldError("url", "endpoint_not_allowed", "The address must be an https URL.")]),
    PlatformNotEnabled("notification.target_platforms", Platform.IOS),
    SegmentNotFound(),
    TemplateNotFound(),
    CategoryUnknown("notification.category"),
    CategoryRequired(),
    NotCombinable("notification.rule", "A send has one audience. This one also names a segment."),
    PayloadTooLarge(Platform.WEB, 4100, 3993, "notification.target_platforms"),
)


def _read(channel_id: UUID, notification: Any) -> SendRequest:
    with errors_within("notification"):
        return read_newsfeed(with_template(channel_id, notification))


def _create(*, channel: Channel, notification: Any, **given: Any) -> Newsfeed:
    return newsfeed_create(channel=channel, send=_read(channel.pk, notification), **given)


def _update(*, channel_id: UUID, notification: Any, **given: Any) -> Newsfeed:
    send = _read(channel_id, notification)
    return newsfeed_update(channel_id=channel_id, send=send, **given)


class NewsfeedListView(KeyedView):
    permission_classes = _NEWSFEED.permissions
    get = _NEWSFEED.list(newsfeed_page, "List the channel's newsfeeds, newest first")
    post = _NEWSFEED.create(
        _create,
        "Create a newsfeed",
        "A newsfeed sends each new entry of an RSS or Atom feed. The first check sends nothing. See"
        " docs/newsfeeds.md.",
        *_REFUSED,
        TooManyNewsfeeds(f"The channel has {MOST_NEWSFEEDS} newsfeeds. Delete one first."),
    )


class NewsfeedView(KeyedView):
    permission_classes = _NEWSFEED.permissions
    get = _NEWSFEED.read(
        newsfeed_get, "Get a newsfeed", "What it checks and sends, and what became of it last."
    )
    put = _NEWSFEED.update(
        _update,
        "Replace a newsfeed",
        "With another `url`, and when it is enabled again, the next check sends nothing. Enables a"
        " newsfeed that the service disabled, unless `enabled` is false. Safe to repeat.",
        *_REFUSED,
    )
    delete = _NEWSFEED.delete(
        newsfeed_delete,
        "Delete a newsfeed",
        "It sends nothing more. Notifications that it sent stay. A second call returns 404.",
    )


class NewsfeedPreviewView(KeyedView):
    permission_classes = _NEWSFEED.permissions
    get = _NEWSFEED.read(
        newsfeed_preview,
        "Preview a newsfeed",
        "What it would send of the newest entry of its last check. Sends nothing.",
        part="preview",
        output=NewsfeedPreview,
        example=OpenApiExample("A preview", _PREVIEW, response_only=True),
    )


class NewsfeedCheckView(KeyedView):
    permission_classes = _NEWSFEED.permissions
    has_body = False

    @extend_schema(
        operation_id="check_newsfeed",
        summary="Check a newsfeed now",
        description="Makes the next check due now, or a minute after the last one.",
        tags=["newsfeeds"],
        request=None,
        responses={
            202: OpenApiResponse(
                NewsfeedOutput,
                "It will be checked.",
                [OpenApiExample("A newsfeed", _SHOWN, response_only=True)],
            ),
            **problem_responses(404, *_NEWSFEED.refusals),
        },
    )
    def post(self, request: Request, channel_id: UUID, newsfeed_id: UUID) -> Response:
        channel = own_channel(request, channel_id)
        checked = newsfeed_check(channel_id=channel.pk, newsfeed_id=newsfeed_id)
        return Response(NewsfeedOutput(checked).data, status=202)
