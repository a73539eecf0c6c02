"""The view that explains who gets a send, and why somebody did not."""

from typing import Any, Final
from uuid import UUID

from drf_spectacular.utils import OpenApiExample, OpenApiResponse, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from channels_app.http import KeyedView, own_channel, require_scope
from channels_app.models import Channel, Scope
from channels_app.selectors import ChannelNotFound
from notifications_app.api.explain_serializers import (
    ExplainAsked,
    ExplainInput,
    ExplainOutput,
    explain_output,
)
from notifications_app.errors import DeliveriesDeleted, StillSending
from notifications_app.reporting.explaining import Explanation
from notifications_app.sends.explaining import Who, notification_explain, send_explain
from notifications_app.sends.schema import read_send
from notifications_app.sends.templates import with_template
from pushsvc.common.errors import MissingScope
from pushsvc.common.http.fields import errors_within
from pushsvc.common.http.openapi import problem_responses

_ID: Final = "019aa2f0-5a3e-7c11-9f3a-3f0c6d1f7b52"
_RULE: Final = {"attribute": "plan", "operator": "eq", "value": "pro"}
_NO_FACTS: Final = {"rule": None, "at": None, "language": None, "bytes": None, "missing": None}
_GIVEN: Final = {"send": {"body": "Fresh bread", "rule": _RULE}, "external_id": "user-42"}
_OF_NOTIFICATION: Final = {"notification_id": _ID, "subscription_id": _ID}
_WORDS: Final = 'plan is "free"; the rule wants "pro"'
_SHOWN: Final[dict[str, Any]] = {
    "as_of": "2026-11-20T15:11:00.123Z",
    "devices": [
        {
            "subscription_id": _ID,
            "platform": "web",
            "verdict": "not_in_audience",
            "because": "audience",
            "steps": [
                {"step": "active", "ok": True, "detail": "", **_NO_FACTS},
                {"step": "platform", "ok": True, "detail": "", **_NO_FACTS},
                {**_NO_FACTS, "step": "audience", "ok": False, "detail": _WORDS, "rule": _RULE},
                {
                    **_NO_FACTS,
                    "step": "content",
                    "ok": True,
                    "detail": "",
                    "language": "pt",
                    "bytes": 412,
                    "missing": [],
                },
            ],
            "changes": [],
            "message": {
                "title": "",
                "body": "Fresh bread",
                "url": "",
                "icon": "",
                "image": "",
                "buttons": [],
            },
            "delivery": None,
        }
    ],
}


class ExplainView(KeyedView):
    permission_classes = (require_scope(Scope.SUBSCRIBERS),)

    @extend_schema(
        operation_id="explain_delivery",
        summary="Explain who gets a send, and why somebody did not",
        description="For one person or one subscription. Nothing is sent or stored, except an entry"
        " in the audit log. See docs/explain.md.",
        tags=["notifications"],
        request=ExplainInput,
        examples=[
            OpenApiExample("For a send", _GIVEN, request_only=True),
            OpenApiExample("For a notification", _OF_NOTIFICATION, request_only=True),
        ],
        responses={
            200: OpenApiResponse(
                ExplainOutput,
                "Each device.",
                [OpenApiExample("Explained", _SHOWN, response_only=True)],
            ),
            **problem_responses(
                400,
                401,
                MissingScope(Scope.SUBSCRIBERS),
                ChannelNotFound(),
                404,
                StillSending(),
                DeliveriesDeleted(UUID(_ID), 30),
                413,
                415,
                429,
                503,
            ),
        },
    )
    def post(self, request: Request, channel_id: UUID) -> Response:
        channel = own_channel(request, channel_id)
        asked = ExplainAsked.checked(request.data)
        return Response(explain_output(_explained(channel, asked)))


def _explained(channel: Channel, asked: dict[str, Any]) -> Explanation:
    who = Who(asked.get("external_id"), asked.get("subscription_id"))
    if "notification_id" in asked:
        return notification_explain(
            channel=channel, notification_id=asked["notification_id"], who=who
        )
    with errors_within("send"):
        request = read_send(with_template(channel.id, asked["send"]))
        return send_explain(channel=channel, request=request, who=who)
