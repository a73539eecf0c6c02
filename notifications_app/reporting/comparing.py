"""Compares notifications at equal ages, and tells differences from chance. Pure, except for the
read of their events."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from typing import Final

from notifications_app.content.tracking import TOKEN_DAYS
from notifications_app.models import Notification
from notifications_app.reporting.event_hours import Curve, curves_of
from notifications_app.reporting.funnel import Funnel, funnel_of

# How likely a difference as large as the found one may be if both rates are the same. It is divided
# by the number of pairs, because the highest of several is chosen after the fact (Bonferroni).
SIGNIFICANCE: Final = 0.05
# The longest time that sending may have taken, as a share of the age of the comparison. Recipients
# of a send that took longer had much less time to click than those of the others.
LONGEST_SENDING: Final = 0.25
# The least expected number of clicks, and of recipients without a click, in each of both. The test
# is not exact with fewer.
LEAST_EXPECTED: Final = 5


class Verdict(Enum):
    """What is known of a notification's click rate."""

    UNKNOWN = ""  # it is being sent, has no clicks to compare, or nothing is known of another
    SLOW = "sent over a longer time"
    HIGHEST = "highest"
    LOWER = "lower"
    CHANCE = "may be chance"
    TOO_FEW = "too few to tell"


@dataclass(frozen=True, slots=True)
class Compared:
    """`funnel`: shown, clicked and dismissed up to the age of the comparison. `curve`: None if it
    has not started."""

    notification: Notification
    funnel: Funnel
    curve: Curve | None
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Comparison:
    """`age`: the age of the youngest, up to which events of all count. None if none started."""

    age: timedelta | None
    rows: Sequence[Compared]


def compare(notifications: Sequence[Notification], now: datetime) -> Comparison:
    """Up to the age of the youngest notification, because older ones had more time."""
    curves = curves_of(notifications, now)
    ages = [now - each.started_at for each in notifications if each.started_at]
    age = min([*ages, timedelta(days=TOKEN_DAYS)]) if ages else None
    funnels = [_funnel(each, curves.get(each.pk), age) for each in notifications]
    verdicts = _verdicts(notifications, funnels, age)
    return Comparison(
        age,
        [
            Compared(notification, funnel, curves.get(notification.pk), verdict)
            for notification, funnel, verdict in zip(notifications, funnels, verdicts, strict=True)
        ],
    )


def _funnel(notification: Notification, curve: Curve | None, age: timedelta | None) -> Funnel:
    whole = funnel_of(notification)
    if curve is None or age is None:
        return whole
    counts = curve.at(age)
    return Funnel(
        recipients=whole.recipients,
        delivered=whole.delivered,
        shown=counts.received,
        clicked=counts.clicked,
        dismissed=counts.dismissed,
    )


def _verdicts(
    notifications: Sequence[Notification], funnels: Sequence[Funnel], age: timedelta | None
) -> list[Verdict]:
    """One for each notification. A notification that is being sent is not judged, because more
    recipients are to come, nor is one that was sent over a longer time."""
    verdicts = [Verdict.SLOW if _is_slow(each, age) else Verdict.UNKNOWN for each in notifications]
    judged = [
        index
        for index, each in enumerate(notifications)
        if not each.is_unfinished and funnels[index].delivered and not verdicts[index].value
    ]
    best = max(judged, key=lambda index: funnels[index].clicked_share or 0.0, default=None)
    if best is None or len(judged) < 2 or not funnels[best].clicked:
        return verdicts
    pairs = math.comb(len(judged), 2)
    for index in judged:
        if index != best:
            verdicts[index] = _against(funnels[best], funnels[index], SIGNIFICANCE / pairs)
    if all(verdicts[index] is Verdict.LOWER for index in judged if index != best):
        verdicts[best] = Verdict.HIGHEST
    return verdicts


def _is_slow(notification: Notification, age: timedelta | None) -> bool:
    if age is None or notification.started_at is None or notification.finished_at is None:
        return False
    return notification.finished_at - notification.started_at > LONGEST_SENDING * age


def _against(best: Funnel, other: Funnel, significance: float) -> Verdict:
    probability = probability_of_chance(
        (best.clicked, best.delivered), (other.clicked, other.delivered)
    )
    if probability is None:
        return Verdict.TOO_FEW
    return Verdict.LOWER if probability < significance else Verdict.CHANCE


def probability_of_chance(one: tuple[int, int], other: tuple[int, int]) -> float | None:
    """How likely two (part, whole) with the same rate differ at least as much as these: the
    two-sided z-test of two proportions, with a pooled variance. None if there are too few."""
    (part, whole), (other_part, other_whole) = one, other
    rate = (part + other_part) / (whole + other_whole)
    if min(whole, other_whole) * min(rate, 1 - rate) < LEAST_EXPECTED:
        return None
    deviation = math.sqrt(rate * (1 - rate) * (1 / whole + 1 / other_whole))
    z = abs(part / whole - other_part / other_whole) / deviation
    return math.erfc(z / math.sqrt(2))
