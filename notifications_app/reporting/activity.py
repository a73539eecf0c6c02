"""Notifications that are being sent or due next, for the dashboard.

Reads unfinished notifications, their open batches and their last minutes of outcomes, all by index.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal

from django.db.models import Q, QuerySet

from channels_app.models import Channel
from notifications_app.models import Notification
from notifications_app.reporting.progress import Pace
from notifications_app.states import BatchStatus, NotificationStatus, PlanStatus
from pushsvc.common.quantities import share
from pushsvc.common.store import sql

MOST_SHOWN: Final = 10


@dataclass(frozen=True)
class Sending:
    """A notification in `processing`. Its recipient count grows in the stage `planning`.

    In `sending`, calls are made or due. In `retrying`, all remaining recipients wait until
    `next_at`. In `parked`, they wait for new credentials. In `paused`, the notification waits to be
    resumed; in `stopping`, the remaining recipients bounce.
    """

    notification: Notification
    stage: Literal["planning", "sending", "retrying", "parked", "paused", "stopping"]
    pace: Pace
    next_at: datetime | None

    @property
    def done(self) -> int:
        return self.notification.delivered_count + self.notification.bounced_count

    @property
    def done_share(self) -> float | None:
        return share(self.done, self.notification.recipient_count)

    @property
    def delivered_share(self) -> float | None:
        return share(self.notification.delivered_count, self.notification.recipient_count)

    @property
    def bounced_share(self) -> float | None:
        return share(self.notification.undeliverable_count, self.notification.recipient_count)


def sending(channels: QuerySet[Channel]) -> list[Sending]:
    """The oldest first: at most MOST_SHOWN, and one more if there are more."""
    running = Notification.objects.filter(
        channel__in=channels, status=NotificationStatus.PROCESSING
    )
    found = list(
        running.select_related("channel")
        .defer("data", "data_names")
        .order_by("id")[: MOST_SHOWN + 1]
    )
    if not found:
        return []
    parameters = {"ids": [each.id for each in found], **_STATES}
    facts = {row[0]: row[1:] for row in sql.rows(_FACTS, parameters)}
    return [_sending(each, *facts[each.id]) for each in found if each.id in facts]


def due_next(channels: QuerySet[Channel], most: int = 5) -> list[Notification]:
    """The soonest first, then paused notifications. A due notification that is not paused is about
    to start."""
    pending = Notification.objects.filter(channel__in=channels, status=NotificationStatus.PENDING)
    found = pending.alias(is_held=Q(paused_at__isnull=False)).order_by(
        "is_held", "scheduled_at", "id"
    )
    return list(found.select_related("channel").defer("data", "data_names")[:most])


def _sending(
    notification: Notification,
    is_planning: bool,
    rate: float,
    is_busy: bool,
    is_parked: bool,
    next_at: datetime | None,
) -> Sending:
    if notification.is_paused:
        return Sending(notification, "paused", Pace(rate, None), None)
    if notification.is_stopped:
        return Sending(notification, "stopping", Pace(rate, None), None)
    left = notification.recipient_count - notification.delivered_count - notification.bounced_count
    seconds_left = left / rate if rate > 0 and is_busy and not is_planning else None
    pace = Pace(rate, seconds_left)
    if is_planning:
        return Sending(notification, "planning", pace, None)
    if is_busy or not (is_parked or next_at):
        return Sending(notification, "sending", pace, None)
    return Sending(notification, "retrying" if next_at else "parked", pace, next_at)


# Raw, because the ORM has no LATERAL: one read of a notification's open batches gives three
# aggregates. The rate is over the last two to three minutes, as on the notification's page.
_FACTS = """
SELECT notification.id,
  EXISTS (SELECT FROM notifications_app_plan plan
          WHERE plan.notification_id = notification.id AND plan.status = %(planning)s),
  (SELECT coalesce(sum(ended.count), 0) FROM notifications_app_outcomeminute ended
   WHERE ended.notification_id = notification.id
     AND ended.minute >= date_trunc('minute', lately.since))::float
    / greatest(1, extract(epoch FROM statement_timestamp() - lately.since))::float,
  coalesce(open.is_busy, false), coalesce(open.is_parked, false), open.next_at
FROM notifications_app_notification notification,
LATERAL (SELECT greatest(
  notification.started_at,
  date_trunc('minute', statement_timestamp() - interval '2 minutes')) AS since) AS lately,
LATERAL (
  SELECT bool_or(batch.status = %(leased)s OR
                 (batch.status = %(ready)s AND batch.due_at <= statement_timestamp())) AS is_busy,
    bool_or(batch.status = %(parked)s) AS is_parked,
    min(batch.due_at) FILTER (WHERE batch.status = %(ready)s) AS next_at
  FROM notifications_app_batch batch
  WHERE batch.notification_id = notification.id AND batch.status <> %(done)s) AS open
WHERE notification.id = ANY(%(ids)s)
"""

_STATES: Final = {
    "planning": PlanStatus.PLANNING,
    "leased": BatchStatus.LEASED,
    "ready": BatchStatus.READY,
    "parked": BatchStatus.PARKED,
    "done": BatchStatus.DONE,
}
