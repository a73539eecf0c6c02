"""Serializers of one person."""

from typing import Any

from rest_framework import serializers
from typing_extensions import override

from notifications_app.sends.personal_schema import Vars
from pushsvc.common.http.fields import Flag, StrictSerializer, Timestamp
from pushsvc.common.platforms import PLATFORM_VALUES
from subscriptions_app.categories.fields import Choices
from subscriptions_app.devices.fields import AttributeChanges, Attributes
from subscriptions_app.people.services import PersonChange
from subscriptions_app.tags.fields import Tags
from subscriptions_app.tags.services import TagChange


class PersonInput(StrictSerializer):
    """What to change of a person. What is left out stays as it is."""

    opted_out = Flag(required=False, help_text="Whether no device of the person gets anything.")
    choices = Choices(required=False)
    attributes = AttributeChanges(required=False)
    add_tags = Tags(help_text="Tags that all devices of the person get.")
    remove_tags = Tags(help_text="Tags that no device of the person has any more.")

    @override
    def to_internal_value(self, data: dict[str, Any]) -> Any:
        known = super().to_internal_value(data)
        added, removed = known.get("add_tags", []), known.get("remove_tags", [])
        return {
            "change": PersonChange(
                opted_out=known.get("opted_out"),
                choices=known.get("choices", {}),
                attributes=known.get("attributes", {}),
                tags=TagChange(added=added, removed=removed) if added or removed else None,
            )
        }


class PersonDeviceOutput(serializers.Serializer[Any]):
    """A device of the person."""

    subscription_id = serializers.UUIDField(help_text="The subscription's id.")
    platform = serializers.ChoiceField(PLATFORM_VALUES, help_text="What it receives push by.")
    active = serializers.BooleanField(help_text="Whether it gets messages.")
    created_at = Timestamp(help_text="When it first subscribed.")
    last_seen_at = Timestamp(help_text="When it last subscribed.")
    timezone = serializers.CharField(help_text='An IANA name, or "".')
    language = serializers.CharField(help_text='BCP 47, or "".')
    attributes = Attributes()
    tags = serializers.ListField(child=serializers.CharField(), help_text="In their order.")


class PersonOutput(serializers.Serializer[Any]):
    """A person."""

    external_id = serializers.CharField(help_text="The owner's id of the user.")
    created_at = Timestamp(help_text="When the person was first named.")
    opted_out = serializers.BooleanField(help_text="Whether no device gets anything.")
    choices = serializers.DictField(
        child=serializers.BooleanField(), help_text="By category: what the person chose."
    )
    devices = PersonDeviceOutput(many=True, help_text="All that are stored, the oldest first.")


class ErasedCount(serializers.Serializer[Any]):
    """What was deleted."""

    devices = serializers.IntegerField(help_text="Devices of the person.")


class ErasedOutput(serializers.Serializer[Any]):
    """That nothing is stored of the person any more."""

    erased = ErasedCount(help_text="How much it was.")


class OutcomeKnown(serializers.Serializer[Any]):
    """What became of a notification for the device."""

    notification_id = serializers.UUIDField(help_text="The notification's id.")
    title = serializers.CharField(help_text="What it said.")
    body = serializers.CharField(help_text="What it said.")
    outcome = serializers.CharField(help_text="`waiting`, `delivered` or `bounced`.")
    code = serializers.CharField(help_text="Why it bounced.")
    finished_at = Timestamp(allow_null=True, help_text="When that was known.")
    received_at = Timestamp(allow_null=True, help_text="When the device reported it.")
    clicked_at = Timestamp(allow_null=True, help_text="When the device reported it.")
    dismissed_at = Timestamp(allow_null=True, help_text="When the device reported it.")


class DeviceKnown(serializers.Serializer[Any]):
    """Everything that is stored of a device."""

    subscription_id = serializers.UUIDField(help_text="The subscription's id.")
    channel_id = serializers.UUIDField(help_text="The channel's id.")
    platform = serializers.ChoiceField(PLATFORM_VALUES, help_text="What it receives push by.")
    address = serializers.CharField(help_text="Its endpoint or token.")
    p256dh = serializers.CharField(help_text="A browser's public key.")
    auth = serializers.CharField(help_text="A secret of the device.")
    push_service = serializers.CharField(help_text="Which service takes messages for it.")
    expired_code = serializers.CharField(help_text="Why it ended.")
    attributes = Attributes()
    tags = serializers.ListField(child=serializers.CharField(), help_text="In their order.")
    timezone = serializers.CharField(help_text='An IANA name, or "".')
    language = serializers.CharField(help_text='BCP 47, or "".')
    choices = serializers.DictField(
        child=serializers.BooleanField(),
        help_text="Those without proof. A choice of the person counts before them.",
    )
    created_at = Timestamp(help_text="When it first subscribed.")
    registered_at = Timestamp(help_text="When it last subscribed.")
    expired_at = Timestamp(allow_null=True, help_text="When it ended.")
    last_clicked_at = Timestamp(allow_null=True, help_text="When it last reported a click.")
    deliveries = OutcomeKnown(many=True, help_text="As far as they are kept, the newest first.")


class ValuesKnown(serializers.Serializer[Any]):
    """Values that a direct send gave for the person's message."""

    notification_id = serializers.UUIDField(help_text="The notification's id.")
    vars = Vars(help_text="By name.")


class ContactKnown(serializers.Serializer[Any]):
    """When a notification contacted the person, for caps."""

    notification_id = serializers.UUIDField(help_text="The notification's id.")
    at = Timestamp(help_text="When it was planned.")


class ScheduleKnown(ContactKnown):
    """When a schedule with `once_per_days` last contacted the person."""

    schedule_id = serializers.UUIDField(help_text="The schedule's id.")


class AutomationKnown(serializers.Serializer[Any]):
    """When an automation last contacted the person."""

    automation_id = serializers.UUIDField(help_text="The automation's id.")
    at = Timestamp(help_text="When it was planned.")


class WaitingKnown(AutomationKnown):
    """When an automation will contact a device, if its condition holds then."""

    subscription_id = serializers.UUIDField(help_text="The subscription's id.")


class PersonKnown(serializers.Serializer[Any]):
    """Everything that is stored of a person."""

    external_id = serializers.CharField(help_text="The owner's id of the user.")
    channel_id = serializers.UUIDField(help_text="The channel's id.")
    created_at = Timestamp(help_text="When the person was first named.")
    opted_out_at = Timestamp(allow_null=True, help_text="Since when no device gets anything.")
    choices = serializers.DictField(
        child=serializers.BooleanField(), help_text="By category: what the person chose."
    )
    devices = DeviceKnown(many=True, help_text="All that are stored, the oldest first.")
    values = ValuesKnown(many=True, help_text="As far as targets are kept, the newest first.")
    contacts = ContactKnown(many=True, help_text="As far as caps need them, the newest first.")
    schedules = ScheduleKnown(many=True, help_text="The newest first.")
    automations = AutomationKnown(many=True, help_text="The newest first.")
    waiting = WaitingKnown(many=True, help_text="The next first.")
