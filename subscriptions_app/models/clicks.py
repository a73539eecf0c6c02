"""When devices clicked last, for rules."""

from django.db import models
from typing_extensions import override

from subscriptions_app.models.subscriptions import Subscription


class LastClick(models.Model):
    """The first click of a device on the last day (UTC) on which it clicked. Written once a day,
    with the click. The database deletes the row with its subscription.

    A table of its own, because a click would otherwise copy the device's row with all its indexes.
    """

    subscription = models.OneToOneField(
        Subscription,
        primary_key=True,
        on_delete=models.DO_NOTHING,
        related_name="last_click",
        db_constraint=False,  # the migration adds one that cascades in the database
    )
    clicked_at = models.DateTimeField()

    @override
    def __str__(self) -> str:
        return f"{self.subscription_id} {self.clicked_at}"
