"""Reads of notifications, always within one channel."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from django.db.models import BigIntegerField, Exists, OuterRef, Q, QuerySet, Subquery, Sum
from django.db.models.expressions import RawSQL
from django.db.models.functions import Coalesce

from notifications_app.models import Delivery, Notification, OutcomeMinute
from notifications_app.states import DeliveryStatus, NotificationStatus
from pushsvc.common.errors import NotFound
from pushsvc.common.platforms import Platform
from pushsvc.common.store import sql
from subscriptions_app.models import Subscription


def notification_get(*, channel_id: UUID, notification_id: UUID) -> Notification:
    """Raises NotFound, also for another channel's."""
    found = Notification.objects.filter(id=notification_id, channel_id=channel_id).first()
    if found is None:
        raise NotFound("There is no such notification.")
    return found


def notification_page(*, channel_id: UUID, limit: int, offset: int) -> list[Notification]:
    """Newest first. An offset past the end is an empty page."""
    notifications = Notification.objects.filter(channel_id=channel_id).defer("data")
    return list(notifications.order_by("-created_at", "-id")[offset : offset + limit])


def notification_url(notification_id: UUID) -> str:
    """What a click opens, of any channel's notification; "" where there is none."""
    urls = Notification.objects.filter(id=notification_id).values_list("url", flat=True)
    return urls.first() or ""


def newest_ids(channel_ids: Sequence[UUID] | None, *, limit: int) -> RawSQL:
    """Ids of the channels' newest notifications, for `id__in` of a query; None: of all channels.

    As an array, which PostgreSQL reads first, by index, and looks at no others. A plain subquery
    it may join the other way round, and look at every notification.
    """
    values: tuple[Any, ...] = (limit,)
    statement = _NEWEST_OF_ALL
    if channel_ids is not None:
        statement, values = _NEWEST, (list(channel_ids), limit, limit)
    return RawSQL(statement, values)  # noqa: S611 (constant text; every value is a parameter)


def notifications_sent_since(
    notifications: QuerySet[Any], since: datetime, *, platform: str = ""
) -> QuerySet[Any]:
    """Those that were being sent at some time since then, which begins a minute.

    Each has `delivered_since` and `bounced_since`: how many of its recipients, of one platform or
    of all, ended so since then.
    """
    minutes = _minutes(since, platform)
    is_running = Q(status=NotificationStatus.PROCESSING)
    then = notifications.filter(is_running | Q(finished_at__gte=since), started_at__isnull=False)
    counted: QuerySet[Any] = then.annotate(
        delivered_since=_sum(minutes.filter(code="")),
        bounced_since=_sum(minutes.exclude(code="")),
    )
    return counted


def notifications_with_outcome(
    notifications: QuerySet[Any], *, outcome: str, since: datetime | None, platform: str
) -> QuerySet[Any]:
    """Those of which a recipient was `delivered`, or `bounced`: since then or ever, on one platform
    or on any ("")."""
    minutes = _minutes(since, platform)
    ended = minutes.filter(code="") if outcome == "delivered" else minutes.exclude(code="")
    return notifications.filter(Exists(ended))


def _minutes(since: datetime | None, platform: str) -> QuerySet[OutcomeMinute]:
    """Of the notification that the outer query looks at."""
    minutes = OutcomeMinute.objects.filter(notification_id=OuterRef("pk"))
    if since:
        minutes = minutes.filter(minute__gte=since)
    return minutes.filter(platform=platform) if platform else minutes


def _sum(minutes: QuerySet[OutcomeMinute]) -> Coalesce:
    sums = minutes.values("notification_id").annotate(sum=Sum("count")).values("sum")
    return Coalesce(Subquery(sums, output_field=BigIntegerField()), 0)


class SubscriberDelivery(NamedTuple):
    notification: Notification
    delivery: Delivery

    @property
    def outcome(self) -> str:
        """`pending`, `delivered` or `bounced`."""
        return _OUTCOMES[DeliveryStatus(self.delivery.status)]


_OUTCOMES = {
    DeliveryStatus.WAITING: "pending",
    DeliveryStatus.DELIVERED: "delivered",
    DeliveryStatus.BOUNCED: "bounced",
}


def subscriber_deliveries(
    subscription: Subscription, *, notifications: int
) -> list[SubscriberDelivery]:
    """Newest first, out of the channel's last `notifications`: each costs a look at the key."""
    last = notification_page(channel_id=subscription.channel_id, limit=notifications, offset=0)
    found = Delivery.objects.filter(
        notification_id__in=[each.pk for each in last], subscription_id=subscription.pk
    )
    by_notification = {each.notification_id: each for each in found}
    return [
        SubscriberDelivery(each, by_notification[each.pk])
        for each in last
        if each.pk in by_notification
    ]


class Recipient(NamedTuple):
    """`outcome`: waiting, delivered or bounced."""

    subscription_id: UUID
    platform: Platform
    outcome: str
    code: str
    detail: str
    attempts: int
    finished_at: datetime | None
    clicked_at: datetime | None


def recipients_after(notification_id: UUID, *, after: UUID, limit: int) -> list[Recipient]:
    """The next of a notification's recipients in the order of their ids, by the primary key."""
    parameters = {"notification": notification_id, "after": after, "limit": limit}
    return [
        Recipient(subscription_id, Platform(platform), *row)
        for subscription_id, platform, *row in sql.rows(_RECIPIENTS, parameters)
    ]


def segment_user(segment_id: UUID) -> Notification | None:
    """A notification that needs the segment: one that is pending or being processed."""
    unfinished = [NotificationStatus.PENDING, NotificationStatus.PROCESSING]
    found = Notification.objects.filter(segment_id=segment_id, status__in=unfinished)
    return next(iter(found[:1]), None)


_RECIPIENTS = """
SELECT delivery.subscription_id, batch.platform,
  (ARRAY['waiting', 'delivered', 'bounced'])[delivery.status + 1],
  delivery.code, delivery.detail, delivery.attempts, delivery.finished_at, delivery.clicked_at
FROM notifications_app_delivery delivery
JOIN notifications_app_batch batch ON batch.id = delivery.batch_id
WHERE delivery.notification_id = %(notification)s AND delivery.subscription_id > %(after)s
ORDER BY delivery.subscription_id LIMIT %(limit)s
"""

_NEWEST_OF_ALL = """
SELECT unnest(ARRAY(SELECT id FROM notifications_app_notification ORDER BY id DESC LIMIT %s))
"""

_NEWEST = """
SELECT unnest(ARRAY(
  SELECT newest.id FROM unnest(%s::uuid[]) AS wanted (channel_id)
  CROSS JOIN LATERAL (
    SELECT id FROM notifications_app_notification
    WHERE channel_id = wanted.channel_id ORDER BY id DESC LIMIT %s
  ) AS newest
  ORDER BY newest.id DESC LIMIT %s
))
"""
