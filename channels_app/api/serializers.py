"""The fields that the channel endpoints read and write."""

from typing import Any

from rest_framework import serializers
from typing_extensions import override

from channels_app.models import Channel
from channels_app.selectors import ChannelTotals
from pushsvc.common.http.fields import StrictSerializer, Text, Timestamp, refuse

_APNS_ENTRIES = ("key_id", "team_id", "topic", "environment")
_NOT_AN_OBJECT = (
    "Must be a string that contains the JSON, not the JSON object itself. Encode the object as a "
    "string, for example with JSON.stringify or json.dumps."
)


class FileText(Text):
    """The JSON of a file, as a string. The error for an object explains how to encode it."""

    @override
    def to_internal_value(self, data: object) -> str:
        if isinstance(data, dict):
            refuse("not_a_string", _NOT_AN_OBJECT)
        return super().to_internal_value(data)


class ProvidersConfigInput(StrictSerializer):
    """Credentials of push services. Missing fields do not change."""

    fcm_service_account = FileText(
        min_length=1,
        required=False,
        help_text="The service account's JSON file, as a string.",
    )
    apns_key = FileText(
        min_length=1,
        required=False,
        help_text=(
            "A JSON string with `key` (the .p8 text), `key_id`, `team_id`, `topic` and "
            "`environment`. Or the bare .p8 text, with the other four beside it or stored already."
        ),
    )
    apns_key_id = Text(min_length=1, required=False, help_text="With a bare .p8 text.")
    apns_team_id = Text(min_length=1, required=False, help_text="With a bare .p8 text.")
    apns_topic = Text(min_length=1, required=False, help_text="With a bare .p8 text: bundle id.")
    apns_environment = Text(
        min_length=1, required=False, help_text="With a bare .p8 text: production or sandbox."
    )

    @override
    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Returns the arguments of `provider_credentials_store`."""
        entries = {name: attrs[f"apns_{name}"] for name in _APNS_ENTRIES if f"apns_{name}" in attrs}
        if entries and "apns_key" not in attrs:
            error = serializers.ErrorDetail("Must accompany the other entries.", code="required")
            raise serializers.ValidationError({"apns_key": [error]})
        if not attrs:
            detail = "Must contain fcm_service_account, apns_key or both."
            raise serializers.ValidationError(detail, code="empty")
        return {
            "fcm_service_account": attrs.get("fcm_service_account"),
            "apns_key": attrs.get("apns_key"),
            "apns_entries": entries,
        }


class ProvidersInput(StrictSerializer):
    """A channel's credentials."""

    providers_config = ProvidersConfigInput(help_text="One provider's credentials, or both.")


class MessageOutput(serializers.Serializer[Any]):
    """A confirmation."""

    message = serializers.CharField(help_text="For people.")


class WebPushKeyOutput(serializers.Serializer[Any]):
    """The key that browsers subscribe with, and earlier ones."""

    public_key = serializers.CharField(
        help_text="base64url without padding, for `applicationServerKey`."
    )
    retired_keys = serializers.ListField(
        child=serializers.CharField(),
        help_text="Keys that the channel had before; their subscriptions still work. A subscription"
        " with any other key belongs to another push service.",
    )


class PlatformsOutput(serializers.Serializer[Any]):
    """Which platforms are enabled."""

    web = serializers.BooleanField(help_text="Whether browsers are enabled.")
    android = serializers.BooleanField(help_text="Whether Android is enabled.")
    ios = serializers.BooleanField(help_text="Whether iOS is enabled.")


class ChannelOutput(serializers.Serializer[Any]):
    """A channel."""

    channel_id = serializers.UUIDField(help_text="The channel's id.")
    name = serializers.CharField(help_text="As staff named it.")
    created_at = Timestamp(help_text="When the channel was created.")
    platforms = PlatformsOutput(help_text="Which platforms the channel sends to.")


class NotificationStatsOutput(serializers.Serializer[Any]):
    """Sums over a channel's notifications."""

    total_notifications_sent = serializers.IntegerField(help_text="Notifications that are sent.")
    total_recipients = serializers.IntegerField(help_text="Recipients of all notifications.")
    total_delivered = serializers.IntegerField(
        help_text="Recipients whose push service accepted the message."
    )
    total_bounced = serializers.IntegerField(help_text="Recipients that could not be reached.")
    total_clicked = serializers.IntegerField(help_text="Recipients that clicked.")


class ChannelStatisticsOutput(serializers.Serializer[Any]):
    """A channel with its counts."""

    channel_info = ChannelOutput(help_text="The channel.")
    subscriber_count = serializers.IntegerField(help_text="Active subscriptions.")
    notification_stats = NotificationStatsOutput(help_text="Sums of all notifications.")


def channel_statistics(channel: Channel, totals: ChannelTotals) -> dict[str, Any]:
    values = {
        "channel_info": {
            "channel_id": channel.id,
            "name": channel.name,
            "created_at": channel.created_at,
            "platforms": channel.platforms,
        },
        "subscriber_count": totals.subscribers,
        "notification_stats": {
            "total_notifications_sent": totals.notifications_sent,
            "total_recipients": totals.recipients,
            "total_delivered": totals.delivered,
            "total_bounced": totals.bounced,
            "total_clicked": totals.clicked,
        },
    }
    return dict(ChannelStatisticsOutput(values).data)
