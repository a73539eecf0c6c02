"""Pauses, resumes and stops notifications.

Halted means paused or stopped. The notification stores it in `paused_at` and `stopped_at`, apart
from its status. Its plans store it in `halted_at`, so planners and workers skip them without
reading the notification. A worker in the middle of a batch learns of it with its next flush or
renewal, after ten seconds at most, and then begins no further call.
"""

import math
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

import structlog
from django.conf import settings
from django.db import transaction
from django.db.models import DateTimeField, DurationField, ExpressionWrapper, F, Max, Value
from django.db.models.expressions import Combinable
from django.db.models.functions import Greatest, Least, Now

from channels_app import audit
from channels_app.counters import counter_add
from channels_app.feeds import EventKind, Fact, feed_add
from channels_app.selectors import channel_hold
from notifications_app.models import Batch, Notification, Plan
from notifications_app.pipeline import send_rates, wakeup
from notifications_app.pipeline.counting import check_end_later, finish_complete
from notifications_app.querysets import NotificationQuerySet, PlanQuerySet
from notifications_app.states import NotificationStatus, PlanStatus
from pushsvc.common.errors import Outdated
from pushsvc.common.store import sql

logger = structlog.stdlib.get_logger(__name__)

_LONGEST_PAUSE = timedelta(days=7)

Notifications = NotificationQuerySet[Notification]


def pause(own: Notifications) -> None:
    """Pauses the only notification of `own`, unless it is finished, stopped or paused. Safe to
    repeat."""
    with sql.brief_transaction():
        found = locked(own)
        if found is None or found.was.is_halted or not found.was.is_unfinished:
            return
        found.plans.update(halted_at=Now())
        found.row.update(paused_at=Now())
        found.record_change()


def resume(own: Notifications, *, seen: str | None = None) -> None:
    """Resumes the only notification of `own`, if it is paused. If it was being sent, its deadline
    and the other limits of its recipients move by the duration of the pause. Reports of late
    batches count from now on, so that the pause does not make batches late. Raises Outdated if
    `seen`, a `pause_version`, is not the notification's, and ChannelDeleted."""
    with sql.brief_transaction():
        found = locked(own, prolongs_parking=True)
        if found is None or not found.was.is_paused or found.was.paused_at is None:
            return
        if seen is not None and seen != found.was.pause_version:
            raise Outdated  # and moves no limit
        channel_hold(found.was.channel_id)
        now, begun = sql.now(), found.was.paused_at
        if found.was.decides_at is not None:
            found.move_decision(now - begun)
            found.bound_hold(now)
        found.plans.update(halted_at=None, due_at=Greatest(Now(), "release_at"))
        found.row.update(paused_at=None)
        if found.was.status == NotificationStatus.PROCESSING:
            found.move_deadlines(_passed_since_release(begun, now))
        else:
            begun = max(begun, found.was.scheduled_at)
        lost = max(0, math.ceil((now - begun).total_seconds()))
        found.row.update(paused_seconds=F("paused_seconds") + lost)
        found.record_change()
        transaction.on_commit(lambda: wakeup.wake("plan"))


def stop(own: Notifications) -> bool:
    """Stops the only notification of `own` for good, if it is being sent. Returns whether it did.

    No further recipient is planned, and ticks bounce waiting recipients. If there is no recipient
    yet, the notification ends as cancelled.
    """
    with sql.brief_transaction():
        found = locked(own)
        if found is None or found.was.status != NotificationStatus.PROCESSING:
            return False
        if found.was.is_stopped:
            return False
        found.plans.update(halted_at=Now())
        found.plans.become(PlanStatus.DELIVERING, lease_until=None)
        found.row.update(stopped_at=Now(), paused_at=None)
        if found.was.recipient_count:
            sent = finish_complete({found.was.pk})
            counter_add(found.was.channel_id, **sent[found.was.channel_id])
            check_end_later({found.was.pk})
        else:
            found.row.become(NotificationStatus.CANCELLED, finished_at=Now())
            feed_add(found.was.channel_id, [Fact(EventKind.CANCELLED, found.was.pk)])
        found.record_change()
        return True


def long_paused(limit: int = 100) -> list[UUID]:
    """Ids of notifications that have been paused for a week while they were being sent."""
    found = Notification.objects.paused_for(_LONGEST_PAUSE)
    return list(found.order_by("pk").values_list("pk", flat=True)[:limit])


def stop_long_paused(pk: UUID) -> None:
    """Stops a notification of `long_paused`, unless it was resumed meanwhile."""
    if stop(Notification.objects.paused_for(_LONGEST_PAUSE).filter(pk=pk)):
        logger.warning("notification.stopped", notification=pk, reason="long_paused")


@dataclass(frozen=True)
class Locked:
    """A locked notification with its unfinished `plans`, also locked. `was`: the notification as
    it was then. `row`: selects it."""

    was: Notification
    plans: PlanQuerySet[Plan]

    @property
    def row(self) -> Notifications:
        return Notification.objects.filter(pk=self.was.pk)

    def move_decision(self, by: timedelta) -> None:
        """Moves the decision of the test, and the latest moment for the rest of the audience."""
        rest = self.plans.filter(bucket_from__gt=0)
        rest.update(release_at=F("release_at") + by, deadline_at=F("deadline_at") + by)
        self.row.update(decides_at=F("decides_at") + by)

    def bound_hold(self, now: datetime) -> None:
        """Leaves the rest at least half of the time until the notification's end, from the decision
        of the test on, or if it is on hold, from now on."""
        one = self.row.get()
        is_held = one.decision is not None
        begun = now if is_held else one.decides_at
        if one.expires_at is None or begun is None or begun >= one.expires_at:
            return
        half = begun + (one.expires_at - begun) / 2
        rest = self.plans.filter(bucket_from__gt=0, release_at__gt=half)
        rest.update(release_at=half, deadline_at=half + time_to_live(one.ttl))
        if is_held:
            self.row.filter(decides_at__gt=half).update(decides_at=half)

    def move_deadlines(self, by: timedelta | Combinable = timedelta()) -> None:
        """Moves the parts' deadlines. The notification's becomes the latest of them, or its
        `expires_at` if that is sooner."""
        if not self.plans.update(deadline_at=F("deadline_at") + by):
            return
        latest = self.plans.aggregate(latest=Max("deadline_at"))["latest"]
        self.row.update(deadline_at=Least(Value(latest, DateTimeField()), "expires_at"))

    def follow_rate(self, per_minute: int | None) -> None:
        """Lets claims follow the notification's new rate, or none. Batches that are planned keep
        their size. No planner or claim works at the notification meanwhile."""
        self.plans.update(has_rate=bool(per_minute))
        if per_minute:
            send_rates.change(self.was.pk, self.was.rate_per_minute, per_minute)

    def record_change(self) -> None:
        """Writes the changed fields to the audit log."""
        now = self.row.get()
        audit.record(now, audit.Action.UPDATE, audit.fields_of(self.was), audit.fields_of(now))


def time_to_live(ttl: int) -> timedelta:
    """How long after a part's release calls may be started."""
    return timedelta(seconds=ttl or settings.TTL_ZERO_SECONDS)


def locked(own: Notifications, *, prolongs_parking: bool = False) -> Locked | None:
    """Locks in the order of all code: plans, batches, notification. A pending notification has no
    plans. The locks exclude other pauses, stops, resumes and edits. None if there is no such
    notification."""
    pending = own.filter(status=NotificationStatus.PENDING).locked()
    if pending is not None:
        return Locked(pending, Plan.objects.none())
    unfinished = Plan.objects.filter(notification__in=own).exclude(status=PlanStatus.DONE)
    unfinished.lock_all()  # until when parts may have been added, which the second look finds
    plans = Plan.objects.filter(pk__in=unfinished.lock_all())
    if prolongs_parking:
        parked = Batch.objects.filter(plan__in=plans.values("pk")).since_parked()
        Batch.objects.filter(pk__in=parked.lock_all()).prolong_parking()
    found = own.locked()
    return None if found is None else Locked(found, plans)


def _passed_since_release(paused_at: datetime, now: datetime) -> Greatest:
    """How much time a part lost by the pause: none, if it was not yet released."""
    begun = Greatest(Value(paused_at), "release_at")
    passed = ExpressionWrapper(Value(now) - begun, DurationField())
    return Greatest(passed, Value(timedelta()))
