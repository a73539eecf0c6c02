"""Finds channels and platforms where many more recipients bounce than before."""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from django.db.models import Max, Q, QuerySet, Sum

from channels_app.models import Channel
from notifications_app.models import HourlyStat
from notifications_app.reporting.stopped import stopped_around
from pushsvc.common.findings import Finding, Kind
from pushsvc.common.platforms import PLATFORM_NAMES, PLATFORM_VALUES

_MOST_COMPARED: Final = 100

# A jump is twice the share of the week before, at least five points more, with enough bounces.
LEAST_BOUNCED: Final = 50
JUMP_FACTOR: Final = 2
JUMP_POINTS: Final = 0.05
LEAST_TO_COMPARE: Final = 100
MUCH_WITHOUT_COMPARISON: Final = 0.2


def jumps(channels: QuerySet[Channel], now: datetime) -> Iterator[Finding]:
    """Compares the last 24 hours of each channel and platform with the seven days before, without
    bounces that a stop caused. Most bounces first."""
    day_ago = _next_hour(now - timedelta(days=1))
    week_before = day_ago - timedelta(days=7)
    lately, before = Q(hour__gte=day_ago), Q(hour__lt=day_ago)
    hours = HourlyStat.objects.filter(
        channel__in=channels,
        platform__in=PLATFORM_VALUES,  # for the primary key, as in statistics
        hour__gte=week_before,
    )
    sums = hours.values("channel_id", "platform").annotate(
        name=Max("channel__name"),
        bounced_lately=Sum("bounced", filter=lately, default=0),
        delivered_lately=Sum("delivered", filter=lately, default=0),
        bounced_before=Sum("bounced", filter=before, default=0),
        delivered_before=Sum("delivered", filter=before, default=0),
    )
    many = sums.filter(bounced_lately__gte=LEAST_BOUNCED).order_by("-bounced_lately")
    rows = [dict(row) for row in many[:_MOST_COMPARED]]
    _subtract_stopped(rows, week_before, day_ago)
    for row in rows:
        if _is_jump(row):
            yield _finding(row)


def _next_hour(moment: datetime) -> datetime:
    return moment.replace(minute=0, second=0, microsecond=0) + timedelta(hours=1)


def _subtract_stopped(rows: list[dict[str, Any]], week_before: datetime, day_ago: datetime) -> None:
    """Subtracts recipients that bounced because their notification was stopped."""
    if not rows:
        return
    channel_ids = list({row["channel_id"] for row in rows})
    stopped = stopped_around(day_ago, channel_ids, since=week_before)
    for row in rows:
        before, lately = stopped.get((row["channel_id"], row["platform"]), (0, 0))
        row["bounced_before"] -= before
        row["bounced_lately"] -= lately


def _is_jump(row: Mapping[str, Any]) -> bool:
    if row["bounced_lately"] < LEAST_BOUNCED:
        return False
    lately, before = _bounced_shares(row)
    if before is None:
        return lately >= MUCH_WITHOUT_COMPARISON
    return lately >= max(JUMP_FACTOR * before, before + JUMP_POINTS)


def _bounced_shares(row: Mapping[str, Any]) -> tuple[float, float | None]:
    """The shares of bounces in the last day and in the week before; None for a week with too few
    outcomes."""
    ended = row["bounced_lately"] + row["delivered_lately"]
    ended_before = row["bounced_before"] + row["delivered_before"]
    before = row["bounced_before"] / ended_before if ended_before >= LEAST_TO_COMPARE else None
    return row["bounced_lately"] / ended, before


def _finding(row: Mapping[str, Any]) -> Finding:
    lately, before = _bounced_shares(row)
    compared = (
        f"in the seven days before it was {before:.1%}"
        if before is not None
        else "there are too few earlier outcomes to compare with"
    )
    return Kind.BOUNCES_MANY.found(
        name=PLATFORM_NAMES[row["platform"]],
        lately=lately,
        bounced=row["bounced_lately"],
        compared=compared,
        channel=(row["channel_id"], row["name"]),
        platform=row["platform"],
    )
