"""The totals of channels, and their changes by hour."""

from django.db import models
from typing_extensions import override

from channels_app.models.channels import Channel


class ChannelCounter(models.Model):
    """A share of a channel's totals. A share may be negative, but the sum never is."""

    pk = models.CompositePrimaryKey("channel_id", "shard")
    channel = models.ForeignKey(Channel, on_delete=models.CASCADE, related_name="counters")
    shard = models.SmallIntegerField()
    web_subscribers = models.BigIntegerField(default=0, db_default=0)
    android_subscribers = models.BigIntegerField(default=0, db_default=0)
    ios_subscribers = models.BigIntegerField(default=0, db_default=0)
    stored_subscriptions = models.BigIntegerField(
        default=0, db_default=0, help_text="Rows, including expired subscriptions."
    )
    notifications_sent = models.BigIntegerField(default=0, db_default=0)
    recipients = models.BigIntegerField(default=0, db_default=0)
    delivered = models.BigIntegerField(default=0, db_default=0)
    bounced = models.BigIntegerField(default=0, db_default=0)
    clicked = models.BigIntegerField(default=0, db_default=0)
    people = models.BigIntegerField(
        default=0, db_default=0, help_text="Persons that have an active device."
    )
    linked_devices = models.BigIntegerField(
        default=0, db_default=0, help_text="Active devices that belong to a person."
    )

    @override
    def __str__(self) -> str:
        return f"{self.channel_id} shard {self.shard}"


KEPT_TOTALS = ("notifications_sent", "recipients", "delivered", "bounced", "clicked")


class DeletedTotals(models.Model):
    """One row: the totals of all deleted channels, so that the installation's totals never fall."""

    notifications_sent = models.BigIntegerField(default=0)
    recipients = models.BigIntegerField(default=0)
    delivered = models.BigIntegerField(default=0)
    bounced = models.BigIntegerField(default=0)
    clicked = models.BigIntegerField(default=0)

    @override
    def __str__(self) -> str:
        return "deleted channels"


class ChannelHour(models.Model):
    """A share of how an hour (UTC) changed a channel's totals, for charts.

    A transaction counts only its net change, so a device that moves to another address is neither
    gained nor lost. The shares of past hours are merged into share 0.
    """

    pk = models.CompositePrimaryKey("channel_id", "hour", "shard")
    channel = models.ForeignKey(Channel, on_delete=models.CASCADE, related_name="+", db_index=False)
    hour = models.DateTimeField()
    shard = models.SmallIntegerField()
    web_gained = models.BigIntegerField(default=0, db_default=0)
    web_lost = models.BigIntegerField(default=0, db_default=0)
    android_gained = models.BigIntegerField(default=0, db_default=0)
    android_lost = models.BigIntegerField(default=0, db_default=0)
    ios_gained = models.BigIntegerField(default=0, db_default=0)
    ios_lost = models.BigIntegerField(default=0, db_default=0)
    notifications_sent = models.BigIntegerField(default=0, db_default=0)

    class Meta:
        indexes = [
            models.Index(fields=["hour"], name="channel_hour"),
            models.Index(
                fields=["hour"], condition=~models.Q(shard=0), name="channel_hour_unmerged"
            ),
        ]

    @override
    def __str__(self) -> str:
        return f"{self.channel_id} {self.hour:%Y-%m-%d %H:00} shard {self.shard}"


class PromptKind(models.TextChoices):
    BELL = "bell"
    SLIDE_IN = "slide-in"
    BUTTON = "button"
    CATEGORIES = "categories"


PROMPT_EVENTS = ("shown", "accepted", "refused", "blocked")  # columns of PromptHour


class PromptHour(models.Model):
    """A share of what visitors of the channel's sites did with one kind of prompt in an hour (UTC).

    Sites report it without a proof. The shares of past hours are merged into share 0.
    """

    pk = models.CompositePrimaryKey("channel_id", "hour", "kind", "shard")
    channel = models.ForeignKey(Channel, on_delete=models.CASCADE, related_name="+", db_index=False)
    hour = models.DateTimeField()
    kind = models.CharField(max_length=10, choices=PromptKind.choices)
    shard = models.SmallIntegerField()
    shown = models.BigIntegerField(default=0, db_default=0)
    accepted = models.BigIntegerField(default=0, db_default=0)
    refused = models.BigIntegerField(default=0, db_default=0)
    blocked = models.BigIntegerField(default=0, db_default=0)

    class Meta:
        indexes = [
            models.Index(
                fields=["hour"], condition=~models.Q(shard=0), name="prompt_hour_unmerged"
            ),
        ]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(kind__in=PromptKind.values), name="prompt_hour_kind"
            ),
        ]

    @override
    def __str__(self) -> str:
        return f"{self.channel_id} {self.hour:%Y-%m-%d %H:00} {self.kind} shard {self.shard}"
