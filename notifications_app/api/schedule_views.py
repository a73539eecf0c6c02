"""Views of schedules, for programs with an API key."""

from collections.abc import Callable
from functools import partial
from typing import Any, Final
from uuid import UUID

from drf_spectacular.utils import OpenApiExample, OpenApiResponse, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from channels_app.http import KeyedView, own_channel
from channels_app.models import Channel, Scope
from channels_app.resources import Resource
from notifications_app.api.schedule_serializers import (
    OccurrenceOutput,
    ScheduleAsked,
    ScheduleInput,
    ScheduleOutput,
)
from notifications_app.content.values import SendRequest
from notifications_app.errors import (
    CategoryRequired,
    IdempotencyKeyInFlight,
    IdempotencyKeyInvalid,
    IdempotencyKeyReused,
    NeverHappens,
    NotCombinable,
    PayloadTooLarge,
    SegmentNotFound,
    TemplateNotFound,
    TooManySchedules,
)
from notifications_app.models import Schedule
from notifications_app.sends.idempotency import IDEMPOTENCY_PARAMETER, idempotency_key, once
from notifications_app.sends.schedules import (
    MAX_SCHEDULES,
    occurrence_page,
    schedule_create,
    schedule_delete,
    schedule_get,
    schedule_page,
    schedule_update,
)
from notifications_app.sends.schema import read_scheduled
from notifications_app.sends.templates import with_template
from pushsvc.common.errors import FieldError, Invalid
from pushsvc.common.http.fields import errors_within
from pushsvc.common.http.openapi import problem_responses
from pushsvc.common.http.paging import PAGE_DESCRIPTION, PAGE_PARAMETERS, read_page
from pushsvc.common.platforms import Platform
from subscriptions_app.errors import CategoryUnknown, PlatformNotEnabled

_ID: Final = "019aa2f0-5a3e-7c11-9f3a-3f0c6d1f7b52"
_GIVEN: Final[dict[str, Any]] = {
    "name": "Digest",
    "notification": {"title": "Your week", "body": "What you missed.", "category": "news"},
    "recurrence": {
        "rule": "FREQ=WEEKLY;BYDAY=MO,TH",
        "at": ["09:00"],
        "timezone": "Europe/Berlin",
        "starts_on": "2026-12-01",
    },
}
_SHOWN: Final[dict[str, Any]] = {
    "schedule_id": _ID,
    "name": "Digest",
    "enabled": True,
    "notification": {**_GIVEN["notification"], "target_platforms": ["web"]},
    "recurrence": {**_GIVEN["recurrence"], "ends_on": None, "count": None},
    "next_at": "2026-12-03T08:00:00.000Z",
    "last_notification_id": None,
    "disabled_code": None,
    "created_at": "2026-11-20T15:11:00.123Z",
    "updated_at": "2026-11-20T15:11:00.123Z",
}
_OCCURRENCE: Final = {
    "occurs_at": "2026-12-07T08:00:00.000Z",
    "notification_id": "019aa2f0-7d11-7c11-9f3a-3f0c6d1f7b52",
    "code": "sent",
}
_SCHEDULE: Final = Resource(
    "schedule",
    "schedules",
    tag="schedules",
    id_name="schedule_id",
    id_field="schedule_id",
    input=ScheduleInput,
    reader=ScheduleAsked,
    output=ScheduleOutput,
    given=_GIVEN,
    shown=_SHOWN,
    follow_ups=("get_schedule", "update_schedule", "list_occurrences", "delete_schedule"),
    scope=Scope.SEND,
)
_REFUSED: Final = (
    Invalid([FieldError("recurrence.rule", "malformed", "BYDAY: Names something twice.")]),
    NeverHappens(),
    PlatformNotEnabled("notification.target_platforms", Platform.IOS),
    SegmentNotFound(),
    TemplateNotFound(),
    CategoryUnknown("notification.category"),
    CategoryRequired(),
    NotCombinable("notification.rule", "A send has one audience. This one also names a segment."),
    PayloadTooLarge(Platform.WEB, 4100, 3993, "notification.target_platforms"),
)


def _read(channel_id: UUID, notification: Any) -> SendRequest:
    return read_scheduled(with_template(channel_id, notification))


def _create(*, channel: Channel, notification: Any, **given: Any) -> Schedule:
    with errors_within("notification"):
        send = _read(channel.pk, notification)
    return schedule_create(channel=channel, send=send, **given)


def _update(*, channel_id: UUID, notification: Any, **given: Any) -> Schedule:
    with errors_within("notification"):
        send = _read(channel_id, notification)
    return schedule_update(channel_id=channel_id, send=send, **given)


def _once(request: Request, channel: Channel, act: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    key = idempotency_key(request)
    return once(channel_id=channel.pk, key=key, body=request.data, act=act)


class ScheduleListView(KeyedView):
    permission_classes = _SCHEDULE.permissions
    get = _SCHEDULE.list(schedule_page, "List the channel's schedules, newest first")
    post = _SCHEDULE.create(
        _create,
        "Create a schedule",
        "A schedule sends a notification repeatedly. The content of a template is copied now. See"
        " docs/schedules.md.",
        *_REFUSED,
        IdempotencyKeyInvalid(),
        TooManySchedules(f"The channel has {MAX_SCHEDULES} schedules. Delete one first."),
        IdempotencyKeyInFlight(),
        IdempotencyKeyReused(),
        parameters=[IDEMPOTENCY_PARAMETER],
        once=_once,
    )


class ScheduleView(KeyedView):
    permission_classes = _SCHEDULE.permissions
    get = _SCHEDULE.read(
        schedule_get, "Get a schedule", "What it sends and when, as they were stored last."
    )
    put = _SCHEDULE.update(
        _update,
        "Replace a schedule",
        "The content of a template is copied again. Enables a schedule that the service disabled,"
        " unless `enabled` is false. Safe to repeat.",
        *_REFUSED,
    )
    delete = _SCHEDULE.delete(
        schedule_delete,
        "Delete a schedule",
        "It sends nothing more. Notifications that it sent stay; one that is still `pending` is"
        " cancelled. A second call returns 404.",
    )


class OccurrencesView(KeyedView):
    permission_classes = _SCHEDULE.permissions

    @extend_schema(
        operation_id="list_occurrences",
        summary="List what became of a schedule's occurrences, the latest first",
        description=f"Also coming ones that staff skipped. {PAGE_DESCRIPTION}",
        tags=["schedules"],
        parameters=PAGE_PARAMETERS,
        responses={
            200: OpenApiResponse(
                OccurrenceOutput(many=True),
                "A page.",
                [OpenApiExample("An occurrence", _OCCURRENCE, response_only=True)],
            ),
            **problem_responses(400, 404, *_SCHEDULE.refusals),
        },
    )
    def get(self, request: Request, channel_id: UUID, schedule_id: UUID) -> Response:
        channel = own_channel(request, channel_id)
        read = partial(occurrence_page, channel_id=channel.pk, schedule_id=schedule_id)
        found, links = read_page(request, read)
        listed = OccurrenceOutput()
        return Response([listed.to_representation(each) for each in found], headers=links)
