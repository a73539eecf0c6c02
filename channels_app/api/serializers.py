"""The fields that the channel endpoints read and write."""

from typing import Any

from rest_framework import serializers
from typing_extensions import override

from channels_app.models import Channel
from channels_app.selectors import ChannelTotals
from pushsvc.common.http.fields import StrictSerializer, Text, Timestamp

_APNS_ENTRIES = ("key_id", "team_id", "topic", "environment")


class ProvidersConfigInput(StrictSerializer):
    fcm_service_account = Text(
        min_length=1,
        required=False,
        help_text="The service account's JSON file, as a string.",
    )
    apns_key = Text(
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
            fault = serializers.ErrorDetail("Must accompany the other entries.", code="required")
            raise serializers.ValidationError({"apns_key": [fault]})
        if not attrs:
            detail = "Must contain fcm_service_account, apns_key or both."
            raise serializers.ValidationError(detail, code="empty")
        return {
            "fcm_service_account": attrs.get("fcm_service_account"),
            "apns_key": attrs.get("apns_key"),
            "apns_entries": entries,
        }


class ProvidersInput(StrictSerializer):
    providers_config = ProvidersConfigInput()


class MessageOutput(serializers.Serializer[Any]):
    message = serializers.CharField()


class WebPushKeyOutput(serializers.Serializer[Any]):
    public_key = serializers.CharField(
        help_text="base64url without padding, for `applicationServerKey`."
    )


class PlatformsOutput(serializers.Serializer[Any]):
    web = serializers.BooleanField()
    android = serializers.BooleanField()
    ios = serializers.BooleanField()


class ChannelOutput(serializers.Serializer[Any]):
    channel_id = serializers.UUIDField()
    name = serializers.CharField()
    created_at = Timestamp()
    platforms = PlatformsOutput()


class NotificationStatsOutput(serializers.Serializer[Any]):
    total_notifications_sent = serializers.IntegerField()
    total_recipients = serializers.IntegerField()
    total_delivered = serializers.IntegerField()
    total_bounced = serializers.IntegerField()
    total_clicked = serializers.IntegerField()


class ChannelStatisticsOutput(serializers.Serializer[Any]):
    channel_info = ChannelOutput()
    subscriber_count = serializers.IntegerField()
    notification_stats = NotificationStatsOutput()


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
