"""The input and the output of automations."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from typing_extensions import override

from notifications_app.api.schedule_serializers import ScheduledSendInput, StoredSend
from notifications_app.models import (
    MAX_DELAY_MINUTES,
    MAX_ONCE_DAYS,
    MAX_REPEATED_NAME,
    SKIPPED,
    Automation,
    AutomationDay,
    Recipient,
)
from notifications_app.sends.automation_schema import TriggerInput
from notifications_app.sends.automations import waiting_count
from pushsvc.common.http.fields import (
    Choice,
    Flag,
    StrictSerializer,
    Text,
    Timestamp,
    WholeNumber,
)


class AutomationInput(StrictSerializer):
    """An automation to make, or what replaces one."""

    name = Text(min_length=1, max_length=MAX_REPEATED_NAME, help_text="For people.")
    enabled = Flag(default=True, help_text="false: it notes nothing and sends nothing.")
    trigger: Any = TriggerInput(help_text="What it follows.")
    delay_minutes = WholeNumber(
        min=0, max=MAX_DELAY_MINUTES, help_text="From what happened to the send."
    )
    recipient = Choice(
        choices=Recipient.values,
        default=Recipient.DEVICE.value,
        help_text="`device`: the device to which it happened. `person`: all devices of its person.",
    )
    notification: Any = ScheduledSendInput(
        help_text="A send, as `POST /send-notification` takes it, without times and targets. Its"
        " segment or rule is the condition at the time of sending."
    )
    once_per_days = WholeNumber(
        min=1,
        max=MAX_ONCE_DAYS,
        default=None,
        help_text="People can be contacted again after so many days. null: never.",
    )


class AutomationAsked(AutomationInput):
    """The send is validated when its template is resolved."""

    notification = serializers.JSONField()


@extend_schema_field(TriggerInput)
class StoredTrigger(serializers.JSONField):
    """As it was given."""


class AutomationOutput(serializers.Serializer[Automation]):
    """An automation."""

    automation_id = serializers.UUIDField(source="id", help_text="The automation's id.")
    name = serializers.CharField(help_text="For people.")
    enabled = serializers.BooleanField(
        source="is_enabled", help_text="false: it notes nothing and sends nothing."
    )
    trigger = StoredTrigger(help_text="What it follows.")
    delay_minutes = serializers.IntegerField(help_text="From what happened to the send.")
    recipient = serializers.ChoiceField(
        choices=Recipient.values,
        help_text="`device`: the device to which it happened. `person`: all devices of its person.",
    )
    notification = StoredSend(source="send", help_text="What it sends, in full.")
    once_per_days = serializers.IntegerField(
        allow_null=True,
        help_text="People can be contacted again after so many days. null: never.",
    )
    waiting = serializers.SerializerMethodField(
        help_text="How many wait for their time. At most 100,000 are counted."
    )
    disabled_code = serializers.CharField(
        allow_null=True,
        help_text="Why the service disabled it: a code of docs/errors.md. Null: it did not.",
    )
    created_at = Timestamp(help_text="When the automation was created.")
    updated_at = Timestamp(help_text="When the owner last changed it.")

    def get_waiting(self, automation: Automation) -> int:
        return waiting_count(automation)

    @override
    def to_representation(self, instance: Automation) -> dict[str, Any]:
        shown = super().to_representation(instance)
        return {**shown, "disabled_code": instance.disabled_code or None}


_SKIPPED_HELP = {
    "repeated": "The automation has contacted the person or device already.",
    "condition": "The condition does not match.",
    "gone": "The subscription has expired or been deleted.",
    "platform": "The device is on none of the notification's platforms.",
    "stopped": "The notification of that day was stopped.",
    "late": "The time was more than a day ago.",
}


class AutomationSkippedOutput(serializers.Serializer[Any]):
    """Devices whose time came and that were not sent to, by reason."""

    @override
    def get_fields(self) -> dict[str, Any]:
        return {name: serializers.IntegerField(help_text=_SKIPPED_HELP[name]) for name in SKIPPED}


class AutomationDayOutput(serializers.Serializer[AutomationDay]):
    """What an automation did on a day."""

    begins_at = Timestamp(help_text="The first time that it fired on this day.")
    ends_at = Timestamp(help_text="The end of the day, or when the automation was changed.")
    notification_id = serializers.UUIDField(
        allow_null=True, help_text="The day's notification; null: nobody was sent anything."
    )
    fired = serializers.IntegerField(help_text="Devices that became targets of the notification.")
    skipped = AutomationSkippedOutput(help_text="Devices that did not.")
