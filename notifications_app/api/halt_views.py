"""Views that pause, resume and stop a notification."""

from typing import Any, Final
from uuid import UUID

from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from channels_app.http import KeyedView, key_of, require_scope
from channels_app.models import Scope
from notifications_app.api import examples
from notifications_app.api.serializers import PausedOutput, StoppedOutput
from notifications_app.errors import NotRunning
from notifications_app.models import Notification
from notifications_app.sends.services import (
    notification_pause,
    notification_resume,
    notification_stop,
)
from pushsvc.common.errors import MissingScope
from pushsvc.common.http.openapi import follow_ups, problem_responses

_TAG: Final = "notifications"
_REFUSED: Final = (401, MissingScope(Scope.SEND), 404, 429, 503)
_OF_ONE: Final = {"notification_id": "$response.body#/notification_id"}
_IS_SENT: Final = NotRunning(UUID(examples.ID), "sent")


class _HaltView(KeyedView):
    permission_classes = (require_scope(Scope.SEND),)
    has_body = False


class PauseView(_HaltView):
    @extend_schema(
        operation_id="pause_notification",
        summary="Pause a notification",
        description="A `pending` notification does not start. For a `processing` one, no call"
        " begins later than ten seconds after the response, and its deadline waits. A notification"
        " that was paused for seven days while it was `processing` is stopped. Safe to repeat.",
        tags=[_TAG],
        request=None,
        extensions=follow_ups(200, "resume_notification", "stop_notification", **_OF_ONE),
        responses={
            200: OpenApiResponse(PausedOutput, "Paused, now or before.", [examples.PAUSED]),
            **problem_responses(*_REFUSED, _IS_SENT),
        },
    )
    def post(self, request: Request, notification_id: UUID) -> Response:
        paused = notification_pause(
            channel_id=key_of(request).channel_id, notification_id=notification_id
        )
        return Response(_paused(paused))


class ResumeView(_HaltView):
    @extend_schema(
        operation_id="resume_notification",
        summary="Resume a paused notification",
        description="The time of the pause does not count for its deadline. Nothing changes for a"
        " notification that is not paused. Safe to repeat.",
        tags=[_TAG],
        request=None,
        extensions=follow_ups(200, "get_notification_details", **_OF_ONE),
        responses={
            200: OpenApiResponse(PausedOutput, "Not paused.", [examples.RESUMED]),
            **problem_responses(*_REFUSED),
        },
    )
    def post(self, request: Request, notification_id: UUID) -> Response:
        resumed = notification_resume(
            channel_id=key_of(request).channel_id, notification_id=notification_id
        )
        return Response(_paused(resumed))


class StopView(_HaltView):
    @extend_schema(
        operation_id="stop_notification",
        summary="Stop a notification for good",
        description="Only a `processing` notification can be stopped; cancel a `pending` one."
        " No call begins later than ten seconds after the response. Remaining recipients bounce"
        " with the code `stopped`, then the notification is `sent`. If it had no recipient yet, it"
        " is `cancelled`. Safe to repeat.",
        tags=[_TAG],
        request=None,
        extensions=follow_ups(200, "get_notification_details", **_OF_ONE),
        responses={
            200: OpenApiResponse(StoppedOutput, "Stopped, now or before.", [examples.STOPPED]),
            **problem_responses(*_REFUSED, _IS_SENT),
        },
    )
    def post(self, request: Request, notification_id: UUID) -> Response:
        stopped = notification_stop(
            channel_id=key_of(request).channel_id, notification_id=notification_id
        )
        return Response({"notification_id": str(stopped.id), "stopped": True})


def _paused(notification: Notification) -> dict[str, Any]:
    return {"notification_id": str(notification.id), "paused": notification.is_paused}
