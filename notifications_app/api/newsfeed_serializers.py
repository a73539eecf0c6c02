"""The input and the output of newsfeeds."""

from typing import Any

from django.utils import timezone
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from typing_extensions import override

from notifications_app.api.schedule_serializers import ScheduledSendInput, StoredSend
from notifications_app.models import Newsfeed
from notifications_app.sends.newsfeed_schema import NewsfeedSettings
from notifications_app.sends.newsfeeds import Preview
from notifications_app.sends.publishing import sent_today
from notifications_app.sends.stored_sends import content_of
from pushsvc.common.http.fields import Timestamp


class NewsfeedInput(NewsfeedSettings):
    """A newsfeed to make, or what replaces one."""

    notification: Any = ScheduledSendInput(
        help_text="What is sent of each new entry: a send, as `POST /send-notification` takes it,"
        " without times and targets. Texts can contain `{{ entry.title }}`, see docs/newsfeeds.md."
        " Without `url`, it opens the entry's link."
    )


class NewsfeedAsked(NewsfeedInput):
    """The send is validated when its template is resolved."""

    notification = serializers.JSONField()


class NewsfeedOutput(serializers.Serializer[Newsfeed]):
    """A newsfeed."""

    newsfeed_id = serializers.UUIDField(source="id", help_text="The newsfeed's id.")
    name = serializers.CharField(help_text="For people.")
    url = serializers.CharField(help_text="The address that is checked.")
    enabled = serializers.BooleanField(source="is_enabled", help_text="false: it sends nothing.")
    every_minutes = serializers.IntegerField(help_text="How often it is checked.")
    daily_limit = serializers.IntegerField(help_text="How many entries are sent on one day.")
    notification = StoredSend(source="send", help_text="What it sends of each entry, in full.")
    next_check_at = Timestamp(
        source="next_at", allow_null=True, help_text="The next check; null: disabled."
    )
    checked_at = Timestamp(allow_null=True, help_text="When the last check ended.")
    last_error = serializers.CharField(
        allow_null=True, help_text="What went wrong last, with a remedy. Null: nothing."
    )
    failures = serializers.IntegerField(help_text="Checks without a success since.")
    entries = serializers.IntegerField(
        source="entry_count", help_text="How many entries the feed had at the last check."
    )
    sent_today = serializers.IntegerField(
        read_only=True, help_text="How many notifications it made today, on the channel's clock."
    )
    last_notification_id = serializers.UUIDField(
        allow_null=True, help_text="The notification that it made last."
    )
    disabled_code = serializers.CharField(
        allow_null=True,
        help_text="Why the service disabled it: `gone`, `failing`, or a code of docs/errors.md."
        " Null: it did not.",
    )
    created_at = Timestamp(help_text="When the newsfeed was created.")
    updated_at = Timestamp(help_text="When the owner last changed it.")

    @override
    def to_representation(self, instance: Newsfeed) -> dict[str, Any]:
        shown = super().to_representation(instance)
        return {
            **shown,
            "sent_today": sent_today(instance, timezone.now()),
            "next_check_at": shown["next_check_at"] if instance.is_enabled else None,
            "last_error": instance.last_error or None,
            "disabled_code": instance.disabled_code or None,
        }


class NewsfeedEntry(serializers.Serializer[Any]):
    """The values of an entry for placeholders, as plain text; "" if the entry has none."""

    title = serializers.CharField(help_text="`entry.title`, at most 200 characters.")
    summary = serializers.CharField(help_text="`entry.summary`, at most 300 characters.")
    link = serializers.CharField(help_text="`entry.link`")
    image = serializers.CharField(help_text="`entry.image`")
    author = serializers.CharField(help_text="`entry.author`")
    categories = serializers.CharField(help_text="`entry.categories`, separated by commas.")
    published = serializers.CharField(help_text="`entry.published`, in UTC.")


@extend_schema_field({"type": "object", "additionalProperties": True})
class PreviewedContent(serializers.JSONField):
    """Content of a send, without fields that have their default."""


class NewsfeedPreview(serializers.Serializer[Preview]):
    """What a newsfeed would send of its newest entry."""

    checked_at = Timestamp(
        source="newsfeed.checked_at", allow_null=True, help_text="When the last check ended."
    )
    last_error = serializers.CharField(
        source="newsfeed.last_error", allow_null=True, help_text="What went wrong, or null."
    )
    entry = NewsfeedEntry(allow_null=True, help_text="The newest entry, or null: none was read.")
    notification = PreviewedContent(
        source="content",
        allow_null=True,
        help_text="The content with the values of the entry, or null: there is no entry, or the"
        " text is no longer a valid template.",
    )

    @override
    def to_representation(self, instance: Preview) -> dict[str, Any]:
        return {
            **super().to_representation(instance),
            "last_error": instance.newsfeed.last_error or None,
            "notification": content_of(instance.content) if instance.content else None,
        }
