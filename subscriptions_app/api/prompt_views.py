"""The public views of prompts: the console's options, and counts of what visitors do."""

from typing import Any, Final
from uuid import UUID

from drf_spectacular.utils import OpenApiExample, OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from channels_app.counters import prompt_count
from channels_app.http import ChannelIdMissing
from channels_app.models import PROMPT_EVENTS, Channel, PromptKind
from channels_app.openapi import CHANNEL_ID_HEADER
from channels_app.selectors import ChannelDeleted, ChannelNotFound
from pushsvc.common.http.fields import Choice, StrictSerializer
from pushsvc.common.http.openapi import problem_responses
from pushsvc.common.store.recent import Recent
from subscriptions_app.api.category_serializers import PreferenceOutput
from subscriptions_app.categories.consent import categories_of
from subscriptions_app.http import DeviceView


class PromptEventInput(StrictSerializer):
    """What a visitor did with a prompt."""

    kind = Choice(PromptKind.values, help_text="The kind of the prompt.")
    event = Choice(PROMPT_EVENTS, help_text="What happened: shown once a day for each browser.")


class PromptTextsOutput(serializers.Serializer[Any]):
    """Texts that replace those of the prompt."""

    title = serializers.CharField(required=False, help_text="The title, and a button's label.")
    body = serializers.CharField(required=False, help_text="The text below the title.")
    allow = serializers.CharField(required=False, help_text="The button that accepts.")
    later = serializers.CharField(required=False, help_text="The button that refuses.")


class PromptColorsOutput(serializers.Serializer[Any]):
    """Colors that replace those of the prompt."""

    accent = serializers.CharField(required=False, help_text="Of the button that accepts.")
    accentText = serializers.CharField(  # noqa: N815
        required=False, help_text="Of that button's text."
    )
    background = serializers.CharField(required=False, help_text="Of the prompt.")
    text = serializers.CharField(required=False, help_text="Of the text.")


class PromptOptionsOutput(serializers.Serializer[Any]):
    """The options of prompt.mjs, by the names that scripts have for them. See docs/prompts.md."""

    kind = serializers.ChoiceField(choices=PromptKind.values, help_text="The kind of the prompt.")
    target = serializers.CharField(
        required=False, help_text="The CSS selector of the element to which a button is added."
    )
    afterPages = serializers.IntegerField(help_text="The first page view that shows it.")  # noqa: N815
    afterSeconds = serializers.IntegerField(  # noqa: N815
        help_text="Seconds on the page before it is shown."
    )
    againAfterDays = serializers.IntegerField(  # noqa: N815
        help_text="Days after a refusal before it is shown again."
    )
    maxRefusals = serializers.IntegerField(  # noqa: N815
        help_text="The number of refusals after which it is never shown again."
    )
    scheme = serializers.CharField(help_text="`light`, `dark`, or `auto` for the visitor's.")
    colors = PromptColorsOutput(
        required=False, help_text="Colors that replace the prompt's own, as `#rrggbb`."
    )
    texts = serializers.DictField(
        child=PromptTextsOutput(),
        required=False,
        help_text="By language: texts that replace the prompt's own.",
    )
    categories = PreferenceOutput(
        many=True, required=False, help_text="Of the kind `categories`: what visitors choose from."
    )


class PromptOutput(serializers.Serializer[Any]):
    """The prompt that the console describes."""

    prompt = PromptOptionsOutput(required=False, help_text="Missing if sites show no prompt.")


_EXAMPLE: Final = {
    "prompt": {
        "kind": "slide-in",
        "afterPages": 2,
        "afterSeconds": 10,
        "againAfterDays": 30,
        "maxRefusals": 3,
        "scheme": "auto",
        "colors": {"accent": "#9a3412"},
        "texts": {"en": {"title": "Fresh bread"}},
    }
}


class PromptView(DeviceView):
    limit_name = "prompt-options"

    @extend_schema(
        operation_id="get_prompt",
        summary="Get the options of the channel's prompt",
        description="For sites whose prompt is set up in the console. The response can be cached"
        " for five minutes.",
        tags=["subscriptions"],
        auth=[],
        parameters=[CHANNEL_ID_HEADER],
        responses={
            200: PromptOutput,
            **problem_responses(ChannelIdMissing(), ChannelDeleted(), ChannelNotFound(), 429, 503),
        },
        examples=[OpenApiExample("A slide-in", _EXAMPLE, response_only=True, status_codes=["200"])],
    )
    def get(self, request: Request) -> Response:
        headers = {"Cache-Control": "public, max-age=300", "Vary": "X-Channel-ID"}
        options = _options(self.channel)
        return Response({"prompt": options} if options else {}, headers=headers)


def _options(channel: Channel) -> dict[str, Any] | None:
    """None if no prompt is shown."""
    options = dict(channel.prompt or {})
    if not options.pop("isOn", False):
        return None
    if options["kind"] == PromptKind.CATEGORIES:
        options["categories"] = _recent_choices(channel.id)
        if not options["categories"]:
            return None
    return options


def _choices(channel_id: UUID) -> list[dict[str, Any]]:
    return [
        {
            "key": each.key,
            "name": each.name,
            "description": each.description,
            "chosen": each.chosen_by_default,
        }
        for each in categories_of(channel_id)
    ]


_recent_choices: Final = Recent(_choices)


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
            **problem_responses(
                400, ChannelIdMissing(), ChannelDeleted(), ChannelNotFound(), 413, 415, 429, 503
            ),
        },
    )
    def post(self, request: Request) -> Response:
        given = PromptEventInput.checked(request.data)
        prompt_count(self.channel.id, PromptKind(given["kind"]), given["event"])
        return Response(status=204)
