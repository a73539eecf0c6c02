"""Finds channels whose browsers receive messages and do not show them.

A browser that is switched off counts as delivered and shows the message days later or never, and a
worker without the SDK reports nothing. So a low share of messages that are shown proves nothing by
itself: only a channel whose share fell is found. The share of a weekend, of a short time to live or
of an older audience is seldom less than half of the usual. A replaced worker brings it to nearly
nothing within days, because every visit to the site replaces it in one more browser.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django.db.models import Max, Q, QuerySet, Sum

from channels_app.models import Channel
from notifications_app.models import HourlyStat, Notification
from notifications_app.reporting.campaigns import with_newest_to_many
from notifications_app.selectors import newest_ids
from pushsvc.common.findings import Finding, Kind
from pushsvc.common.platforms import Platform
from pushsvc.common.quantities import share

# Sends of the last day are left out: computers that are off for the night show them later.
DELAY: Final = timedelta(days=1)
LATELY: Final = timedelta(days=7)
BEFORE: Final = timedelta(days=28)
LEAST_DELIVERED: Final = 500  # in each of the two periods
LEAST_SHARE_BEFORE: Final = 0.15  # of a channel whose browsers use the SDK
FALL_FACTOR: Final = 3
LOW_SHARE: Final = 0.05

_MOST_COMPARED: Final = 100
_LOOKED_AT: Final = 5_000  # newest notifications of the channels, and newest ones to many


@dataclass(frozen=True, slots=True)
class Shown:
    """Messages that were delivered to browsers, and how many of them were reported as shown."""

    delivered: int
    received: int

    @property
    def share(self) -> float:
        return share(self.received, self.delivered) or 0.0

    @property
    def is_low(self) -> bool:
        return self.share < LOW_SHARE


def shown_lately(channel: Channel, now: datetime) -> Shown | None:
    """Of the channel's sends to browsers alone. None if there were too few to judge."""
    for row in _compared([channel.pk], now):
        lately = Shown(row["delivered_lately"], row["received_lately"])
        return lately if lately.delivered >= LEAST_DELIVERED else None
    return None


def unshown(channels: QuerySet[Channel], now: datetime) -> Iterator[Finding]:
    """Channels whose browsers show much less of what is delivered than in the weeks before."""
    names = _many_delivered(channels, now)
    for row in _compared(list(names), now) if names else ():
        lately = Shown(row["delivered_lately"], row["received_lately"])
        before = Shown(row["delivered_before"], row["received_before"])
        is_judged = min(lately.delivered, before.delivered) >= LEAST_DELIVERED
        has_fallen = lately.share * FALL_FACTOR < before.share >= LEAST_SHARE_BEFORE
        if is_judged and has_fallen:
            yield Kind.WEB_UNSHOWN.found(
                lately=lately.share,
                before=before.share,
                delivered=lately.delivered,
                received=lately.received,
                channel=(row["channel_id"], names[row["channel_id"]]),
                platform=Platform.WEB,
            )


def _many_delivered(channels: QuerySet[Channel], now: datetime) -> dict[UUID, str]:
    """The names of the channels with enough recent deliveries to browsers, most first."""
    hours = HourlyStat.objects.filter(
        channel__in=channels, platform=Platform.WEB, hour__gte=now - DELAY - LATELY
    )
    sums = hours.values("channel_id").annotate(name=Max("channel__name"), sum=Sum("delivered"))
    many = sums.filter(sum__gte=LEAST_DELIVERED).order_by("-sum")[:_MOST_COMPARED]
    return {row["channel_id"]: row["name"] for row in many}


def _compared(channel_ids: list[UUID], now: datetime) -> QuerySet[Any]:
    """Sums for each channel. Sends to several platforms are left out, because a notification's
    counts do not tell them apart."""
    until = now - DELAY
    newest = newest_ids(channel_ids, limit=_LOOKED_AT)
    started = Notification.objects.filter(
        id__in=with_newest_to_many(newest, channel_ids, limit=_LOOKED_AT),
        target_platforms=[Platform.WEB.value],
        started_at__gte=until - LATELY - BEFORE,
        started_at__lt=until,
    )
    lately = Q(started_at__gte=until - LATELY)
    return started.values("channel_id").annotate(
        **{
            f"{name}_{period}": Sum(f"{name}_count", filter=when, default=0)
            for name in ("delivered", "received")
            for period, when in (("lately", lately), ("before", ~lately))
        }
    )
