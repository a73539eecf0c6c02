"""Finds channels and platforms where many more recipients bounce than before."""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from django.db.models import F, Max, Q, QuerySet, Sum
from django.utils.translation import gettext

from channels_app.models import Channel
from notifications_app.models import HourlyStat
from pushsvc.common.findings import Finding, Kind
from pushsvc.common.platforms import PLATFORM_NAMES, PLATFORM_VALUES
from pushsvc.common.texts import localized

UNDELIVERABLE: Final = F("bounced") - F("stopped") - F("opted_out") - F("expired")
_MOST_COMPARED: Final = 100

# A jump is twice the share of the week before, at least five points more, with enough bounces.
LEAST_BOUNCED: Final = 50
JUMP_FACTOR: Final = 2
JUMP_POINTS: Final = 0.05
LEAST_TO_COMPARE: Final = 100
MUCH_WITHOUT_COMPARISON: Final = 0.2


def jumps(channels: QuerySet[Channel], now: datetime) -> Iterator[Finding]:
    """Compares the last 24 hours of each channel and platform with the seven days before, without
    recipients that ended by a stop, an opt-out or the deadline. Most bounces first."""
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
        bounced_lately=Sum(UNDELIVERABLE, filter=lately, default=0),
        delivered_lately=Sum("delivered", filter=lately, default=0),
        bounced_before=Sum(UNDELIVERABLE, filter=before, default=0),
        delivered_before=Sum("delivered", filter=before, default=0),
    )
    many = sums.filter(bounced_lately__gte=LEAST_BOUNCED).order_by("-bounced_lately")
    for row in many[:_MOST_COMPARED]:
        yield from _compared(row)


def _next_hour(moment: datetime) -> datetime:
    return moment.replace(minute=0, second=0, microsecond=0) + timedelta(hours=1)


def _compared(row: Mapping[str, Any]) -> Iterator[Finding]:
    """A finding if the share of bounces jumped. A week with few outcomes is not compared with."""
    bounced, bounced_before = row["bounced_lately"], row["bounced_before"]
    lately = bounced / (bounced + row["delivered_lately"])
    least, compared = (
        MUCH_WITHOUT_COMPARISON,
        gettext("there are too few earlier outcomes to compare with"),
    )
    ended_before = bounced_before + row["delivered_before"]
    if ended_before >= LEAST_TO_COMPARE:
        before = bounced_before / ended_before
        least = max(JUMP_FACTOR * before, before + JUMP_POINTS)
        compared = gettext("in the seven days before it was %(before)s") % {
            "before": localized(f"{before:.1%}")
        }
    if lately >= least:
        yield Kind.BOUNCES_MANY.found(
            name=PLATFORM_NAMES[row["platform"]],
            lately=lately,
            bounced=bounced,
            compared=compared,
            channel=(row["channel_id"], row["name"]),
            platform=row["platform"],
        )
