"""Newsfeeds: RSS and Atom documents whose new entries become notifications."""

from typing import Any, Final

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from channels_app import audit
from notifications_app.content.values import AUDITED_FIELDS
from notifications_app.models.repeated import RepeatedSend
from notifications_app.querysets import NewsfeedQuerySet

MAX_NEWSFEED_URL: Final = 2_000
LEAST_MINUTES: Final = 5
MOST_MINUTES: Final = 24 * 60
MOST_A_DAY: Final = 50
TROUBLED_AFTER: Final = 5  # failures in succession, which staff are told of


class Newsfeed(RepeatedSend):
    """An address that is checked, and what is sent of each new entry.

    `known`: hashes of the entries that were seen, the newest document's first. Null: the document
    was never read, so none of its entries is sent. `found`: entries that are to be sent now, the
    newest first.
    """

    url = models.CharField(max_length=MAX_NEWSFEED_URL)
    every_minutes = models.PositiveSmallIntegerField()
    daily_limit = models.PositiveSmallIntegerField()
    next_at = models.DateTimeField(db_default=Now(), help_text="When it is checked next.")
    lease_until = models.DateTimeField(null=True, blank=True)
    lease_number = models.IntegerField(default=0)
    etag = models.CharField(max_length=300, blank=True, default="")
    modified = models.CharField(max_length=300, blank=True, default="")
    known = ArrayField(models.BigIntegerField(), null=True, blank=True)
    found: Any = models.JSONField(null=True, blank=True)
    latest: Any = models.JSONField(null=True, blank=True, help_text="The newest entry.")
    entry_count = models.PositiveIntegerField(default=0, help_text="Of the last document.")
    checked_at = models.DateTimeField(null=True, blank=True)
    last_error = models.CharField(max_length=300, blank=True, default="")
    failures = models.PositiveSmallIntegerField(default=0, help_text="Without a success since.")
    failing_since = models.DateTimeField(null=True, blank=True)
    sent_on = models.DateField(null=True, blank=True, help_text="The day of `sent_count`.")
    sent_count = models.PositiveSmallIntegerField(default=0)
    last_notification_id = models.UUIDField(null=True, blank=True)

    objects = NewsfeedQuerySet.as_manager()

    class Meta:
        indexes = [
            models.Index(fields=["channel", "-created_at", "-id"], name="newsfeed_list"),
            models.Index(
                fields=["next_at"],
                condition=Q(is_enabled=True, found__isnull=True),
                name="newsfeed_due",
            ),
            models.Index(
                fields=["id"],
                condition=Q(is_enabled=True, found__isnull=False),
                name="newsfeed_found",
            ),
            models.Index(
                fields=["channel"],
                condition=Q(failing_since__isnull=False) | ~Q(disabled_code=""),
                name="newsfeed_troubled",
            ),
        ]


# Not the address, which may contain a password of the feed.
audit.SHOWN["notifications_app.newsfeed"] = (
    "name",
    "is_enabled",
    "every_minutes",
    "daily_limit",
    "disabled_code",
    *AUDITED_FIELDS,
    "target_platforms",
    "segment_id",
    "category",
    "rule",
    "template_id",
)
