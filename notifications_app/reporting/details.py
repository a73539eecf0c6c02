"""Everything that the service knows of one notification, read in one statement.

One statement sees one snapshot, so the platforms' counts add up to the notification's at any time.
"""

from dataclasses import dataclass, fields
from typing import Any
from uuid import UUID

from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import F, OuterRef, QuerySet, Sum
from django.db.models.functions import JSONObject

from notifications_app.models import Notification, OutcomeMinute, Plan
from notifications_app.reporting.progress import (
    PlatformCounts,
    Reason,
    bounce_reasons,
    platform_counts,
)
from pushsvc.common.errors import NotFound


@dataclass(frozen=True, slots=True)
class Details:
    """`platforms`: only those with a plan, which a notification gets when it starts."""

    notification: Notification
    platforms: tuple[PlatformCounts, ...]
    reasons: tuple[Reason, ...]


@dataclass(frozen=True, slots=True)
class _Plan:
    platform: str
    status: str
    recipient_count: int


@dataclass(frozen=True, slots=True)
class _Ended:
    """How many recipients ended with the code on the platform."""

    platform: str
    code: str
    count: int


def details_of(*, channel_id: UUID, notification_id: UUID) -> Details:
    """Raises NotFound, also for a notification of another channel."""
    own: QuerySet[Any] = Notification.objects.filter(id=notification_id, channel_id=channel_id)
    found = own.annotate(plan_rows=ArraySubquery(_PLANS), ended_rows=ArraySubquery(_ENDED)).first()
    if found is None:
        raise NotFound("There is no such notification.")
    ended = [_Ended(**row) for row in found.ended_rows]
    return Details(
        notification=found,
        platforms=platform_counts([_Plan(**row) for row in found.plan_rows], ended),
        reasons=bounce_reasons(found, ended),
    )


_PLANS = (
    Plan.objects.filter(notification_id=OuterRef("pk"))
    .order_by("id")
    .values(row=JSONObject(**{each.name: each.name for each in fields(_Plan)}))
)
_ENDED = (
    OutcomeMinute.objects.filter(notification_id=OuterRef("pk"))
    .values("platform", "code")
    .annotate(total=Sum("count"))
    .values(row=JSONObject(platform=F("platform"), code=F("code"), count=F("total")))
)
