"""Bounces that a stop caused. Reports of bounces leave them out, because staff intended them."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.db.models import BigIntegerField, F, OuterRef, Q, QuerySet, Subquery, Sum
from django.db.models.functions import Coalesce
from django.db.models.lookups import GreaterThan

from notifications_app.models import Notification, OutcomeMinute
from notifications_app.pipeline.transitions import STOPPED
from notifications_app.selectors import newest_ids

_LOOKED_AT: Final = 10_000  # newest notifications of the channels


def with_many_bounces(notifications: QuerySet[Any]) -> QuerySet[Any]:
    """Notifications with over a tenth of their recipients bounced, except by a stop."""
    own = OutcomeMinute.objects.filter(notification_id=OuterRef("pk"), code=STOPPED)
    sums = own.values("notification_id").annotate(sum=Sum("count")).values("sum")
    left = Coalesce(Subquery(sums, output_field=BigIntegerField()), 0)
    recipients, bounced = F("recipient_count"), F("bounced_count")
    return notifications.filter(
        Q(stopped_at__isnull=True, recipient_count__lt=bounced * 10)
        | Q(GreaterThan((bounced - left) * 10, recipients - left), stopped_at__isnull=False)
    )


def stopped_around(
    moment: datetime, channel_ids: Sequence[UUID], *, since: datetime
) -> dict[tuple[UUID, str], tuple[int, int]]:
    """Bounces by stops, by channel and platform: how many before `moment`, and how many from then
    on. `moment` and `since` must begin a minute."""
    stopped = Notification.objects.filter(
        id__in=newest_ids(channel_ids, limit=_LOOKED_AT), stopped_at__gte=since
    )
    minutes = OutcomeMinute.objects.filter(
        notification__in=stopped, minute__gte=since, code=STOPPED
    )
    sums = minutes.values_list("notification__channel_id", "platform").annotate(
        before=Sum("count", filter=Q(minute__lt=moment), default=0),
        after=Sum("count", filter=Q(minute__gte=moment), default=0),
    )
    return {(channel_id, platform): (before, after) for channel_id, platform, before, after in sums}
