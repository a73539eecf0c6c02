"""The input and the output of the operations on webhooks."""

from typing import Any

from drf_spectacular.utils import (
    extend_schema_field,
)
from rest_framework import serializers
from typing_extensions import override

from channels_app.feeds import EVENTS, PREFIX
from channels_app.models import Webhook, WebhookAttempt, WebhookFormat, WebhookState
from channels_app.webhooks import (
    MAX_DESCRIPTION,
    MAX_URL,
    waiting_count,
)
from pushsvc.common.http.fields import Choice, Flag, ListOf, StrictSerializer, Text, Timestamp


class WebhookInput(StrictSerializer):
    """A new webhook."""

    url = Text(
        min_length=1,
        max_length=MAX_URL,
        help_text="Where messages are sent: https on port 443 of a public host, without user name"
        " and fragment.",
    )
    events = ListOf(
        Choice(EVENTS),
        min_length=1,
        max_length=len(EVENTS),
        help_text="What the messages are about. See docs/webhooks.md.",
    )
    description = Text(
        max_length=MAX_DESCRIPTION, required=False, help_text="For people. At most 200 characters."
    )
    format = Choice(
        WebhookFormat.values,
        required=False,
        help_text="Default: `standard`, signed messages. `slack` and `teams`: the text of alerts,"
        " as incoming webhooks of chats take it; `events` must then be `alert.raised` alone.",
    )

    @override
    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        return attrs | {"events": list(dict.fromkeys(attrs["events"]))}


class WebhookUpdate(WebhookInput):
    """What replaces the webhook's values. Fields that are missing get their defaults."""

    enabled = Flag(
        required=False,
        help_text="Default: `true`. `false`: no messages are made for it. `true` also enables a"
        " webhook that the service disabled.",
    )


class WebhookHealthOutput(serializers.Serializer[Any]):
    """How the last calls went."""

    last_delivered_at = Timestamp(allow_null=True, help_text="The last 2xx response.")
    last_failed_at = Timestamp(allow_null=True, help_text="The last call that failed.")
    last_answer = serializers.CharField(
        allow_null=True, help_text="The response to the last call, or why there was none."
    )
    held_until = Timestamp(
        allow_null=True, help_text="While calls fail: no call is made before this time. Else null."
    )
    waiting = serializers.IntegerField(help_text="How many messages wait to be sent, or again.")


class WebhookOutput(serializers.Serializer[Any]):
    """A webhook, without its secret."""

    webhook_id = serializers.UUIDField(source="id", help_text="The webhook's id.")
    url = serializers.CharField(help_text="Where messages are sent.")
    events = serializers.ListField(
        child=serializers.ChoiceField(EVENTS), help_text="What the messages are about."
    )
    description = serializers.CharField(help_text="For people.")
    format = serializers.ChoiceField(
        WebhookFormat.values, help_text="Whether it gets signed messages, or texts for a chat."
    )
    enabled = serializers.BooleanField(source="is_enabled", help_text="Whether it gets messages.")
    disabled_code = serializers.CharField(
        allow_null=True,
        help_text="Why the service disabled it: `gone` or `failing`. Else null.",
    )
    created_at = Timestamp(help_text="When it was created.")
    health = serializers.SerializerMethodField(help_text="Whether its calls succeed.")

    @extend_schema_field(WebhookHealthOutput)
    def get_health(self, webhook: Webhook) -> dict[str, Any]:
        return dict(
            WebhookHealthOutput(
                {
                    "last_delivered_at": webhook.last_delivered_at,
                    "last_failed_at": webhook.last_failed_at,
                    "last_answer": webhook.last_answer or None,
                    "held_until": webhook.held_until,
                    "waiting": waiting_count(webhook.pk),
                }
            ).data
        )

    @override
    def to_representation(self, instance: Webhook) -> dict[str, Any]:
        shown = super().to_representation(instance)
        return shown | {"disabled_code": instance.disabled_code or None}


class ShownWebhookOutput(WebhookOutput):
    """A webhook with a new secret."""

    secret = serializers.CharField(
        help_text="The signing secret, which begins with `whsec_`. It is not shown again."
    )

    @override
    def to_representation(self, instance: Any) -> dict[str, Any]:
        webhook, secret = instance
        return {**WebhookOutput(webhook).data, "secret": secret}


class ReplayInput(StrictSerializer):
    """Which messages to send again."""

    since = Timestamp(help_text="Messages that were made at this time or later.")
    until = Timestamp(required=False, help_text="And before this time. Default: now.")
    state = Choice(
        [WebhookState.FAILED, WebhookState.DELIVERED],
        required=False,
        help_text="The state of the messages to send again. `failed` (the default) includes"
        " messages that wait for another attempt.",
    )


class ReplayOutput(serializers.Serializer[Any]):
    """How many messages are sent again."""

    messages = serializers.IntegerField(help_text="How many messages are sent again.")


class WebhookMessageOutput(serializers.Serializer[Any]):
    """What became of one message at one webhook."""

    message_id = serializers.SerializerMethodField(
        help_text="The `webhook-id` of its requests: `msg_` and 32 hexadecimal digits."
    )
    type = serializers.CharField(source="message.type", help_text="The kind of event.")
    created_at = Timestamp(source="message.created_at", help_text="When it was made.")
    state = serializers.ChoiceField(
        WebhookState.values, help_text="Whether the webhook responded with 2xx."
    )
    attempts = serializers.IntegerField(help_text="How many calls were begun.")
    next_attempt_at = serializers.SerializerMethodField(
        help_text="The next call, if it waits; else null."
    )
    finished_at = Timestamp(allow_null=True, help_text="When it was delivered or failed.")
    answer = serializers.CharField(
        help_text="The response to the last call, or why there was none."
    )

    def get_message_id(self, attempt: WebhookAttempt) -> str:
        return f"{PREFIX}{attempt.message_id.hex}"

    @extend_schema_field(Timestamp(allow_null=True))
    def get_next_attempt_at(self, attempt: WebhookAttempt) -> str | None:
        is_waiting = attempt.state == WebhookState.WAITING
        return Timestamp().to_representation(attempt.due_at) if is_waiting else None


class SentTestOutput(serializers.Serializer[Any]):
    """The message of a test."""

    message_id = serializers.CharField(help_text="The `webhook-id` of its request.")
