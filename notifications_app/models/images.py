"""Images that staff upload for notifications."""

from django.contrib.auth.models import User
from django.db import models
from django.db.models.functions import Now
from typing_extensions import override

from channels_app import audit
from channels_app.models import Channel
from pushsvc.common.ids import uuid7

IMAGE_NAME_LENGTH = 32


class Image(models.Model):
    """An image that anyone can load at its address, which contains its name.

    The content never changes. It is here, or if `content` is null, in the bucket with the id as its
    key. Housekeeping deletes images that nothing names any more.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    channel = models.ForeignKey(
        Channel, on_delete=models.CASCADE, related_name="images", db_index=False
    )
    name = models.CharField(
        max_length=IMAGE_NAME_LENGTH, help_text="A hash of the channel's id and the content."
    )
    kind = models.CharField(max_length=3, help_text="`png` or `jpg`.")
    width = models.PositiveSmallIntegerField()
    height = models.PositiveSmallIntegerField()
    size = models.PositiveIntegerField(help_text="In bytes.")
    content = models.BinaryField(null=True)
    added_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    added_at = models.DateTimeField(db_default=Now(), editable=False)
    kept_until = models.DateTimeField(
        db_default=Now(), help_text="The last time that a notification with it may be sent, or now."
    )

    class Meta:
        constraints = [models.UniqueConstraint(fields=["name"], name="image_name_once")]
        indexes = [
            models.Index(fields=["channel", "-id"], name="image_list"),
            models.Index(fields=["kept_until"], name="image_kept"),
        ]

    @override
    def __str__(self) -> str:
        return f"{self.name}.{self.kind}"

    @property
    def content_type(self) -> str:
        return "image/png" if self.kind == "png" else "image/jpeg"


class ImageRemoval(models.Model):
    """An object in the bucket that housekeeping deletes. Its id is the object's key."""

    id = models.UUIDField(primary_key=True, editable=False)
    due_at = models.DateTimeField(db_default=Now())

    class Meta:
        indexes = [models.Index(fields=["due_at"], name="image_removal_due")]


audit.SHOWN["notifications_app.image"] = ("name", "kind", "width", "height", "size")
