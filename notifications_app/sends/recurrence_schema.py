"""The fields that say when a schedule sends. The API and the console read them with the same
serializer."""

from typing_extensions import override

from notifications_app.recurrence import MAX_RULE, MOST_COUNT, MOST_TIMES, RECIPIENT
from pushsvc.common.http.fields import ClockTime, Day, ListOf, StrictSerializer, Text, WholeNumber
from subscriptions_app.devices.fields import TimeZone


class RecurrenceZone(TimeZone):
    """A name of tzdata, or `recipient`."""

    @override
    def to_internal_value(self, data: object) -> str:
        return RECIPIENT if data == RECIPIENT else super().to_internal_value(data)


class RecurrenceInput(StrictSerializer):
    """When a schedule sends: days of a rule, and times of those days."""

    never_null = frozenset({"at", "rule", "timezone"})

    rule = Text(
        min_length=1,
        max_length=MAX_RULE,
        help_text="A subset of RRULE (RFC 5545), such as `FREQ=WEEKLY;BYDAY=MO,TH`. See"
        " docs/schedules.md.",
    )
    at = ListOf(
        ClockTime(),
        max_length=MOST_TIMES,
        help_text="Times of each day, such as `09:00`, at least 15 minutes apart.",
    )
    timezone = RecurrenceZone(
        min_length=1, help_text="A name of tzdata, or `recipient`: the clock of each device."
    )
    starts_on = Day(
        default=None,
        allow_null=True,
        help_text="The first day, from which intervals are counted. Null: today in `timezone`.",
    )
    ends_on = Day(default=None, allow_null=True, help_text="The last day; null: none.")
    count = WholeNumber(
        default=None,
        allow_null=True,
        min=1,
        max=MOST_COUNT,
        help_text="How many occurrences there are from `starts_on` on; null: any number.",
    )
