"""The public view that counts what visitors do with prompts."""

from drf_spectacular.utils import OpenApiExample, OpenApiResponse, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from channels_app.counters import prompt_count
from channels_app.http import ChannelIdMissing
from channels_app.models import PROMPT_EVENTS, PromptKind
from channels_app.openapi import CHANNEL_ID_HEADER
from channels_app.selectors import ChannelNotFound
from pushsvc.common.http.fields import Choice, StrictSerializer
from pushsvc.common.http.openapi import problem_responses
from subscriptions_app.api.views import DeviceView


class PromptEventInput(StrictSerializer):
    kind = Choice(PromptKind.values, help_text="The kind of the prompt.")
    event = Choice(PROMPT_EVENTS, help_text="What happened: shown once a day for each browser.")


class PromptEventsView(DeviceView):
    limit_name = "prompts"

    @extend_schema(
        operation_id="report_prompt_event",
        summary="Report what a visitor did with a prompt",
        description="Adds one to the counts of the channel that the console shows. Nothing about"
        " the visitor is stored. Sites with prompt.mjs send it by themselves.",
        tags=["events"],
        auth=[],
        parameters=[CHANNEL_ID_HEADER],
        request=PromptEventInput,
        examples=[
            OpenApiExample("Accepted", {"kind": "slide-in", "event": "accepted"}, request_only=True)
        ],
        responses={
            204: OpenApiResponse(description="The event was counted."),
            **problem_responses(400, ChannelIdMissing(), ChannelNotFound(), 413, 415, 429, 503),
        },
    )
    def post(self, request: Request) -> Response:
        given = PromptEventInput.checked(request.data)
        prompt_count(self.channel.id, PromptKind(given["kind"]), given["event"])
        return Response(status=204)
