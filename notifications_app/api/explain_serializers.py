"""The input and the output of an explanation."""

from collections.abc import Mapping
from typing import Any, Final

from rest_framework import serializers
from typing_extensions import override

from notifications_app.api.send_document import SendInput
from notifications_app.reporting.explaining import Explanation
from notifications_app.reporting.judging import Explained, Sent, Step, StepName, Verdict
from notifications_app.selectors import OUTCOMES
from notifications_app.sends.audience import RuleField
from notifications_app.states import DeliveryStatus
from pushsvc.common.http.fields import Id, StrictSerializer, Timestamp, refuse
from pushsvc.common.platforms import PLATFORM_VALUES
from subscriptions_app.people.fields import ExternalId

VERDICTS: Final = [each.value for each in Verdict]
STEP_NAMES: Final = [each.value for each in StepName]


class ExplainInput(StrictSerializer):
    """What to explain, and for whom."""

    send: Any = SendInput(
        required=False, help_text="A send, as `POST /send-notification` takes it."
    )
    notification_id = Id(required=False, help_text="A notification of the channel.")
    external_id = ExternalId(required=False, help_text="All devices of this person.")
    subscription_id = Id(required=False, help_text="This subscription alone.")


class ExplainAsked(ExplainInput):
    """The send is validated when its template is resolved."""

    send = serializers.JSONField(required=False)

    @override
    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        _require_one(attrs, "send", "notification_id")
        _require_one(attrs, "external_id", "subscription_id")
        return attrs


def _require_one(attrs: Mapping[str, Any], one: str, other: str) -> None:
    if len(attrs.keys() & {one, other}) != 1:
        refuse("not_combinable", f"Must have either `{one}` or `{other}`.")


class ExplainedStepOutput(serializers.Serializer[Step]):
    """One decision about a device."""

    step = serializers.ChoiceField(STEP_NAMES, help_text="What is decided.")
    ok = serializers.BooleanField(help_text="false: the device gets nothing because of it.")
    detail = serializers.CharField(help_text="For people; may be empty.")
    rule = RuleField(allow_null=True, help_text="The condition of the rule that decided.")
    at = Timestamp(
        allow_null=True,
        help_text="Of `release`: when it is time where the device is. Of `test`: the decision.",
    )
    language = serializers.CharField(
        allow_null=True, help_text="Of `content`: the device's language, or empty."
    )
    bytes = serializers.IntegerField(allow_null=True, help_text="Of `content`: the message's size.")
    missing = serializers.ListField(
        child=serializers.CharField(),
        allow_null=True,
        help_text="Of `content`: placeholders without a value and without a default.",
    )


class ExplainedMessageOutput(serializers.Serializer[Any]):
    """The texts that the device shows."""

    title = serializers.CharField(help_text="May be empty.")
    body = serializers.CharField(help_text="Main text.")
    url = serializers.CharField(help_text="What a click opens, or empty.")
    icon = serializers.CharField(help_text="URL of the icon, or empty.")
    image = serializers.CharField(help_text="URL of the large image, or empty.")
    buttons = serializers.ListField(
        child=serializers.CharField(), help_text="Titles of the buttons."
    )


class ExplainedDeliveryOutput(serializers.Serializer[Any]):
    """The delivery of the device."""

    status = serializers.ChoiceField(list(OUTCOMES.values()), help_text="Its outcome.")
    code = serializers.CharField(help_text="As docs/outcomes.md explains; empty without a reason.")
    detail = serializers.CharField(help_text="What the push service said, or empty.")
    attempts = serializers.IntegerField(help_text="Calls that were made.")
    due_at = Timestamp(allow_null=True, help_text="Of one that waits: not before this time.")
    finished_at = Timestamp(allow_null=True, help_text="When its outcome was known.")
    received_at = Timestamp(allow_null=True, help_text="When the device reported `received`.")
    clicked_at = Timestamp(allow_null=True, help_text="When the device reported `clicked`.")
    push_service = serializers.CharField(help_text="Which service was called.")
    trace = serializers.CharField(help_text="Finds its log lines and spans.")


class ExplainedDeviceOutput(serializers.Serializer[Any]):
    """A device, and what becomes or became of the message for it."""

    subscription_id = serializers.UUIDField(help_text="The device's subscription.")
    platform = serializers.ChoiceField(PLATFORM_VALUES, help_text="Its platform.")
    verdict = serializers.ChoiceField(VERDICTS, help_text="See docs/explain.md.")
    because = serializers.CharField(
        help_text="The step that decided, or the code of the bounce. Empty: nothing is against it."
    )
    steps = ExplainedStepOutput(many=True, help_text="The decisions in their order.")
    changes = serializers.ListField(
        child=serializers.CharField(),
        help_text="For people: what changed about the device since the notification began.",
    )
    variant = serializers.CharField(
        allow_null=True,
        help_text="The name of the variant that it gets; null: not known, or there are none.",
    )
    message = ExplainedMessageOutput(
        allow_null=True, help_text="With values of now. null: there is no message for the device."
    )
    delivery = ExplainedDeliveryOutput(
        allow_null=True, help_text="null: the device is no recipient, or its result was deleted."
    )


class ExplainOutput(serializers.Serializer[Any]):
    """Each device, the active ones first."""

    as_of = Timestamp(help_text="When the devices were read.")
    devices = ExplainedDeviceOutput(many=True, help_text="At most 100.")


def explain_output(found: Explanation) -> dict[str, Any]:
    devices = [_device(each) for each in found.devices]
    return dict(ExplainOutput({"as_of": found.as_of, "devices": devices}).data)


def _device(found: Explained) -> dict[str, Any]:
    shown = found.message
    return {
        "subscription_id": found.device.pk,
        "platform": found.device.platform,
        "verdict": found.verdict.value,
        "because": found.because,
        "steps": found.steps,
        "changes": found.changes,
        "variant": found.variant,
        "message": shown
        and {
            **{name: getattr(shown, name) for name in ("title", "body", "url", "icon", "image")},
            "buttons": [each["title"] for each in shown.actions],
        },
        "delivery": found.sent and _delivery(found.sent),
    }


def _delivery(sent: Sent) -> dict[str, Any]:
    own = sent.delivery
    names = ("code", "detail", "attempts", "due_at", "finished_at", "received_at", "clicked_at")
    return {
        "status": OUTCOMES[DeliveryStatus(own.status)],
        **{name: getattr(own, name) for name in names},
        "push_service": sent.push_service,
        "trace": sent.trace,
    }
