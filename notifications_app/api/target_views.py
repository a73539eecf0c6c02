"""The view of a notification's targets."""

from typing import Final
from uuid import UUID

from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from channels_app.http import ReadingView, key_of
from channels_app.models import Scope
from notifications_app.api import examples
from notifications_app.api.serializers import TargetOutput
from notifications_app.reporting.targets import TargetState, target_page
from pushsvc.common.errors import FieldError, Invalid, MissingScope
from pushsvc.common.http.openapi import problem_responses
from pushsvc.common.http.paging import PAGE_DESCRIPTION, PAGE_PARAMETERS, read_page

_STATES: Final = [each.value for each in TargetState]


class NotificationTargetsView(ReadingView):
    @extend_schema(
        operation_id="list_notification_targets",
        summary="List whom a notification names, in the order of the send",
        description="Empty for a send that names nobody one by one. Kept as long as the log of its"
        f" recipients. {PAGE_DESCRIPTION}",
        tags=["notifications"],
        parameters=[
            OpenApiParameter(
                "state",
                {"type": "string", "enum": _STATES},
                description="Only the targets in this state.",
            ),
            *PAGE_PARAMETERS,
        ],
        responses={
            200: OpenApiResponse(TargetOutput(many=True), "A page.", [examples.TARGETS]),
            **problem_responses(400, 401, MissingScope(Scope.READ), 404, 429, 503),
        },
    )
    def get(self, request: Request, notification_id: UUID) -> Response:
        found, links = read_page(
            request,
            target_page,
            channel_id=key_of(request).channel_id,
            notification_id=notification_id,
            state=_state(request),
        )
        shown = TargetOutput()
        return Response([shown.to_representation(each) for each in found], headers=links)


def _state(request: Request) -> TargetState | None:
    text = request.query_params.get("state")
    if text is None:
        return None
    if text not in _STATES:
        detail = f"Must be one of: {', '.join(_STATES)}."
        raise Invalid([FieldError("state", "not_a_choice", detail)])
    return TargetState(text)
