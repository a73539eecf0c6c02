"""What schedules, automations and newsfeeds have in common."""

import json
from datetime import datetime
from typing import Any, Final

from django.db import models
from django.db.models.functions import Now
from typing_extensions import override

from channels_app.models import Channel
from pushsvc.common.ids import uuid7

MAX_REPEATED_NAME: Final = 100


class RepeatedSend(models.Model):
    """A stored send of which many notifications are made.

    `disabled_code`: why the service disabled it; empty if the owner did.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    channel = models.ForeignKey(
        Channel, on_delete=models.CASCADE, related_name="%(class)ss", db_index=False
    )
    name = models.CharField(max_length=MAX_REPEATED_NAME)
    is_enabled = models.BooleanField(default=True)
    send_json = models.TextField(
        help_text="The checked send. Text, because jsonb does not keep the order of `data`."
    )
    segment_id = models.UUIDField(null=True, blank=True, help_text="Of the send.")
    disabled_code = models.CharField(max_length=64, blank=True, default="")
    changed_by = models.CharField(
        max_length=150,
        blank=True,
        default="",
        help_text="Who changed it last. Its notifications are sent in this name.",
    )
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    updated_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        abstract = True

    @override
    def __str__(self) -> str:
        return self.name

    @property
    def send(self) -> dict[str, Any]:
        """The body of the send, as in the API."""
        send: dict[str, Any] = json.loads(self.send_json)
        return send

    @property
    def version(self) -> str:
        """A version that changes with each change by the owner."""
        updated_at: datetime = self.updated_at
        return updated_at.isoformat()
