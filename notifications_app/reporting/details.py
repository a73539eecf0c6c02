"""Everything about one notification, read in one statement.

One statement sees one snapshot, so the platforms' counts add up to the notification's at any time.
Only the push service that limits it is read apart, from Redis.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final
from uuid import UUID

from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import (
    ExpressionWrapper,
    F,
    JSONField,
    OuterRef,
    QuerySet,
    Sum,
    TextField,
    UUIDField,
)
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Cast, Coalesce, JSONObject
from django.utils.translation import gettext

from notifications_app.models import (
    ActionCount,
    Batch,
    Notification,
    OutcomeMinute,
    Plan,
    VariantCount,
)
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
from notifications_app.significance import wilson
from notifications_app.states import NotificationStatus
from pushsvc.common.errors import NotFound

MOST_CORRECTIONS: Final = 20  # that are listed


@dataclass(slots=True)
class VariantResult:
    """The counts of a variant. The sums of all are those of the notification."""

    name: str
    weight: int
    recipients: int = 0
    delivered: int = 0
    bounced: int = 0
    received: int = 0
    clicked: int = 0
    dismissed: int = 0

    def interval(self, metric: str) -> tuple[float, float]:
        """Of the rate of `metric`, of 95 %."""
        return wilson(getattr(self, metric), self.delivered)


@dataclass(frozen=True, slots=True)
class Details:
    """`platforms`: only platforms with a plan; plans are created at the start. `releases`: the
    earliest first. `left_out`: as `left_out_of`.
    `corrected_by`: the notifications that correct it, at most some, the newest first.
    `limited_by`: the push service that limits the channel while recipients wait there.
    `variants`: in their order; empty if it has none.
    `rate_per_minute`: None if it has no rate."""

    notification: Notification
    platforms: tuple[PlatformCounts, ...]
    releases: tuple[Release, ...]
    reasons: tuple[Reason, ...]
    left_out: Mapping[str, int]
    actions_clicked: Mapping[str, int]
    corrected_by: Sequence[UUID]
    limited_by: str | None
    rate_per_minute: int | None
    variants: tuple[VariantResult, ...] = ()


def details_of(*, channel_id: UUID, notification_id: UUID) -> Details:
    """Reads the notification. Raises NotFound, also for a notification of another channel."""
    own: QuerySet[Any] = Notification.objects.filter(id=notification_id, channel_id=channel_id)
    found = own.annotate(
        variant_rows=ArraySubquery(_VARIANTS),
        batch_rows=ArraySubquery(_BATCHES),
        plan_rows=ArraySubquery(_PLANS),
        ended_rows=ArraySubquery(_ENDED),
        action_rows=ArraySubquery(_ACTIONS),
        correction_ids=ArraySubquery(_CORRECTIONS),
        channel_rate=F("channel__rate_per_minute"),
    ).first()
    if found is None:
        raise NotFound(gettext("There is no such notification."))
    ended = [EndedRow(**row) for row in found.ended_rows]
    plans = [PlanRow(**row) for row in found.plan_rows]
    return Details(
        notification=found,
        platforms=platform_counts(plans, ended),
        releases=releases_of(plans),
        reasons=bounce_reasons(found, ended),
        left_out=left_out_of(plans),
        actions_clicked=_actions_clicked(found),
        corrected_by=found.correction_ids,
        limited_by=limited_by(found),
        rate_per_minute=found.rate(found.channel_rate),
        variants=_variants(found),
    )


def variant_results(notification: Notification) -> tuple[VariantResult, ...]:
    """The results of its variants alone, in their order."""
    own: QuerySet[Any] = Notification.objects.filter(pk=notification.pk)
    found = own.annotate(
        variant_rows=ArraySubquery(_VARIANTS), batch_rows=ArraySubquery(_BATCHES)
    ).first()
    return _variants(found) if found else ()


def _variants(notification: Any) -> tuple[VariantResult, ...]:
    results = [
        VariantResult(each["name"], each["weight"]) for each in notification.content.variants
    ]
    for row in (*notification.variant_rows, *notification.batch_rows):
        if row["variant"] < len(results):
            result = results[row.pop("variant")]
            for name, count in row.items():
                setattr(result, name, getattr(result, name) + count)
    return tuple(results)


def clicks_of_buttons(notification: Notification) -> list[tuple[str, int]]:
    """(title, number of recipients whose first click was on it), in the order of the buttons."""
    actions = notification.content.actions
    if not actions:
        return []
    rows = ActionCount.objects.filter(notification=notification).values_list("action", "count")
    counts = dict(rows)
    return [(each["title"], counts.get(each["id"], 0)) for each in actions]


def corrections_of(pk: Any, root_id: Any) -> QuerySet[Notification]:
    """The corrections of the notification that are not cancelled, the newest first."""
    named = KeyTextTransform("notification", "rule")
    of_root = Notification.objects.filter(root_id=Coalesce(root_id, pk, output_field=UUIDField()))
    own = of_root.alias(named=named).filter(named=Cast(pk, TextField()))
    return own.exclude(status=NotificationStatus.CANCELLED).order_by("-id")


def _actions_clicked(notification: Any) -> dict[str, int]:
    """Clicks by the button's id, in the order of the buttons."""
    counts = {row["action"]: row["count"] for row in notification.action_rows}
    return {each["id"]: counts.get(each["id"], 0) for each in notification.content.actions}


_CORRECTIONS = corrections_of(OuterRef("pk"), OuterRef("root_id")).values("pk")[:MOST_CORRECTIONS]
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
_COUNTED = ("recipients", "delivered", "bounced", "received", "clicked", "dismissed")
_VARIANTS = VariantCount.objects.filter(notification_id=OuterRef("pk")).values(
    row=JSONObject(**{name: name for name in ("variant", *_COUNTED)})
)
# Reads no batch of a notification without variants.
_BATCHES = (
    Batch.objects.alias(extras=ExpressionWrapper(OuterRef("extras"), output_field=JSONField()))
    .filter(notification_id=OuterRef("pk"), variant__isnull=False, extras__has_key="variants")
    .values("variant")
    .annotate(
        recipients=Sum("recipient_count"),
        delivered=Sum("delivered_count"),
        bounced=Sum("bounced_count"),
    )
    .values(row=JSONObject(**{name: name for name in ("variant", *_COUNTED[:3])}))
)
