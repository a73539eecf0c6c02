"""Templates: named content that sends refer to."""

import json
from typing import Any, Final

from django.db import models
from django.db.models.functions import Now
from typing_extensions import override

from channels_app import audit
from channels_app.models import Channel
from notifications_app.content.values import AUDITED_FIELDS
from pushsvc.common.ids import uuid7

MAX_TEMPLATE_NAME: Final = 100


class Template(models.Model):
    """A name and some fields of a send's content. A send copies them when it is accepted."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    channel = models.ForeignKey(
        Channel, on_delete=models.CASCADE, related_name="templates", db_index=False
    )
    name = models.CharField(max_length=MAX_TEMPLATE_NAME)
    content_json = models.TextField(
        help_text="As it was given. Text, because jsonb does not keep the order of `data`."
    )
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    updated_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["channel", "name"], name="template_name_once"),
        ]

    @override
    def __str__(self) -> str:
        return self.name

    @property
    def content(self) -> dict[str, Any]:
        content: dict[str, Any] = json.loads(self.content_json)
        return content

    @property
    def version(self) -> str:
        """A version that changes with each change."""
        return self.updated_at.isoformat()


audit.SHOWN["notifications_app.template"] = ("name", *AUDITED_FIELDS)
