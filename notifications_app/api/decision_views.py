"""The view that decides a test of variants."""

from typing import Final
from uuid import UUID

from drf_spectacular.utils import OpenApiExample, OpenApiResponse, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from channels_app.http import KeyedView, key_of, require_scope
from channels_app.models import Scope
from notifications_app.api import examples
from notifications_app.api.decision_serializers import WinnerInput, WinnerOutput
from notifications_app.errors import AlreadyDecided, NoTest, NotRunning
from notifications_app.sends.services import notification_decide
from pushsvc.common.errors import FieldError, Invalid, MissingScope
from pushsvc.common.http.openapi import problem_responses

_ID: Final = UUID(examples.ID)
_UNKNOWN: Final = Invalid([FieldError("variant", "not_a_choice", "Must be one of: short, long.")])


class WinnerView(KeyedView):
    permission_classes = (require_scope(Scope.SEND),)

    @extend_schema(
        operation_id="decide_test",
        summary="Choose the winner of a test",
        description="Those who were not in the test of the variants get this variant now. Also"
        " while the test is on hold. Safe to repeat.",
        tags=["notifications"],
        request=WinnerInput,
        responses={
            200: OpenApiResponse(
                WinnerOutput,
                "Decided, now or before.",
                [OpenApiExample("Decided", {"notification_id": examples.ID, "variant": "long"})],
            ),
            **problem_responses(
                _UNKNOWN,
                401,
                MissingScope(Scope.SEND),
                404,
                AlreadyDecided(_ID, "short"),
                NotRunning(_ID, "sent"),
                NoTest(_ID),
                413,
                415,
                429,
                503,
            ),
        },
        examples=[OpenApiExample("A winner", {"variant": "long"}, request_only=True)],
    )
    def post(self, request: Request, notification_id: UUID) -> Response:
        name = WinnerInput.checked(request.data)["variant"]
        notification_decide(
            channel_id=key_of(request).channel_id, notification_id=notification_id, name=name
        )
        return Response({"notification_id": str(notification_id), "variant": name})
