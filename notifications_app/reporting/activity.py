"""What notifications that are being sent do or wait for, and which are due next.

Reads unfinished notifications, their open batches and their last minutes of outcomes, all by index.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, Literal, NamedTuple
from uuid import UUID

from django.conf import settings
from django.db.models import (
    BooleanField,
    Case,
    Exists,
    ExpressionWrapper,
    OuterRef,
    Q,
    QuerySet,
    Value,
    When,
)
from django.db.models.functions import Now

from channels_app.models import Channel
from notifications_app.models import Batch, Notification, Plan
from notifications_app.states import BatchStatus, NotificationStatus, PlanStatus
from pushsvc.common.quantities import share
from pushsvc.common.store import sql

MOST_SHOWN: Final = 10
_MOST_DUE: Final = 5

Stage = Literal[
    "planning", "sending", "retrying", "parked", "waiting", "stalled", "paused", "stopping"
]


@dataclass(frozen=True, slots=True)
class Pace:
    """`rate`: recipients a second in the last minutes; 0 unless calls are being made.
    `seconds_left`: for the recipients that can be called now; None: not yet known."""

    rate: float
    seconds_left: float | None


@dataclass(frozen=True)
class Sending:
    """A notification in `processing`, and what it does or waits for.

    In `planning`, its recipient count grows. In `sending`, calls are made or due. In `retrying`,
    all remaining recipients wait until `next_at`. In `parked`, they wait for new credentials. In
    `waiting`, no recipient is left, and the next part is released at `next_at`. In `stalled`, no
    worker takes them. In `paused`, the notification waits to be resumed; in `stopping`, the
    remaining recipients bounce. `held`: how many recipients wait for credentials, in any stage.
    """

    notification: Notification
    stage: Stage
    pace: Pace
    next_at: datetime | None
    held: int

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


def sending_and_due(channels: QuerySet[Channel]) -> tuple[list[Sending], list[Notification]]:
    """Running notifications, oldest first, then those that wait for a release: at most MOST_SHOWN,
    and one more if there are more. And those due next, soonest first, then paused ones: at most
    _MOST_DUE. A due notification that is not paused is about to start."""
    own = Notification.objects.filter(channel__in=channels)
    own = own.select_related("channel").defer("data", "data_names")
    running = own.filter(status=NotificationStatus.PROCESSING).annotate(is_last=_IS_WAITING)
    pending = own.filter(status=NotificationStatus.PENDING).annotate(is_last=_IS_PAUSED)
    oldest = running.order_by("is_last", "id")[: MOST_SHOWN + 1]
    soonest = pending.order_by("is_last", "scheduled_at", "id")[:_MOST_DUE]
    found: list[Any] = list(oldest.union(soonest, all=True))
    states = states_of(found)
    started = sorted(
        (each for each in found if each.pk in states), key=lambda each: (each.is_last, each.pk)
    )
    due = sorted(
        (each for each in found if each.status == NotificationStatus.PENDING),
        key=lambda each: (each.is_last, each.scheduled_at, each.pk),
    )
    return [states[each.pk] for each in started], due


def states_of(notifications: Iterable[Notification]) -> dict[UUID, Sending]:
    """By id, for those that are in `processing`. Read in one statement for all."""
    processing = NotificationStatus.PROCESSING
    running = {each.pk: each for each in notifications if each.status == processing}
    renewed = timedelta(seconds=settings.LEASE_SECONDS) - 2 * _PATIENCE
    parameters = {"ids": list(running), "renewed": renewed, **_STATES}
    rows = sql.rows(_FACTS, parameters) if running else []
    return {row[0]: _sending(running[row[0]], _Facts(*row[1:])) for row in rows}


class _Facts(NamedTuple):
    """What _FACTS reads of a notification."""

    is_planning: bool
    is_slow: bool  # no worker has planned for a while
    rate: float
    is_fresh: bool  # a recipient ended in this minute or the last one
    callable: int  # recipients
    held: int
    is_busy: bool
    is_served: bool  # a live worker has a batch
    is_overdue: bool
    next_at: datetime | None
    release_at: datetime | None


def _sending(notification: Notification, facts: _Facts) -> Sending:
    stage = _stage(notification, facts)
    is_moving = stage in ("planning", "sending")
    rate = facts.rate if is_moving else 0.0
    seconds_left = facts.callable / rate if rate > 0 and stage == "sending" else None
    next_at = {"retrying": facts.next_at, "waiting": facts.release_at}.get(stage)
    return Sending(notification, stage, Pace(rate, seconds_left), next_at, facts.held)


def _stage(notification: Notification, facts: _Facts) -> Stage:
    if notification.is_paused:
        return "paused"
    if notification.is_stopped:
        return "stopping"
    if facts.is_planning:
        return "stalled" if facts.is_slow and not facts.is_fresh else "planning"
    if facts.is_busy:
        is_stalled = facts.is_overdue and not facts.is_served and not facts.is_fresh
        return "stalled" if is_stalled else "sending"
    if facts.next_at:
        return "retrying"
    if facts.held:
        return "parked"
    return "waiting" if facts.release_at else "sending"


_IS_PAUSED: Final = ExpressionWrapper(Q(paused_at__isnull=False), BooleanField())
# Whether it waits for the release of a part. Only sends by local time, tests and sends to targets,
# such as an automation's, are looked up.
_OPEN_PARTS: Final = Plan.objects.filter(notification=OuterRef("pk"), status=PlanStatus.PLANNING)
_OPEN_BATCHES: Final = Batch.objects.filter(notification=OuterRef("pk")).open()
_IS_WAITING: Final = Case(
    When(timing__isnull=True, test__isnull=True, has_targets=False, then=Value(False)),
    default=~Exists(_OPEN_BATCHES) & ~Exists(_OPEN_PARTS.filter(release_at__lte=Now())),
    output_field=BooleanField(),
)

# Raw, because the ORM has no LATERAL: one read of a notification's open batches gives all
# aggregates. The rate is over the last two to three minutes. A batch of a platform whose
# credentials were refused is held, whatever its own state: a worker parks it, or tries it once.
# Batches of a send with a rate wait for their turn. A live worker renews its leases every few
# seconds.
_FACTS = """
SELECT notification.id, plans.is_planning, plans.is_slow,
  lately.count / greatest(1, extract(epoch FROM statement_timestamp() - lately.since))::float,
  lately.is_fresh, open.callable, open.held, open.is_busy, open.is_served, open.is_overdue,
  open.next_at, plans.release_at
FROM notifications_app_notification notification,
LATERAL (
  SELECT coalesce(bool_or(release_at <= statement_timestamp()), false) AS is_planning,
    coalesce(greatest(max(sliced_at), max(greatest(due_at, release_at))
        FILTER (WHERE release_at <= statement_timestamp()))
      < statement_timestamp() - %(patience)s, false) AS is_slow,
    min(release_at) FILTER (WHERE release_at > statement_timestamp()) AS release_at
  FROM notifications_app_plan
  WHERE notification_id = notification.id AND status = %(planning)s) AS plans,
LATERAL (SELECT greatest(
  notification.started_at,
  date_trunc('minute', statement_timestamp() - interval '2 minutes')) AS since) AS recent,
LATERAL (
  SELECT recent.since, coalesce(sum(ended.count), 0)::float AS count,
    coalesce(max(ended.minute) >= date_trunc('minute', statement_timestamp() - interval '1 minute'),
      false) AS is_fresh
  FROM notifications_app_outcomeminute ended
  WHERE ended.notification_id = notification.id
    AND ended.minute >= date_trunc('minute', recent.since)) AS lately,
LATERAL (
  SELECT coalesce(sum(waiting) FILTER (WHERE NOT is_held AND is_due), 0)::int AS callable,
    coalesce(sum(waiting) FILTER (WHERE is_held), 0)::int AS held,
    coalesce(bool_or(is_due) FILTER (WHERE NOT is_held), false) AS is_busy,
    coalesce(bool_or(is_served) FILTER (WHERE NOT is_held), false) AS is_served,
    coalesce(min(wanted_at) FILTER (WHERE NOT is_held AND is_due)
      < statement_timestamp() - %(patience)s, false) AS is_overdue,
    min(due_at) FILTER (WHERE NOT is_held AND NOT is_due) AS next_at
  FROM (
    SELECT batch.due_at, greatest(batch.due_at, rate.next_at) AS wanted_at,
      batch.recipient_count - batch.delivered_count - batch.bounced_count
        AS waiting,
      batch.status = %(parked)s OR credential.paused_at IS NOT NULL AS is_held,
      batch.status = %(leased)s OR batch.due_at <= statement_timestamp() AS is_due,
      batch.status = %(leased)s
        AND coalesce(batch.lease_until > statement_timestamp() + %(renewed)s, true) AS is_served
    FROM notifications_app_batch batch
    LEFT JOIN channels_app_providercredential credential
      ON credential.channel_id = batch.channel_id AND credential.platform = batch.platform
    LEFT JOIN notifications_app_sendrate rate ON rate.notification_id = batch.notification_id
    WHERE batch.notification_id = notification.id AND batch.finished_at IS NULL) AS batch) AS open
WHERE notification.id = ANY(%(ids)s)
"""

_PATIENCE: Final = timedelta(seconds=30)
_STATES: Final = {
    "planning": PlanStatus.PLANNING,
    "leased": BatchStatus.LEASED,
    "ready": BatchStatus.READY,
    "parked": BatchStatus.PARKED,
    "patience": _PATIENCE,
}
