"""The channel's webhooks, for programs with an API key."""

from typing import Final
from uuid import UUID

from drf_spectacular.utils import (
    OpenApiExample,
    OpenApiParameter,
    OpenApiResponse,
    extend_schema,
)
from rest_framework.request import Request
from rest_framework.response import Response

from channels_app.api.webhook_serializers import (
    ReplayInput,
    ReplayOutput,
    SentTestOutput,
    ShownWebhookOutput,
    WebhookInput,
    WebhookMessageOutput,
    WebhookOutput,
    WebhookUpdate,
)
from channels_app.http import KeyedView, own_channel
from channels_app.models import WebhookState
from channels_app.resources import Resource
from channels_app.webhooks import (
    MOST_REPLAYED,
    MOST_WEBHOOKS,
    TooManyWebhooks,
    WebhookDisabled,
    webhook_create,
    webhook_delete,
    webhook_get,
    webhook_messages,
    webhook_replay,
    webhook_rotate_secret,
    webhook_test,
    webhook_update,
    webhooks_of,
)
from pushsvc.common.errors import FieldError, Invalid
from pushsvc.common.http.openapi import problem_responses
from pushsvc.common.http.paging import PAGE_DESCRIPTION, PAGE_PARAMETERS, read_page

_GIVEN: Final = {
    "url": "https://backend.example.com/push-events",
    "events": ["notifications.finished", "subscriptions.expired"],
    "description": "Orders",
}
_MADE: Final = {
    "webhook_id": "019aa2f0-5a3e-7c11-9f3a-3f0c6d1f7b52",
    **_GIVEN,
    "format": "standard",
    "enabled": True,
    "disabled_code": None,
    "created_at": "2026-11-20T15:11:00.123Z",
    "health": {
        "last_delivered_at": None,
        "last_failed_at": None,
        "last_answer": None,
        "held_until": None,
        "waiting": 0,
    },
}
_SECRET: Final = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="  # noqa: S105 - an example
_SHOWN: Final = {
    **_MADE,
    "health": {
        "last_delivered_at": "2026-11-20T15:12:00.456Z",
        "last_failed_at": None,
        "last_answer": "204",
        "held_until": None,
        "waiting": 1,
    },
}
_MESSAGE_ID: Final = "msg_019aa2f05a3e7c119f3a3f0c6d1f7b52"
_MESSAGE: Final = {
    "message_id": _MESSAGE_ID,
    "type": "notifications.finished",
    "created_at": "2026-11-20T15:11:59.900Z",
    "state": "delivered",
    "attempts": 1,
    "next_attempt_at": None,
    "finished_at": "2026-11-20T15:12:00.456Z",
    "answer": "204",
}
_WEBHOOK: Final = Resource(
    "webhook",
    "webhooks",
    tag="webhooks",
    id_name="webhook_id",
    id_field="webhook_id",
    input=WebhookInput,
    output=WebhookOutput,
    given=_GIVEN,
    shown=_SHOWN,
    follow_ups=("get_webhook", "update_webhook", "delete_webhook"),
)
_BAD: Final = Invalid(
    [FieldError("url", "endpoint_not_allowed", "The address must be an https URL.")]
)
_KNOWN: Final = (404, *_WEBHOOK.refusals)
_STATE: Final = OpenApiParameter(
    "state",
    {"type": "string", "enum": WebhookState.values},
    description="Only the messages in this state.",
)


class WebhookListView(KeyedView):
    permission_classes = _WEBHOOK.permissions
    get = _WEBHOOK.list(
        webhooks_of, "List the channel's webhooks", f"All of them, at most {MOST_WEBHOOKS}."
    )
    post = _WEBHOOK.create(
        webhook_create,
        "Create a webhook",
        "Facts that become true from now on are sent to it in signed requests. See"
        " docs/webhooks.md. `Idempotency-Key` is ignored, because a stored response would contain"
        " the secret.",
        _BAD,
        TooManyWebhooks(),
        output=ShownWebhookOutput,
        shown={**_MADE, "secret": _SECRET},
    )


class WebhookView(KeyedView):
    permission_classes = _WEBHOOK.permissions
    get = _WEBHOOK.read(webhook_get, "Get a webhook", "Its values, and how its last calls went.")
    put = _WEBHOOK.update(
        webhook_update,
        "Replace a webhook's values",
        "Its secret stays. Messages that wait are sent to the new address. Safe to repeat.",
        _BAD,
        input=WebhookUpdate,
        given={**_GIVEN, "enabled": True},
    )
    delete = _WEBHOOK.delete(
        webhook_delete,
        "Delete a webhook",
        "Messages that wait for it are not sent. A second call returns 404.",
    )


class WebhookSecretView(KeyedView):
    permission_classes = _WEBHOOK.permissions
    has_body = False

    @extend_schema(
        operation_id="rotate_webhook_secret",
        summary="Replace a webhook's secret",
        description="For 24 hours, requests have a signature with the old secret too.",
        tags=["webhooks"],
        request=None,
        responses={
            201: OpenApiResponse(
                ShownWebhookOutput,
                "Replaced.",
                [OpenApiExample("A new secret", {**_SHOWN, "secret": _SECRET}, response_only=True)],
            ),
            **problem_responses(*_KNOWN),
        },
    )
    def post(self, request: Request, channel_id: UUID, webhook_id: UUID) -> Response:
        channel = own_channel(request, channel_id)
        rotated = webhook_rotate_secret(channel_id=channel.pk, webhook_id=webhook_id)
        return Response(ShownWebhookOutput(rotated).data, status=201)


class WebhookTestView(KeyedView):
    permission_classes = _WEBHOOK.permissions
    has_body = False

    @extend_schema(
        operation_id="test_webhook",
        summary="Send a test message to a webhook",
        description="A message of the type `webhook.test`, to this webhook alone.",
        tags=["webhooks"],
        request=None,
        responses={
            202: OpenApiResponse(
                SentTestOutput,
                "It will be sent.",
                [OpenApiExample("A test", {"message_id": _MESSAGE_ID}, response_only=True)],
            ),
            **problem_responses(*_KNOWN, WebhookDisabled()),
        },
    )
    def post(self, request: Request, channel_id: UUID, webhook_id: UUID) -> Response:
        channel = own_channel(request, channel_id)
        message = webhook_test(channel_id=channel.pk, webhook_id=webhook_id)
        return Response({"message_id": str(message)}, status=202)


class WebhookReplayView(KeyedView):
    permission_classes = _WEBHOOK.permissions

    @extend_schema(
        operation_id="replay_webhook",
        summary="Send messages of a webhook again",
        description=f"At most {MOST_REPLAYED:,} messages of the last 14 days, the oldest first."
        " A message keeps its id, so your backend can ignore those it has already processed.",
        tags=["webhooks"],
        request=ReplayInput,
        examples=[
            OpenApiExample("A day", {"since": "2026-11-20T00:00:00.000Z"}, request_only=True)
        ],
        responses={
            202: OpenApiResponse(
                ReplayOutput,
                "They will be sent.",
                [OpenApiExample("Sent again", {"messages": 12}, response_only=True)],
            ),
            **problem_responses(
                Invalid([FieldError("since", "required", "This field is required.")]),
                *_KNOWN,
                WebhookDisabled(),
                413,
                415,
            ),
        },
    )
    def post(self, request: Request, channel_id: UUID, webhook_id: UUID) -> Response:
        channel, given = own_channel(request, channel_id), ReplayInput.checked(request.data)
        count = webhook_replay(channel_id=channel.pk, webhook_id=webhook_id, **given)
        return Response({"messages": count}, status=202)


class WebhookMessagesView(KeyedView):
    permission_classes = _WEBHOOK.permissions

    @extend_schema(
        operation_id="list_webhook_messages",
        summary="List the messages of a webhook, newest first",
        description=f"Messages are kept for 14 days. {PAGE_DESCRIPTION}",
        tags=["webhooks"],
        parameters=[_STATE, *PAGE_PARAMETERS],
        responses={
            200: OpenApiResponse(
                WebhookMessageOutput(many=True),
                "A page.",
                [OpenApiExample("A message", _MESSAGE, response_only=True)],
            ),
            **problem_responses(400, *_KNOWN),
        },
    )
    def get(self, request: Request, channel_id: UUID, webhook_id: UUID) -> Response:
        channel = own_channel(request, channel_id)
        found, links = read_page(
            request,
            webhook_messages,
            channel_id=channel.pk,
            webhook_id=webhook_id,
            state=_state(request),
        )
        return Response(WebhookMessageOutput(found, many=True).data, headers=links)


def _state(request: Request) -> str | None:
    text = request.query_params.get("state")
    if text is not None and text not in WebhookState.values:
        detail = f"Must be one of: {', '.join(WebhookState.values)}."
        raise Invalid([FieldError("state", "not_a_choice", detail)])
    return text
