"""The input and the output of schedules."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from typing_extensions import override

from notifications_app.models import (
    MAX_ONCE_DAYS,
    MAX_REPEATED_NAME,
    Occurrence,
    Schedule,
)
from notifications_app.sends.recurrence_schema import RecurrenceInput
from notifications_app.sends.schema import ScheduledSend
from pushsvc.common.http.fields import Flag, StrictSerializer, Text, Timestamp, WholeNumber


class ScheduledSendInput(ScheduledSend):
    """The notification that a schedule sends. Null removes a field of the template."""

    never_null = frozenset({"body"})

    @override
    def get_fields(self) -> dict[str, Any]:
        fields = super().get_fields()
        fields["body"].required = False
        fields["body"].help_text = "Main text. Required, unless a template gives it."
        return fields


class ScheduleInput(StrictSerializer):
    """A schedule to make, or what replaces one."""

    name = Text(min_length=1, max_length=MAX_REPEATED_NAME, help_text="For people.")
    enabled = Flag(default=True, help_text="false: it sends nothing.")
    notification: Any = ScheduledSendInput(
        help_text="A send, as `POST /send-notification` takes it, without times and targets."
    )
    recurrence = RecurrenceInput(help_text="When it is sent.")
    once_per_days = WholeNumber(
        min=1,
        max=MAX_ONCE_DAYS,
        default=None,
        help_text="People whom the schedule contacted within so many days are skipped. null: they"
        " are not. See docs/caps.md.",
    )


class ScheduleAsked(ScheduleInput):
    """The send is validated when its template is resolved."""

    notification = serializers.JSONField()


@extend_schema_field(RecurrenceInput)
class StoredRecurrence(serializers.JSONField):
    """As it was given, with the first day."""


@extend_schema_field(ScheduledSendInput)
class StoredSend(serializers.JSONField):
    """With the content of the template, and without fields that have their default."""


class ScheduleOutput(serializers.Serializer[Schedule]):
    """A schedule."""

    schedule_id = serializers.UUIDField(source="id", help_text="The schedule's id.")
    name = serializers.CharField(help_text="For people.")
    enabled = serializers.BooleanField(source="is_enabled", help_text="false: it sends nothing.")
    notification = StoredSend(source="send", help_text="What it sends, in full.")
    recurrence = StoredRecurrence(help_text="When it is sent.")
    once_per_days = serializers.IntegerField(
        allow_null=True,
        help_text="People whom the schedule contacted within so many days are skipped.",
    )
    next_at = Timestamp(
        allow_null=True, help_text="The next occurrence; null: disabled, or none follows."
    )
    last_notification_id = serializers.UUIDField(
        allow_null=True, help_text="The notification that it made last."
    )
    disabled_code = serializers.CharField(
        allow_null=True,
        help_text="Why the service disabled it: a code of docs/errors.md. Null: it did not.",
    )
    created_at = Timestamp(help_text="When the schedule was created.")
    updated_at = Timestamp(help_text="When the owner last changed it.")

    @override
    def to_representation(self, instance: Schedule) -> dict[str, Any]:
        shown = super().to_representation(instance)
        return {
            **shown,
            "next_at": shown["next_at"] if instance.is_enabled else None,
            "disabled_code": instance.disabled_code or None,
        }


class OccurrenceOutput(serializers.Serializer[Occurrence]):
    """What became of an occurrence."""

    occurs_at = Timestamp(help_text="When it was due.")
    notification_id = serializers.UUIDField(
        allow_null=True, help_text="The notification; null: none was made."
    )
    code = serializers.CharField(
        help_text="`sent`, `skipped`, `skipped_late`, or why it was refused: a code of"
        " docs/errors.md."
    )
