"""The shape of a send, and of everything that is answered about notifications."""

import re
from typing import Any, Final

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from typing_extensions import override

from notifications_app.models import Notification, Urgency
from notifications_app.states import NotificationStatus
from pushsvc.common.fields import (
    Choice,
    Flag,
    HttpUrl,
    Id,
    ListOf,
    StrictSerializer,
    StringMap,
    Text,
    Timestamp,
    WholeNumber,
    refuse,
)
from pushsvc.common.platforms import Platform

MAX_TTL: Final = 28 * 24 * 3600
DEFAULT_TTL: Final = 3 * 24 * 3600
_TOPIC: Final = re.compile(r"[A-Za-z0-9_-]{1,32}", re.ASCII)


@extend_schema_field({"type": "string", "pattern": "^[A-Za-z0-9_-]{1,32}$"})
class Topic(Text):
    """RFC 8030 section 5.4."""

    @override
    def to_internal_value(self, data: object) -> str:
        text = super().to_internal_value(data)
        if not _TOPIC.fullmatch(text):
            refuse("not_a_topic", "Must be 1 to 32 base64url characters.")
        return text


class SendInput(StrictSerializer):
    """Unknown fields are refused: a misspelt `scheduled_at` must not send to everybody at once."""

    # `default=str` is "", which the schema then does not show: it is no value that may be sent.
    body = Text(min_length=1, max_length=255, help_text="Main text.")
    title = Text(max_length=100, default="")
    url = HttpUrl(min_length=1, default=str, help_text="Opened on click.")
    icon = HttpUrl(min_length=1, default=str)
    image = HttpUrl(min_length=1, default=str)
    scheduled_at = Timestamp(
        default=None, help_text="When omitted or in the past, the notification is sent at once."
    )
    segment_id = Id(default=None, allow_null=True, help_text="null is the whole channel.")
    target_platforms = ListOf(
        Choice(Platform.values), default=[Platform.WEB.value], help_text="Duplicates are folded."
    )
    data = StringMap(  # type: ignore[assignment] # Serializer.data stays: DRF lifts fields out
        default={}, help_text="Handed to the device as it is."
    )
    ttl = WholeNumber(
        min=0,
        max=MAX_TTL,
        default=DEFAULT_TTL,
        help_text="Seconds that the push service keeps trying; 0: deliver at once or drop.",
    )
    urgency = Choice(Urgency.values, default=Urgency.NORMAL.value)
    topic = Topic(
        min_length=1,
        default=str,
        help_text="A newer notification with the same topic replaces an older one on the device.",
    )
    dry_run = Flag(default=False, help_text="Check everything; store and send nothing.")

    @override
    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        return {**attrs, "target_platforms": tuple(dict.fromkeys(attrs["target_platforms"]))}


class SendOutput(serializers.Serializer[Any]):
    success = serializers.BooleanField()
    message = serializers.CharField()
    notification_id = serializers.UUIDField()
    scheduled_at = Timestamp()
    status = serializers.ChoiceField([NotificationStatus.PENDING.value])


class PlatformTrial(serializers.Serializer[Any]):
    payload_bytes = serializers.IntegerField(help_text="Of the message as the device would get it.")
    audience = serializers.IntegerField(help_text="Active subscriptions.")
    estimated = serializers.BooleanField(help_text="Whether `audience` is an estimate.")


class TrialOutput(serializers.Serializer[Any]):
    platforms = serializers.DictField(child=PlatformTrial())


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
    target_platforms = serializers.ListField(child=serializers.ChoiceField(Platform.values))
    segment_id = serializers.UUIDField(allow_null=True)


class NotificationListedOutput(NotificationOutput):
    channel_id = None  # type: ignore[assignment] # how DRF leaves out a field of the base
