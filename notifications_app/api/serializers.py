"""Serializers of notifications and of the events that devices report."""

from typing import Any

from rest_framework import serializers
from typing_extensions import override

from notifications_app.events import MAX_EVENTS, EventKind
from notifications_app.models import Notification
from notifications_app.states import NotificationStatus
from pushsvc.common.http.fields import Choice, ListOf, StrictSerializer, Text, Timestamp
from pushsvc.common.platforms import PLATFORM_VALUES


class SendOutput(serializers.Serializer[Any]):
    success = serializers.BooleanField(help_text="Always true.")
    message = serializers.CharField(help_text="For people; holds the notification's id.")
    notification_id = serializers.UUIDField()
    scheduled_at = Timestamp(help_text="When sending starts.")
    status = serializers.ChoiceField([NotificationStatus.PENDING.value])


class PlatformDryRun(serializers.Serializer[Any]):
    payload_bytes = serializers.IntegerField(help_text="Size of the message for one device.")
    audience = serializers.IntegerField(help_text="Active subscriptions that it would reach.")
    estimated = serializers.BooleanField(help_text="Whether `audience` is an estimate.")


class DryRunOutput(serializers.Serializer[Any]):
    platforms = serializers.DictField(child=PlatformDryRun(), help_text="By target platform.")


class EventInput(StrictSerializer):
    token = Text(help_text="The tracking token of the message.")
    event = Choice(EventKind.values, help_text="What happened to the notification.")


class EventsInput(StrictSerializer):
    """Unknown fields are refused, because an app may have misspelt one."""

    events = ListOf(EventInput(), max_length=MAX_EVENTS)

    @override
    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        return {"events": [(each["token"], each["event"]) for each in attrs["events"]]}


class CancelOutput(serializers.Serializer[Any]):
    success = serializers.BooleanField(help_text="Always true.")
    message = serializers.CharField(help_text="For people; names the id and the title.")
    notificationId = serializers.UUIDField()  # noqa: N815 (the interface's name)


class NotificationOutput(serializers.Serializer[Notification]):
    """The interface's fields in its order. Text that was not given is ""."""

    notification_id = serializers.UUIDField(source="id")
    channel_id = serializers.UUIDField()
    title = serializers.CharField()
    body = serializers.CharField()
    icon = serializers.CharField()
    url = serializers.CharField()
    recipient_count = serializers.IntegerField(help_text="Grows while recipients are counted.")
    delivered_count = serializers.IntegerField(help_text="Accepted by the push service.")
    bounced_count = serializers.IntegerField(help_text="Ended without being delivered.")
    clicked_count = serializers.IntegerField(help_text="Recipients that clicked.")
    scheduled_at = Timestamp(help_text="When sending starts or started.")
    created_at = Timestamp()
    status = serializers.ChoiceField(NotificationStatus.values)
    target_platforms = serializers.ListField(child=serializers.ChoiceField(PLATFORM_VALUES))
    segment_id = serializers.UUIDField(allow_null=True, help_text="null: the whole channel.")


class NotificationListedOutput(NotificationOutput):
    channel_id = None  # type: ignore[assignment] # how DRF leaves out a field of the base
