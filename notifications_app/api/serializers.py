"""The shapes of what is answered about notifications, and of what devices report."""

from typing import Any

from rest_framework import serializers
from typing_extensions import override

from notifications_app.events import MAX_EVENTS, Event
from notifications_app.models import Notification
from notifications_app.states import NotificationStatus
from pushsvc.common.http.fields import Choice, ListOf, StrictSerializer, Text, Timestamp
from pushsvc.common.platforms import PLATFORM_VALUES


class SendOutput(serializers.Serializer[Any]):
    success = serializers.BooleanField()
    message = serializers.CharField()
    notification_id = serializers.UUIDField()
    scheduled_at = Timestamp()
    status = serializers.ChoiceField([NotificationStatus.PENDING.value])


class PlatformDryRun(serializers.Serializer[Any]):
    payload_bytes = serializers.IntegerField(help_text="Of the message as the device would get it.")
    audience = serializers.IntegerField(help_text="Active subscriptions.")
    estimated = serializers.BooleanField(help_text="Whether `audience` is an estimate.")


class DryRunOutput(serializers.Serializer[Any]):
    platforms = serializers.DictField(child=PlatformDryRun())


class EventInput(StrictSerializer):
    token = Text(help_text="As the message brought it.")
    event = Choice(Event.values)


class EventsInput(StrictSerializer):
    """Unknown fields are refused: who writes them is our SDK, or an app that misspells one."""

    events = ListOf(EventInput(), max_length=MAX_EVENTS)

    @override
    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        return {"events": [(each["token"], each["event"]) for each in attrs["events"]]}


class CancelOutput(serializers.Serializer[Any]):
    success = serializers.BooleanField()
    message = serializers.CharField()
    notificationId = serializers.UUIDField()  # noqa: N815 (the interface's name)


class NotificationOutput(serializers.Serializer[Notification]):
    """The interface's fields in its order. Texts that were not given read as ""."""

    notification_id = serializers.UUIDField(source="id")
    channel_id = serializers.UUIDField()
    title = serializers.CharField()
    body = serializers.CharField()
    icon = serializers.CharField()
    url = serializers.CharField()
    recipient_count = serializers.IntegerField()
    delivered_count = serializers.IntegerField()
    bounced_count = serializers.IntegerField()
    clicked_count = serializers.IntegerField()
    scheduled_at = Timestamp()
    created_at = Timestamp()
    status = serializers.ChoiceField(NotificationStatus.values)
    target_platforms = serializers.ListField(child=serializers.ChoiceField(PLATFORM_VALUES))
    segment_id = serializers.UUIDField(allow_null=True)


class NotificationListedOutput(NotificationOutput):
    channel_id = None  # type: ignore[assignment] # how DRF leaves out a field of the base
