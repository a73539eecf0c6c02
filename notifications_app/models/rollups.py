"""Counts of outcomes and events, which are kept when deliveries are purged."""

from django.db import models
from django.db.models import Q
from typing_extensions import override

from channels_app.models import Channel
from notifications_app.models.notification import Notification
from pushsvc.common.platforms import PLATFORM_CHOICES, PLATFORM_VALUES


class HourlyStat(models.Model):
    """A share of the counts of a channel's platform in an hour (UTC), for charts, without tests.
    `stopped`, `opted_out` and `expired` are parts of `bounced`. The shares of past hours are merged
    into share 0."""

    pk = models.CompositePrimaryKey("channel_id", "platform", "hour", "shard")
    channel = models.ForeignKey(Channel, on_delete=models.CASCADE, related_name="+")
    platform = models.CharField(max_length=7, choices=PLATFORM_CHOICES)
    hour = models.DateTimeField()
    recipients = models.BigIntegerField(default=0, db_default=0)
    delivered = models.BigIntegerField(default=0, db_default=0)
    bounced = models.BigIntegerField(default=0, db_default=0)
    stopped = models.BigIntegerField(default=0, db_default=0)
    opted_out = models.BigIntegerField(default=0, db_default=0)
    expired = models.BigIntegerField(default=0, db_default=0)
    deferred = models.BigIntegerField(default=0, db_default=0)
    clicked = models.BigIntegerField(default=0, db_default=0)
    shard = models.IntegerField(default=0, db_default=0)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(platform__in=PLATFORM_VALUES), name="hourly_platform"
            ),
        ]
        indexes = [
            models.Index(fields=["hour"], name="hourly_hour"),
            models.Index(fields=["hour"], condition=~Q(shard=0), name="hourly_unmerged"),
        ]

    @override
    def __str__(self) -> str:
        return f"{self.channel_id} {self.platform} {self.hour:%Y-%m-%d %H:00}"


class OutcomeMinute(models.Model):
    """A share of how many of a notification's recipients ended with a code in a minute (UTC).

    Exact, because the same flush writes it. Kept when deliveries are purged. `code`: as in the
    delivery, "" for delivered. The row of a notification that is being sent counts share 0 only.
    The shares of past minutes are merged into it.
    """

    pk = models.CompositePrimaryKey("notification_id", "minute", "platform", "code", "shard")
    notification = models.ForeignKey(
        Notification, on_delete=models.CASCADE, related_name="+", db_index=False
    )
    minute = models.DateTimeField()
    platform = models.CharField(max_length=7, choices=PLATFORM_CHOICES)
    code = models.CharField(max_length=64)
    count = models.BigIntegerField()
    shard = models.IntegerField(default=0, db_default=0)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(platform__in=PLATFORM_VALUES), name="outcome_platform"
            ),
        ]
        indexes = [
            models.Index(fields=["notification"], condition=~Q(shard=0), name="outcome_unmerged"),
        ]

    @override
    def __str__(self) -> str:
        outcome = self.code or "delivered"
        return f"{self.notification_id} {self.platform} {self.minute:%H:%M} {outcome}"


class ActionCount(models.Model):
    """How many of a notification's recipients clicked a button first, by the button's id.

    Written by the statement that adds the click to the notification's counts. Kept when deliveries
    are purged.
    """

    pk = models.CompositePrimaryKey("notification_id", "action")
    notification = models.ForeignKey(
        Notification, on_delete=models.CASCADE, related_name="+", db_index=False
    )
    action = models.CharField(max_length=32)
    count = models.BigIntegerField()

    @override
    def __str__(self) -> str:
        return f"{self.notification_id} {self.action}"


class VariantCount(models.Model):
    """What is known of a notification's variant beside the counts of its batches.

    The events are written by the statement that adds them to the notification's counts. The other
    counts are those of batches that were purged, so that the sums stay.
    """

    pk = models.CompositePrimaryKey("notification_id", "variant")
    notification = models.ForeignKey(
        Notification, on_delete=models.CASCADE, related_name="+", db_index=False
    )
    variant = models.SmallIntegerField(help_text="From 0, as in the content.")
    recipients = models.BigIntegerField(default=0, db_default=0)
    delivered = models.BigIntegerField(default=0, db_default=0)
    bounced = models.BigIntegerField(default=0, db_default=0)
    received = models.BigIntegerField(default=0, db_default=0)
    clicked = models.BigIntegerField(default=0, db_default=0)
    dismissed = models.BigIntegerField(default=0, db_default=0)

    @override
    def __str__(self) -> str:
        return f"{self.notification_id} {self.variant}"


class EventHour(models.Model):
    """How many of a notification's recipients first reported an event in an hour (UTC).

    Written by the statement that adds the event to the notification's counts, so the sums are
    equal, except for events from before this table existed. Kept when deliveries are purged. A
    notification has at most TOKEN_DAYS of hours, because later events do not count.
    """

    pk = models.CompositePrimaryKey("notification_id", "hour", "platform")
    notification = models.ForeignKey(
        Notification, on_delete=models.CASCADE, related_name="+", db_index=False
    )
    hour = models.DateTimeField()
    platform = models.CharField(max_length=7, choices=PLATFORM_CHOICES)
    received = models.BigIntegerField(default=0, db_default=0)
    clicked = models.BigIntegerField(default=0, db_default=0)
    dismissed = models.BigIntegerField(default=0, db_default=0)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(platform__in=PLATFORM_VALUES), name="event_hour_platform"
            ),
        ]

    @override
    def __str__(self) -> str:
        return f"{self.notification_id} {self.platform} {self.hour:%Y-%m-%d %H:00}"
