"""Notifications that are being sent or due next, for the dashboard.

Reads unfinished notifications, their open batches and their last minutes of outcomes, all by index.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal

from django.db.models import BooleanField, Case, Exists, OuterRef, Q, QuerySet, Value, When
from django.db.models.functions import Now

from channels_app.models import Channel
from notifications_app.models import Batch, Notification, Plan
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
    resumed; in `stopping`, the remaining recipients bounce. In `waiting`, no recipient is left, and
    the next part is released at `next_at`.
    """

    notification: Notification
    stage: Literal["planning", "sending", "retrying", "parked", "paused", "stopping", "waiting"]
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
    """The oldest first, then those that wait for a release: at most MOST_SHOWN, and one more if
    there are more."""
    running = Notification.objects.filter(
        channel__in=channels, status=NotificationStatus.PROCESSING
    ).alias(is_waiting=_IS_WAITING)
    found = list(
        running.select_related("channel")
        .defer("data", "data_names")
        .order_by("is_waiting", "id")[: MOST_SHOWN + 1]
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
    release_at: datetime | None,
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
    if release_at and not (is_busy or is_parked or next_at):
        return Sending(notification, "waiting", Pace(rate, None), release_at)
    if is_busy or not (is_parked or next_at):
        return Sending(notification, "sending", pace, None)
    return Sending(notification, "retrying" if next_at else "parked", pace, next_at)


# Whether it waits for the release of a part. Only sends by local time are looked up.
_OPEN_PARTS: Final = Plan.objects.filter(notification=OuterRef("pk"), status=PlanStatus.PLANNING)
_OPEN_BATCHES: Final = Batch.objects.filter(notification=OuterRef("pk")).exclude(
    status=BatchStatus.DONE
)
_IS_WAITING: Final = Case(
    When(timing__isnull=True, then=Value(False)),
    default=~Exists(_OPEN_BATCHES) & ~Exists(_OPEN_PARTS.filter(release_at__lte=Now())),
    output_field=BooleanField(),
)

# Raw, because the ORM has no LATERAL: one read of a notification's open batches gives three
# aggregates. The rate is over the last two to three minutes, as on the notification's page.
_FACTS = """
SELECT notification.id,
  EXISTS (SELECT FROM notifications_app_plan plan
          WHERE plan.notification_id = notification.id AND plan.status = %(planning)s
            AND plan.release_at <= statement_timestamp()),
  (SELECT coalesce(sum(ended.count), 0) FROM notifications_app_outcomeminute ended
   WHERE ended.notification_id = notification.id
     AND ended.minute >= date_trunc('minute', lately.since))::float
    / greatest(1, extract(epoch FROM statement_timestamp() - lately.since))::float,
  coalesce(open.is_busy, false), coalesce(open.is_parked, false), open.next_at,
  (SELECT min(release_at) FROM notifications_app_plan plan
   WHERE plan.notification_id = notification.id AND plan.status = %(planning)s
     AND plan.release_at > statement_timestamp())
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
