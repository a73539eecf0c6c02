"""Targets: people and subscriptions that a notification names."""

import json
from collections.abc import Iterable, Sequence
from typing import Any, Final, Self
from uuid import UUID

from django.db import models
from django.db.models import Q
from typing_extensions import override

from notifications_app.content.values import TargetId
from pushsvc.common.store import sql
from subscriptions_app.models import MAX_EXTERNAL_ID

_STORE: Final = """
INSERT INTO notifications_app_target
  (notification_id, position, channel_id, external_id, subscription_id, vars)
SELECT %(notification)s, %(first)s + position - 1, %(channel)s, external_id, subscription_id,
  vars::jsonb
FROM unnest(%(external_ids)s::text[], %(subscription_ids)s::uuid[], %(vars)s::text[])
  WITH ORDINALITY AS named (external_id, subscription_id, vars, position)
"""
_ADD: Final = f"{_STORE} ON CONFLICT DO NOTHING"


class TargetQuerySet(models.QuerySet["Target"]):
    def of(self, notification_id: UUID) -> Self:
        """The notification's targets in the order of the send."""
        return self.filter(notification_id=notification_id).order_by("position")

    def store(
        self, notification_id: UUID, *, channel_id: UUID, targets: Sequence[TargetId]
    ) -> None:
        """Inserts the targets. Raw, because for a thousand rows the ORM takes longer than the
        database."""
        self._insert(_STORE, notification_id, channel_id, targets, 0)

    def add(
        self, notification_id: UUID, *, channel_id: UUID, targets: Sequence[TargetId], first: int
    ) -> int:
        """Inserts further targets from the position `first` on, without those that the notification
        has. Returns how many are new."""
        return self._insert(_ADD, notification_id, channel_id, targets, first)

    def _insert(
        self,
        statement: str,
        notification_id: UUID,
        channel_id: UUID,
        targets: Sequence[TargetId],
        first: int,
    ) -> int:
        parameters = {
            "first": first,
            "notification": notification_id,
            "channel": channel_id,
            "external_ids": [each.external_id for each in targets],
            "subscription_ids": [each.subscription_id for each in targets],
            "vars": [json.dumps(each.vars) if each.vars else None for each in targets],
        }
        return sql.execute(statement, parameters)

    def naming(
        self, *, channel_id: UUID, external_id: str, subscription_ids: Iterable[UUID]
    ) -> Self:
        """Targets that name the person, or have values for one of these subscriptions."""
        is_person = Q(external_id=external_id)
        has_values = Q(subscription_id__in=list(subscription_ids), vars__isnull=False)
        return self.filter(is_person | has_values, channel_id=channel_id)

    def anonymize(
        self, *, channel_id: UUID, external_id: str, subscription_ids: Iterable[UUID] = ()
    ) -> int:
        """Removes the person's id and values from all its targets, and the values from targets of
        these subscriptions. Keeps their counts. Targets without an id find no device. Call it
        before rows of subscriptions are locked."""
        named = self.naming(
            channel_id=channel_id, external_id=external_id, subscription_ids=subscription_ids
        )
        # Planners lock targets of several notifications in this order.
        ordered = named.order_by("notification_id", "position").select_for_update(no_key=True)
        list(ordered.values_list("position"))
        return named.update(external_id=None, vars=None)


class Target(models.Model):
    """A person or a subscription that a notification names. Neither after the person was erased.

    No foreign keys, as for deliveries: a thousand rows are written at a time, and the result of a
    deleted subscription is kept.
    """

    pk = models.CompositePrimaryKey("notification_id", "position")
    notification_id = models.UUIDField()
    position = models.IntegerField(help_text="In the order of the send, from 0.")
    channel_id = models.UUIDField()
    # Null and not "". Otherwise two targets that name subscriptions would have the same person.
    external_id = models.CharField(max_length=MAX_EXTERNAL_ID, null=True)  # noqa: DJ001
    subscription_id = models.UUIDField(null=True)
    vars: Any = models.JSONField(null=True, help_text="Its own values for placeholders.")
    devices = models.IntegerField(
        null=True,
        help_text="How many of its devices became recipients. Null: no window knew it.",
    )

    objects = TargetQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["notification_id", "external_id"], name="target_person_once"
            ),
            models.UniqueConstraint(
                fields=["notification_id", "subscription_id"], name="target_subscription_once"
            ),
            models.CheckConstraint(
                condition=Q(external_id__isnull=True) | Q(subscription_id__isnull=True),
                name="target_names_one",
            ),
        ]
        indexes = [
            models.Index(
                fields=["channel_id", "external_id"],
                condition=Q(external_id__isnull=False),
                name="target_external_id",
            ),
            models.Index(
                fields=["subscription_id"],
                condition=Q(subscription_id__isnull=False),
                name="target_subscription",
            ),
        ]

    @override
    def __str__(self) -> str:
        return f"{self.notification_id} #{self.position}"
