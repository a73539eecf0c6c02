"""Everything about one notification, read in one statement.

One statement sees one snapshot, so the platforms' counts add up to the notification's at any time.
Only the push service that limits it is read apart, from Redis.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any
from uuid import UUID

from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import F, OuterRef, QuerySet, Sum
from django.db.models.functions import JSONObject

from notifications_app.models import ActionCount, Notification, OutcomeMinute, Plan
from notifications_app.reporting.limited import limited_by
from notifications_app.reporting.progress import (
    EndedRow,
    PlanRow,
    PlatformCounts,
    Reason,
    Release,
    bounce_reasons,
    left_out_of,
    platform_counts,
    releases_of,
)
from pushsvc.common.errors import NotFound


@dataclass(frozen=True, slots=True)
class Details:
    """`platforms`: only platforms with a plan; plans are created at the start. `releases`: the
    earliest first. `left_out`: as `left_out_of`.
    `limited_by`: the push service that limits the channel while recipients wait there.
    `rate_per_minute`: None if it has no rate."""

    notification: Notification
    platforms: tuple[PlatformCounts, ...]
    releases: tuple[Release, ...]
    reasons: tuple[Reason, ...]
    left_out: Mapping[str, int]
    actions_clicked: Mapping[str, int]
    limited_by: str | None
    rate_per_minute: int | None


def details_of(*, channel_id: UUID, notification_id: UUID) -> Details:
    """Reads the notification. Raises NotFound, also for a notification of another channel."""
    own: QuerySet[Any] = Notification.objects.filter(id=notification_id, channel_id=channel_id)
    found = own.annotate(
        plan_rows=ArraySubquery(_PLANS),
        ended_rows=ArraySubquery(_ENDED),
        action_rows=ArraySubquery(_ACTIONS),
        channel_rate=F("channel__rate_per_minute"),
    ).first()
    if found is None:
        raise NotFound("There is no such notification.")
    ended = [EndedRow(**row) for row in found.ended_rows]
    plans = [PlanRow(**row) for row in found.plan_rows]
    return Details(
        notification=found,
        platforms=platform_counts(plans, ended),
        releases=releases_of(plans),
        reasons=bounce_reasons(found, ended),
        left_out=left_out_of(plans),
        actions_clicked=_actions_clicked(found),
        limited_by=limited_by(found),
        rate_per_minute=found.rate(found.channel_rate),
    )


def clicks_of_buttons(notification: Notification) -> list[tuple[str, int]]:
    """(title, number of recipients whose first click was on it), in the order of the buttons."""
    actions = notification.content.actions
    if not actions:
        return []
    rows = ActionCount.objects.filter(notification=notification).values_list("action", "count")
    counts = dict(rows)
    return [(each["title"], counts.get(each["id"], 0)) for each in actions]


def _actions_clicked(notification: Any) -> dict[str, int]:
    """Clicks by the button's id, in the order of the buttons."""
    counts = {row["action"]: row["count"] for row in notification.action_rows}
    return {each["id"]: counts.get(each["id"], 0) for each in notification.content.actions}


_PLANS = (
    Plan.objects.filter(notification_id=OuterRef("pk"))
    .without_keepers()
    .order_by("id")
    .values(row=JSONObject(**{each.name: each.name for each in fields(PlanRow)}))
)
_ACTIONS = ActionCount.objects.filter(notification_id=OuterRef("pk")).values(
    row=JSONObject(action="action", count="count")
)
_ENDED = (
    OutcomeMinute.objects.filter(notification_id=OuterRef("pk"))
    .values("platform", "code")
    .annotate(total=Sum("count"))
    .values(row=JSONObject(platform=F("platform"), code=F("code"), count=F("total")))
)
