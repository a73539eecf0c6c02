"""A notification's progress: its counts, its bounce reasons, its rate.

This module does not read deliveries, so a million recipients cost as much as ten.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import groupby
from typing import Final, NamedTuple
from uuid import UUID

from django.db.models import Case, Min, Q, Sum, When
from django.db.models.functions import Now

from notifications_app.models import (
    RECIPIENTS_LEFT,
    Batch,
    Driver,
    Notification,
    OutcomeMinute,
    Plan,
)
from notifications_app.states import APART, BatchStatus, NotificationStatus, PlanStatus
from pushsvc.common.platforms import PLATFORM_NAMES, Platform

MOST_POINTS: Final = 120
_STEPS: Final = tuple(timedelta(minutes=n) for n in (1, 5, 15, 60, 6 * 60, 24 * 60))


@dataclass(frozen=True, slots=True)
class PlanRow:
    """The counts of a plan, read without the rest of it."""

    platform: str
    status: str
    recipient_count: int
    opted_out_count: int
    capped_count: int
    repeated_count: int
    driver: str
    release_at: str  # ISO 8601, as in JSON


@dataclass(frozen=True, slots=True)
class EndedRow:
    """How many recipients ended with the code on the platform."""

    platform: str
    code: str
    count: int


@dataclass(frozen=True, slots=True)
class PlatformCounts:
    """`recipients` grows while `is_planning`. `apart`: the parts of `bounced` with each code of
    APART."""

    platform: Platform
    recipients: int
    delivered: int
    bounced: int
    is_planning: bool
    apart: Mapping[str, int]

    @property
    def name(self) -> str:
        return PLATFORM_NAMES[self.platform]

    @property
    def undeliverable(self) -> int:
        return self.bounced - sum(self.apart.values())

    @property
    def waiting(self) -> int:
        return max(0, self.recipients - self.delivered - self.bounced)


@dataclass(frozen=True, slots=True)
class Release:
    """The parts of the audience with the same release. `recipients` grows until `is_planned`."""

    release_at: datetime
    platforms: tuple[Platform, ...]
    is_planned: bool
    recipients: int


class Reason(NamedTuple):
    """How many recipients bounced with this code. "" and None: the reason was not recorded."""

    platform: Platform | None
    code: str
    recipients: int


class Waiting(NamedTuple):
    """Recipients without an outcome, by the state of their batches. `status`: a BatchStatus;
    `later`: the batches are ready but not yet due; `next_at`: when the first one is due."""

    platform: Platform
    status: str
    later: bool
    recipients: int
    next_at: datetime

    @property
    def name(self) -> str:
        return PLATFORM_NAMES[self.platform]


class Point(NamedTuple):
    """Outcomes between `start` and the next point. `bounced`: without APART."""

    start: datetime
    delivered: int = 0
    bounced: int = 0
    stopped: int = 0
    opted_out: int = 0
    expired: int = 0


@dataclass(frozen=True, slots=True)
class Progress:
    platforms: tuple[PlatformCounts, ...]
    reasons: tuple[Reason, ...]
    points: tuple[Point, ...]
    step: timedelta
    waiting: tuple[Waiting, ...]
    planned_at: datetime | None
    releases: tuple[Release, ...] = ()
    left_out: Mapping[str, int] = field(default_factory=dict)
    now: datetime | None = None

    @property
    def is_planning(self) -> bool:
        return any(each.is_planning for each in self.platforms)

    @property
    def next_release_at(self) -> datetime | None:
        """The next release, while the parts that were released are planned."""
        left = [each.release_at for each in self.releases if not each.is_planned]
        return left[0] if left and self.now and left[0] > self.now else None


def progress_of(notification: Notification, *, now: datetime) -> Progress:
    """The notification's progress. `now`: the database's time."""
    own = Plan.objects.filter(notification_id=notification.id)
    plans = list(own.without_keepers().order_by("id"))
    ended = list(OutcomeMinute.objects.filter(notification_id=notification.id).order_by("minute"))
    is_running = notification.status == NotificationStatus.PROCESSING
    platforms = platform_counts(plans, ended)
    points, step = _points(ended)
    return Progress(
        platforms=platforms,
        reasons=bounce_reasons(notification, ended),
        points=points,
        step=step,
        waiting=_waiting(notification.id) if is_running else (),
        planned_at=_planned_at(plans),
        releases=releases_of(plans),
        left_out=left_out_of(plans),
        now=now,
    )


def left_out_of(plans: Iterable[Plan | PlanRow]) -> dict[str, int]:
    """How many devices of the audience are no recipients, by reason: they refuse the category
    (`opted_out`), a cap excludes them (`capped`), or their schedule contacted them lately
    (`repeated`)."""
    counted = list(plans)
    return {
        "opted_out": sum(plan.opted_out_count for plan in counted),
        "capped": sum(plan.capped_count for plan in counted),
        "repeated": sum(plan.repeated_count for plan in counted),
    }


def platform_counts(
    plans: Sequence[Plan | PlanRow], ended: Sequence[OutcomeMinute | EndedRow]
) -> tuple[PlatformCounts, ...]:
    """The counts by platform, in the order of the plans. Adds up all parts of a platform."""
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for row in ended:
        counts[row.platform][row.code] += row.count
    recipients: Counter[str] = Counter()
    for plan in plans:
        recipients[plan.platform] += plan.recipient_count
    planning = {plan.platform for plan in plans if plan.status == PlanStatus.PLANNING}
    return tuple(
        PlatformCounts(
            platform=Platform(platform),
            recipients=count,
            delivered=counts[platform][""],
            bounced=counts[platform].total() - counts[platform][""],
            is_planning=platform in planning,
            apart={code: counts[platform][code] for code in APART},
        )
        for platform, count in recipients.items()
    )


def releases_of(plans: Sequence[Plan | PlanRow]) -> tuple[Release, ...]:
    """The earliest first. All slices of an automation count as one."""
    parts: dict[datetime, list[Plan | PlanRow]] = defaultdict(list)
    slices = [plan for plan in plans if plan.driver == Driver.SLICE]
    begun = min((_moment(each.release_at) for each in slices), default=None)
    for plan in plans:
        moment = begun if begun and plan.driver == Driver.SLICE else _moment(plan.release_at)
        parts[moment].append(plan)
    return tuple(_release(moment, parts[moment]) for moment in sorted(parts))


def _release(release_at: datetime, parts: Sequence[Plan | PlanRow]) -> Release:
    return Release(
        release_at=release_at,
        platforms=tuple(dict.fromkeys(Platform(part.platform) for part in parts)),
        is_planned=all(part.status != PlanStatus.PLANNING for part in parts),
        recipients=sum(part.recipient_count for part in parts),
    )


def _moment(release_at: datetime | str) -> datetime:
    return datetime.fromisoformat(release_at) if isinstance(release_at, str) else release_at


def bounce_reasons(
    notification: Notification, ended: Sequence[OutcomeMinute | EndedRow]
) -> tuple[Reason, ...]:
    """The most frequent reasons first, then bounced recipients without a recorded reason."""
    counts: Counter[tuple[Platform, str]] = Counter()
    for row in ended:
        if row.code:
            counts[Platform(row.platform), row.code] += row.count
    reasons = [Reason(*key, count) for key, count in counts.items()]
    reasons.sort(key=lambda reason: (-reason.recipients, reason.platform, reason.code))
    unexplained = notification.bounced_count - counts.total()
    return (*reasons, Reason(None, "", unexplained)) if unexplained > 0 else tuple(reasons)


def _points(ended: Sequence[OutcomeMinute]) -> tuple[tuple[Point, ...], timedelta]:
    """The outcomes in about MOST_POINTS equal steps at most, including steps without outcomes."""
    if not ended:
        return (), _STEPS[0]
    first, last = ended[0].minute, ended[-1].minute
    step = next((s for s in _STEPS if (last - first) / s < MOST_POINTS), _STEPS[-1])
    counts = {
        index: _summed(rows)
        for index, rows in groupby(ended, lambda row: (row.minute - first) // step)
    }
    return tuple(
        Point(first + index * step, **counts.get(index, Counter()))
        for index in range((last - first) // step + 1)
    ), step


def _summed(rows: Iterable[OutcomeMinute]) -> Counter[str]:
    """By `delivered`, `bounced` and APART."""
    sums: Counter[str] = Counter()
    for row in rows:
        sums[row.code if row.code in APART else "bounced" if row.code else "delivered"] += row.count
    return sums


def _planned_at(plans: Sequence[Plan]) -> datetime | None:
    """When the last plan was completely planned; None while one is being planned."""
    if any(plan.status == PlanStatus.PLANNING for plan in plans):
        return None
    return max((plan.sliced_at for plan in plans if plan.sliced_at), default=None)


def _waiting(notification_id: UUID) -> tuple[Waiting, ...]:
    """Waiting recipients, read by the index of open batches."""
    batches = Batch.objects.filter(notification_id=notification_id)
    is_later = Q(status=BatchStatus.READY, due_at__gt=Now())
    groups = (
        batches.open()
        .annotate(later=Case(When(is_later, then=True), default=False))
        .values("platform", "status", "later")
        .annotate(recipients=Sum(RECIPIENTS_LEFT), next_at=Min("due_at"))
        .order_by("platform", "status", "later")
    )
    rows = groups.values_list(*Waiting._fields)
    return tuple(Waiting(Platform(platform), *row) for platform, *row in rows)
