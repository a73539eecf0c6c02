"""People: all devices of a channel that have the same `external_id`."""

from typing import Any, Final

from django.db import models
from django.db.models.functions import Now
from typing_extensions import override

from channels_app.models import Channel
from pushsvc.common.ids import uuid7

OPTED_OUT: Final = "opted_out"  # the code of subscriptions that ended when their person opted out
MAX_EXTERNAL_ID: Final = 128
MOST_DEVICES: Final = 100  # active ones of a person


class Person(models.Model):
    """All devices of a channel with one external id. Kept while it has a device or a choice, unless
    there are too many of them (subscriptions_app/people/purge.py)."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    channel = models.ForeignKey(
        Channel, on_delete=models.CASCADE, related_name="people", db_index=False
    )
    external_id = models.CharField(max_length=MAX_EXTERNAL_ID)
    active_devices = models.PositiveIntegerField(default=0, db_default=0)
    opted_out_at = models.DateTimeField(
        null=True, blank=True, help_text="Since then no device of the person is active."
    )
    choices: Any = models.JSONField(
        default=dict,
        db_default=models.Value({}, output_field=models.JSONField()),
        help_text="By category: whether the person wants its notifications.",
    )
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    left_at = models.DateTimeField(
        null=True, blank=True, help_text="Since then the person has no active device."
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["channel", "external_id"], name="person_once"),
        ]
        indexes = [
            models.Index(
                fields=["channel", "left_at"],
                condition=models.Q(left_at__isnull=False, opted_out_at__isnull=True, choices={}),
                name="person_left_channel",
            ),
            models.Index(
                fields=["channel", "left_at"],
                condition=models.Q(left_at__isnull=False, opted_out_at__isnull=True)
                & ~models.Q(choices={}),
                name="person_left_choosing",
            ),
        ]

    @override
    def __str__(self) -> str:
        """The row's id, and not the external id, because the audit log keeps this text."""
        return str(self.id)
