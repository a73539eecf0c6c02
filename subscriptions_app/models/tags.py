"""Tags: words on devices, with which a channel reaches devices that follow a topic."""

from typing import Final

from django.db import models
from django.db.models.functions import Now
from typing_extensions import override

from pushsvc.common.platforms import PLATFORM_CHOICES
from subscriptions_app.models.subscriptions import Subscription

MAX_TAG: Final = 64
_COLLATION: Final = "C"  # by code points, so that a prefix is a range of the index


class Tag(models.Model):
    """A tag of a device. The database deletes the row with its subscription.

    The primary key has the devices of a tag in the order in which windows read them. Channel and
    platform are those of the subscription, which never change.
    """

    pk = models.CompositePrimaryKey("channel_id", "platform", "tag", "subscription")
    channel_id = models.UUIDField()
    platform = models.CharField(max_length=7, choices=PLATFORM_CHOICES)
    tag = models.CharField(max_length=MAX_TAG, db_collation=_COLLATION)
    subscription = models.ForeignKey(
        Subscription,
        on_delete=models.DO_NOTHING,
        related_name="tags",
        db_constraint=False,  # the migration adds one that cascades in the database
        db_index=False,
    )

    class Meta:
        indexes = [models.Index(fields=["subscription"], name="tag_subscription")]

    @override
    def __str__(self) -> str:
        return self.tag


class TagRemoval(models.Model):
    """A deleted tag, until housekeeping has removed it from every device."""

    pk = models.CompositePrimaryKey("channel_id", "tag")
    channel_id = models.UUIDField()
    tag = models.CharField(max_length=MAX_TAG, db_collation=_COLLATION)
    asked_at = models.DateTimeField(db_default=Now(), editable=False)

    @override
    def __str__(self) -> str:
        return self.tag
