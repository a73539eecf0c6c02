"""Segments and test devices."""

from typing import Any, Final

from django.contrib.auth.models import User
from django.db import models
from django.db.models.functions import Now
from typing_extensions import override

from channels_app.models import Channel
from pushsvc.common.ids import uuid7

MAX_SEGMENT_NAME: Final = 100
MAX_DEVICE_NAME: Final = 50


class Segment(models.Model):
    """A named rule that selects subscriptions of a channel. It is evaluated at each use."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    channel = models.ForeignKey(Channel, on_delete=models.CASCADE, related_name="segments")
    name = models.CharField(max_length=MAX_SEGMENT_NAME)
    rule: Any = models.JSONField(help_text="As docs/segments.md says; checked by the services.")
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    updated_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["channel", "name"], name="segment_name_once"),
        ]

    @override
    def __str__(self) -> str:
        return self.name

    @property
    def version(self) -> str:
        """A version that changes with each change."""
        return self.updated_at.isoformat()


class TestDevice(models.Model):
    """A named device on which staff check notifications before they send them.

    Without a foreign key, because raw statements delete subscriptions. If the subscription is gone,
    the list shows this until the test device is removed.
    """

    __test__ = False  # for pytest

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    channel = models.ForeignKey(Channel, on_delete=models.CASCADE, related_name="test_devices")
    name = models.CharField(max_length=MAX_DEVICE_NAME)
    subscription_id = models.UUIDField()
    added_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    added_at = models.DateTimeField(db_default=Now(), editable=False)
    # The writer whose device it is: the only devices that get tests of a writer.
    writer = models.ForeignKey(
        User, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["channel", "name"], name="test_device_name_once"),
            models.UniqueConstraint(
                fields=["channel", "subscription_id"], name="test_device_subscription_once"
            ),
        ]

    @override
    def __str__(self) -> str:
        return self.name
