"""Whom sends contacted lately: for caps, and for schedules that reach everyone once in some days.

A key is a person, or a device without one. No foreign keys: planners write thousands of rows in a
statement, and rows may outlive what they name for a while.
"""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from typing_extensions import override

from notifications_app.models.schedules import Schedule


class Contact(models.Model):
    """When which notifications contacted a person or a device: two lists in the same order. Each
    notification is in them once, with its first contact."""

    key = models.UUIDField(primary_key=True)
    channel_id = models.UUIDField()
    times = ArrayField(models.DateTimeField())
    sends = ArrayField(models.UUIDField(), help_text="The notifications.")
    expires_on = models.DateField(help_text="From this day on (UTC), no cap counts any of them.")

    class Meta:
        # Contains only what changes once a day, so that other updates are HOT.
        indexes = [models.Index(fields=["expires_on"], name="contact_expired")]

    @override
    def __str__(self) -> str:
        return str(self.key)


class Once(models.Model):
    """When a schedule last contacted a person or a device: the first contact of its notification.
    Kept for a while if the schedule is deleted, because a notification of it may still be planned.
    """

    pk = models.CompositePrimaryKey("schedule_id", "key")
    schedule = models.ForeignKey(
        Schedule,
        on_delete=models.DO_NOTHING,
        db_constraint=False,
        db_index=False,
        related_name="+",
    )
    key = models.UUIDField()
    send = models.UUIDField(help_text="The notification.")
    at = models.DateTimeField()

    class Meta:
        indexes = [models.Index(fields=["at"], name="once_age")]

    @override
    def __str__(self) -> str:
        return f"{self.schedule_id} {self.key}"
