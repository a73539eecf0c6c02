"""The newest campaigns, and the results of labels over time. Reads the newest notifications."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final
from uuid import UUID
from zoneinfo import ZoneInfo

from django.db.models import Count, F, Func, QuerySet, Sum, TextField
from django.db.models.expressions import RawSQL
from django.db.models.functions import TruncWeek

from channels_app.models import Channel
from notifications_app.models import Notification
from notifications_app.selectors import campaigns, newest_ids
from pushsvc.common.quantities import share

_CAMPAIGNS_AMONG: Final = 200  # notifications
_LEAST_OF_CHANNEL: Final = 20
_CHANNELS: Final = 200  # newest, if all are asked for
LABELS_AMONG: Final = 10_000


def recent_campaigns(channel_ids: Sequence[UUID] | None, *, limit: int) -> list[Notification]:
    """The newest campaigns that were started, of the channels or of all (None)."""
    newest = newest_ids(channel_ids, limit=_CAMPAIGNS_AMONG)
    if channel_ids is None:
        channel_ids = list(Channel.objects.order_by("-pk").values_list("pk", flat=True)[:_CHANNELS])
    newest = with_newest_to_many(newest, channel_ids, limit=_CAMPAIGNS_AMONG)
    started = campaigns(Notification.objects.filter(id__in=newest)).filter(started_at__isnull=False)
    shown = started.select_related("channel").defer("data", "data_names")
    return list(shown.order_by("-started_at", "-id")[:limit])


def with_newest_to_many(ids: RawSQL, channel_ids: Sequence[UUID], *, limit: int) -> RawSQL:
    """`ids`, and those of the newest notifications of each channel that were started and are
    neither tests nor to ids: about `limit` together. By the index of these alone, because any
    number of sends to ids may lie between them."""
    of_each = max(limit // max(len(channel_ids), 1), _LEAST_OF_CHANNEL)
    parameters = (*ids.params, list(channel_ids), of_each)
    return RawSQL(f"{ids.sql} UNION {_NEWEST_TO_MANY}", parameters)  # noqa: S611 (text of our own)


@dataclass(frozen=True, slots=True)
class Results:
    """The sums of the notifications with a label."""

    notifications: int = 0
    recipients: int = 0
    delivered: int = 0
    clicked: int = 0

    def __add__(self, other: "Results") -> "Results":
        return Results(
            self.notifications + other.notifications,
            self.recipients + other.recipients,
            self.delivered + other.delivered,
            self.clicked + other.clicked,
        )

    @property
    def delivered_share(self) -> float | None:
        return share(self.delivered, self.recipients)

    @property
    def clicked_share(self) -> float | None:
        return share(self.clicked, self.delivered)


@dataclass(slots=True)
class LabelResults:
    """`weeks`: by the Monday with which a week begins."""

    label: str
    total: Results = Results()
    weeks: dict[datetime, Results] = field(default_factory=dict)


def label_results(
    channel_ids: Sequence[UUID] | None, since: datetime, zone: ZoneInfo
) -> list[LabelResults]:
    """The labels of notifications since then that were started, those with the most delivered
    first. Without tests. A notification counts for each of its labels, in the week of the zone in
    which it was due."""
    found: dict[str, LabelResults] = {}
    for label, week, *counts in _summed(_labelled(channel_ids, since), zone):
        of_label = found.setdefault(label, LabelResults(label))
        of_label.weeks[week] = Results(*counts)
        of_label.total += of_label.weeks[week]
    return sorted(found.values(), key=lambda each: (-each.total.delivered, each.label))


def _labelled(channel_ids: Sequence[UUID] | None, since: datetime) -> QuerySet[Notification]:
    newest = Notification.objects.filter(id__in=newest_ids(channel_ids, limit=LABELS_AMONG))
    return newest.filter(
        labels__isnull=False,
        started_at__isnull=False,
        only_subscription_id__isnull=True,
        scheduled_at__gte=since,
    )


def _summed(notifications: QuerySet[Notification], zone: ZoneInfo) -> QuerySet[Any, Any]:
    each = notifications.annotate(label=_EachLabel(F("labels"), output_field=TextField()))
    grouped = each.annotate(week=TruncWeek("scheduled_at", tzinfo=zone)).values("label", "week")
    sums = (Sum(f"{name}_count") for name in ("recipient", "delivered", "clicked"))
    names = ("recipients", "delivered", "clicked")
    return grouped.annotate(
        notifications=Count("id"), **dict(zip(names, sums, strict=True))
    ).values_list("label", "week", "notifications", *names)


# An array, as in `newest_ids`.
_NEWEST_TO_MANY: Final = """
SELECT unnest(ARRAY(
  SELECT newest.id FROM unnest(%s::uuid[]) AS wanted (channel_id)
  CROSS JOIN LATERAL (
    SELECT id FROM notifications_app_notification
    WHERE CASE WHEN NOT has_targets AND only_subscription_id IS NULL AND started_at IS NOT NULL
          THEN channel_id END = wanted.channel_id
      AND NOT has_targets AND only_subscription_id IS NULL AND started_at IS NOT NULL
    ORDER BY id DESC LIMIT %s
  ) AS newest
))
"""


class _EachLabel(Func):
    function = "jsonb_array_elements_text"
    set_returning = True
