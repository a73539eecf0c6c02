"""Views of automations, for programs with an API key."""

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
from notifications_app.api.automation_serializers import (
    AutomationAsked,
    AutomationDayOutput,
    AutomationInput,
    AutomationOutput,
)
from notifications_app.content.values import SendRequest
from notifications_app.errors import (
    CategoryRequired,
    IdempotencyKeyInFlight,
    IdempotencyKeyInvalid,
    IdempotencyKeyReused,
    NotCombinable,
    PayloadTooLarge,
    SegmentNotFound,
    TemplateNotFound,
    TooManyAutomations,
)
from notifications_app.models import Automation
from notifications_app.sends.automations import (
    MAX_AUTOMATIONS,
    automation_create,
    automation_delete,
    automation_get,
    automation_page,
    automation_update,
    day_page,
)
from notifications_app.sends.idempotency import IDEMPOTENCY_PARAMETER, idempotency_key, once
from notifications_app.sends.schema import read_scheduled
from notifications_app.sends.templates import with_template
from pushsvc.common.http.fields import errors_within
from pushsvc.common.http.openapi import problem_responses
from pushsvc.common.http.paging import PAGE_DESCRIPTION, PAGE_PARAMETERS, read_page
from pushsvc.common.platforms import Platform
from subscriptions_app.errors import CategoryUnknown, PlatformNotEnabled

_ID: Final = "019aa2f0-5a3e-7c11-9f3a-3f0c6d1f7b52"
_GIVEN: Final[dict[str, Any]] = {
    "name": "Welcome",
    "trigger": {"event": "subscriptions.created"},
    "delay_minutes": 10,
    "notification": {"title": "Welcome", "body": "Here is how to begin."},
}
_SHOWN: Final[dict[str, Any]] = {
    "automation_id": _ID,
    "name": "Welcome",
    "enabled": True,
    "trigger": _GIVEN["trigger"],
    "delay_minutes": 10,
    "recipient": "device",
    "notification": {**_GIVEN["notification"], "target_platforms": ["web"]},
    "once_per_days": None,
    "waiting": 12,
    "disabled_code": None,
    "created_at": "2026-11-20T15:11:00.123Z",
    "updated_at": "2026-11-20T15:11:00.123Z",
}
_DAY: Final = {
    "begins_at": "2026-12-07T08:00:00.000Z",
    "ends_at": "2026-12-07T23:00:00.000Z",
    "notification_id": "019aa2f0-7d11-7c11-9f3a-3f0c6d1f7b52",
    "fired": 240,
    "skipped": {
        "repeated": 12,
        "condition": 3,
        "gone": 1,
        "platform": 0,
        "stopped": 0,
        "late": 0,
    },
}
_AUTOMATION: Final = Resource(
    "automation",
    "automations",
    tag="automations",
    id_name="automation_id",
    id_field="automation_id",
    input=AutomationInput,
    reader=AutomationAsked,
    output=AutomationOutput,
    given=_GIVEN,
    shown=_SHOWN,
    follow_ups=(
        "get_automation",
        "update_automation",
        "list_automation_days",
        "delete_automation",
    ),
    scope=Scope.SEND,
)
_REFUSED: Final = (
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
        return read_scheduled(with_template(channel_id, notification))


def _create(*, channel: Channel, notification: Any, **given: Any) -> Automation:
    send = _read(channel.pk, notification)
    return automation_create(channel=channel, send=send, **given)


def _update(*, channel_id: UUID, notification: Any, **given: Any) -> Automation:
    send = _read(channel_id, notification)
    return automation_update(channel_id=channel_id, send=send, **given)


def _once(request: Request, channel: Channel, act: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    key = idempotency_key(request)
    return once(channel_id=channel.pk, key=key, body=request.data, act=act)


class AutomationListView(KeyedView):
    permission_classes = _AUTOMATION.permissions
    get = _AUTOMATION.list(automation_page, "List the channel's automations, newest first")
    post = _AUTOMATION.create(
        _create,
        "Create an automation",
        "An automation sends a notification to each device or person to whom something happened."
        " The content of a template is copied now. See docs/automations.md.",
        *_REFUSED,
        IdempotencyKeyInvalid(),
        TooManyAutomations(f"The channel has {MAX_AUTOMATIONS} automations. Delete one first."),
        IdempotencyKeyInFlight(),
        IdempotencyKeyReused(),
        parameters=[IDEMPOTENCY_PARAMETER],
        once=_once,
    )


class AutomationView(KeyedView):
    permission_classes = _AUTOMATION.permissions
    get = _AUTOMATION.read(
        automation_get, "Get an automation", "What it sends to whom, as it was stored last."
    )
    put = _AUTOMATION.update(
        _update,
        "Replace an automation",
        "The content of a template is copied again. Those who wait get the new notification."
        " Enables an automation that the service disabled, unless `enabled` is false. Safe to"
        " repeat.",
        *_REFUSED,
    )
    delete = _AUTOMATION.delete(
        automation_delete,
        "Delete an automation",
        "It sends nothing more. Notifications that it sent stay. A second call returns 404.",
    )


class AutomationDaysView(KeyedView):
    permission_classes = _AUTOMATION.permissions

    @extend_schema(
        operation_id="list_automation_days",
        summary="List what an automation did on each day, the latest first",
        description=PAGE_DESCRIPTION,
        tags=["automations"],
        parameters=PAGE_PARAMETERS,
        responses={
            200: OpenApiResponse(
                AutomationDayOutput(many=True),
                "A page.",
                [OpenApiExample("A day", _DAY, response_only=True)],
            ),
            **problem_responses(400, 404, *_AUTOMATION.refusals),
        },
    )
    def get(self, request: Request, channel_id: UUID, automation_id: UUID) -> Response:
        channel = own_channel(request, channel_id)
        read = partial(day_page, channel_id=channel.pk, automation_id=automation_id)
        found, links = read_page(request, read)
        listed = AutomationDayOutput()
        return Response([listed.to_representation(each) for each in found], headers=links)
