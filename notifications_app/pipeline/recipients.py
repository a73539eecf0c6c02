"""Writes batches and deliveries for the recipients that a statement finds."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import Any, Final, Self
from uuid import UUID

from django.conf import settings

from pushsvc.common.correlation import Correlation, correlation_of
from pushsvc.common.platforms import Platform
from pushsvc.common.store import sql
from subscriptions_app.categories.consent import CONSENT_COLUMNS, consent_to
from subscriptions_app.segments.compiler import EVERYBODY, Condition, compiled
from subscriptions_app.segments.rules import Rule


@dataclass(frozen=True)
class PlanLease:
    """A claimed plan. Only the lease with the newest `number` may plan. `is_shared`: the
    notification has other parts on the platform, which may reach the same devices."""

    plan_id: int
    number: int
    notification_id: UUID
    channel_id: UUID
    platform: Platform
    rule_json: str | None
    driver: str
    started_at: datetime
    category: str
    is_shared: bool
    request_id: str | None = None
    traceparent: str | None = None

    @classmethod
    def of(cls, row: Sequence[Any]) -> Self:
        """From a row with the columns in this order."""
        lease = cls(*row)
        return replace(lease, platform=Platform(lease.platform))

    def order(self) -> tuple[UUID, int]:
        """The order in which all statements write recipients of several notifications."""
        return self.notification_id, self.plan_id

    @property
    def correlation(self) -> Correlation:
        return correlation_of(self.notification_id, self.request_id, self.traceparent)

    @cached_property
    def rule(self) -> Rule | None:
        return None if self.rule_json is None else json.loads(self.rule_json)

    @cached_property
    def audience(self) -> Condition:
        """The same condition for every window, whichever process plans it and whenever."""
        rule = self.rule
        return EVERYBODY if rule is None else compiled(rule, now=self.started_at)

    @cached_property
    def consent(self) -> Condition | None:
        """Which subscriptions want the notification's category. None if it has no category."""
        return consent_to(self.category) if self.category else None

    @property
    def columns(self) -> str:
        """The columns of subscriptions that a window reads for `consent`."""
        return CONSENT_COLUMNS if self.category else ""


@dataclass(frozen=True)
class Window:
    """`is_last`: the whole audience was read. `last_id`: the last subscription that was read.
    `opted_out`: how many of the audience refuse the notification's category."""

    is_last: bool
    last_id: UUID | None
    recipients: int
    batches: int
    opted_out: int = 0


@dataclass(frozen=True)
class Source:
    """The CTEs that find recipients for the rows of `plan` (id, notification_id, channel_id,
    platform, category). The last one is `recipients` (plan_id, id, push_service).

    `is_last` and `last_id`: SQL expressions for each window. `is_asked`: there is also a CTE
    `asked` (plan_id, is_wanted) of the whole audience. `plans`: the CTE with the plans for which
    windows are written.
    """

    text: str
    is_last: str
    last_id: str
    is_asked: bool
    plans: str = "plan"


def write_recipients(
    leases: Sequence[PlanLease], source: Source, parameters: Mapping[str, Any]
) -> dict[int, Window]:
    """Writes the next windows of the plans in one statement. Returns the windows by plan id. Of
    several plans, none may be shared."""
    leases = sorted(leases, key=PlanLease.order)
    own: dict[str, Any] = {
        "plans": [each.plan_id for each in leases],
        "notifications": [each.notification_id for each in leases],
        "channels": [each.channel_id for each in leases],
        "platforms": [each.platform for each in leases],
        "categories": [each.category for each in leases],
        "size": settings.BATCH_SIZE,
    }
    statement = _PLACED.format(source=source.text) + _DELIVERIES
    statement += _SHARED_ROWS if leases[0].is_shared else _ROWS
    statement += _WINDOWS.format(
        is_last=source.is_last,
        last_id=source.last_id,
        plans=source.plans,
        opted_out="coalesce(refusing.count, 0)" if source.is_asked else "0",
        refusing=_REFUSING if source.is_asked else "",
    )
    return {plan_id: Window(*rest) for plan_id, *rest in sql.rows(statement, {**own, **parameters})}


# In SQL, because the ORM has no INSERT … SELECT. The size of a window is the number of
# subscriptions that are read, so a window without recipients costs no more than others. Ids of
# batches are drawn before the batches are written, because each delivery row contains one. They
# follow the order of the subscriptions, so that workers call all push services from the start.
_PLACED: Final = """
WITH plan AS MATERIALIZED (
  SELECT * FROM unnest(%(plans)s::bigint[], %(notifications)s::uuid[], %(channels)s::uuid[],
                       %(platforms)s::text[], %(categories)s::text[])
    AS plan (id, notification_id, channel_id, platform, category)
), {source}, placed AS (
  SELECT plan_id, id, push_service,
    (row_number() OVER (PARTITION BY plan_id, push_service ORDER BY id) - 1) / %(size)s AS slot
  FROM recipients
), slots AS MATERIALIZED (
  SELECT plan_id, push_service, slot, count(*) AS recipient_count,
    nextval(pg_get_serial_sequence('notifications_app_batch', 'id')) AS batch_id
  FROM placed GROUP BY plan_id, push_service, slot ORDER BY plan_id, slot, push_service
), """

_DELIVERIES: Final = """deliveries AS (
  INSERT INTO notifications_app_delivery (notification_id, subscription_id, batch_id)
  SELECT plan.notification_id, placed.id, slots.batch_id
  FROM placed JOIN slots USING (plan_id, push_service, slot) JOIN plan ON plan.id = plan_id
  ORDER BY plan.notification_id, placed.id
"""
_ROWS: Final = """
), filled AS (SELECT * FROM slots)
"""
# A device that another part planned is skipped, so batches are counted from the inserted rows. All
# parts insert in the order of ids, so two of them cannot deadlock.
_SHARED_ROWS: Final = """
  ON CONFLICT DO NOTHING
  RETURNING batch_id
), inserted AS (
  SELECT batch_id, count(*) AS recipient_count FROM deliveries GROUP BY batch_id
), filled AS (
  SELECT plan_id, push_service, batch_id, inserted.recipient_count
  FROM slots JOIN inserted USING (batch_id)
)
"""
_WINDOWS: Final = """, batches AS (
  INSERT INTO notifications_app_batch
    (id, plan_id, notification_id, channel_id, platform, push_service, recipient_count)
  SELECT batch_id, plan.id, plan.notification_id, plan.channel_id, plan.platform, push_service,
    recipient_count
  FROM filled JOIN plan ON plan.id = plan_id
)
SELECT plan.id, {is_last}, {last_id}, coalesce(written.recipients, 0),
  coalesce(written.batches, 0), {opted_out}
FROM {plans} AS plan LEFT JOIN (
  SELECT plan_id, sum(recipient_count)::bigint AS recipients, count(*) AS batches
  FROM filled GROUP BY plan_id
) AS written ON written.plan_id = plan.id {refusing}
"""
_REFUSING: Final = """LEFT JOIN (
  SELECT plan_id, count(*) FROM asked WHERE NOT is_wanted GROUP BY plan_id
) AS refusing ON refusing.plan_id = plan.id"""
