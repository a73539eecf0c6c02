"""How long after their time notifications were handed over, as percentiles of each hour or day.

Reads notifications by an index, and at most MOST_READ of them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import accumulate
from typing import Final

from django.db.models import Aggregate, Count, DurationField, Exists, F, OuterRef, Q, QuerySet
from django.db.models.functions import Greatest, Trunc

from channels_app.models import Channel
from notifications_app.models import Notification, Plan
from notifications_app.reporting.statistics import Statistics
from notifications_app.states import NotificationStatus

MOST_READ: Final = 100_000


@dataclass(frozen=True, slots=True)
class Percentiles:
    """Seconds that half, and 95 %, of the notifications took at most."""

    p50: float
    p95: float


@dataclass(frozen=True, slots=True)
class HandOvers:
    """`first`, `last`: from the notifications' time to their first hand-over, and until every
    recipient had an outcome."""

    notifications: int
    first: Percentiles
    last: Percentiles


class _Percentile(Aggregate):
    template = "percentile_cont(%(share)s) WITHIN GROUP (ORDER BY %(expressions)s)"
    output_field = DurationField()


def hand_overs(channels: QuerySet[Channel], found: Statistics) -> Mapping[datetime, HandOvers]:
    """Of the notifications that ended in each hour or day of the statistics' period, by its start.

    Has no entry without notifications. Messages to a test device do not count, nor do notifications
    that were paused, stopped, sent in parts or by an automation, that have a rate or a test of
    variants, or that have targets and quiet hours, because their owner decided their times. Only
    the newest hours or days are read in which together at most MOST_READ notifications were sent.
    """
    since = _read_from(found)
    if since is None:
        return {}
    # Of these parts, each waited for its time. Ranges, which have an end, are planned at once.
    parts = Plan.objects.filter(notification=OuterRef("pk"), part__gt=0, until=None)
    ended = Notification.objects.filter(
        Q(has_targets=False) | ~Q(timing__has_key="quiet") | Q(timing__quiet=None),
        Q(timing__isnull=True, has_targets=False) | ~Exists(parts),
        channel__in=channels,
        status=NotificationStatus.SENT,
        finished_at__gte=since,
        finished_at__lt=found.period.end,
        first_hand_over_at__isnull=False,
        only_subscription_id__isnull=True,
        test__isnull=True,
        paused_seconds=0,
        stopped_at__isnull=True,
    ).exclude(rate_per_minute__gt=0)
    due = Greatest("scheduled_at", "created_at")
    first, last = F("first_hand_over_at") - due, F("finished_at") - due
    rows = (
        ended.annotate(at=Trunc("finished_at", found.period.unit, tzinfo=found.period.zone))
        .values("at")
        .annotate(
            count=Count("*"),
            first_p50=_Percentile(first, share="0.5"),
            first_p95=_Percentile(first, share="0.95"),
            last_p50=_Percentile(last, share="0.5"),
            last_p95=_Percentile(last, share="0.95"),
        )
    )
    return {
        row["at"]: HandOvers(
            row["count"],
            _percentiles(row["first_p50"], row["first_p95"]),
            _percentiles(row["last_p50"], row["last_p95"]),
        )
        for row in rows
    }


def _percentiles(p50: timedelta, p95: timedelta) -> Percentiles:
    return Percentiles(p50.total_seconds(), p95.total_seconds())


def _read_from(found: Statistics) -> datetime | None:
    """The start of the first hour or day to read. None if nothing was sent, or too much in the
    newest."""
    sent = found.notifications_sent.entries
    read = [total for total in accumulate(reversed(sent)) if total <= MOST_READ]
    if not read or not read[-1]:
        return None
    return found.period.starts[-len(read)]
