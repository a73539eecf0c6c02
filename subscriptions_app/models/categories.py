"""Categories of notifications, which people and devices choose or refuse."""

from typing import Final

from django.db import models
from django.db.models.functions import Now
from typing_extensions import override

from channels_app.models import Channel
from pushsvc.common.ids import uuid7

CATEGORY_KEY: Final = "[a-z0-9_-]{1,32}"
MAX_CATEGORY_KEY: Final = 32
MAX_CATEGORY_NAME: Final = 100
MAX_CATEGORY_DESCRIPTION: Final = 255
MAX_POSITION: Final = 1_000


class Category(models.Model):
    """A kind of notification. Choices name it by its key. An archived one is kept, so that choices
    keep their meaning."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    channel = models.ForeignKey(
        Channel, on_delete=models.CASCADE, related_name="categories", db_index=False
    )
    key = models.CharField(max_length=MAX_CATEGORY_KEY)
    name = models.CharField(max_length=MAX_CATEGORY_NAME)
    description = models.CharField(max_length=MAX_CATEGORY_DESCRIPTION, blank=True, default="")
    chosen_by_default = models.BooleanField(help_text="What counts until somebody chooses.")
    position = models.PositiveSmallIntegerField(help_text="Among the channel's categories.")
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    archived_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["channel", "key"], name="category_key_once"),
        ]

    @override
    def __str__(self) -> str:
        return self.name
