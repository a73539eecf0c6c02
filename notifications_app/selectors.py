"""Reads of notifications for the API and the console."""

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple
from uuid import UUID

from django.db.models import (
    BigIntegerField,
    Case,
    Exists,
    F,
    Func,
    JSONField,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    Sum,
    Value,
    When,
)
from django.db.models.expressions import RawSQL
from django.db.models.fields.json import DataContains
from django.db.models.functions import Coalesce, JSONObject
from django.db.models.lookups import GreaterThan
from django.utils.translation import gettext

from notifications_app.models import (
    Automation,
    Batch,
    Delivery,
    Newsfeed,
    Notification,
    Occurrence,
    OutcomeMinute,
    Schedule,
)
from notifications_app.states import APART, DeliveryStatus, NotificationStatus
from pushsvc.common.errors import NotFound
from pushsvc.common.platforms import Platform
from pushsvc.common.store import sql
from subscriptions_app.models import Person, Subscription

# How recipients ended; here `bounced` is without APART.
ENDED: Final = ("delivered", "bounced", *APART)
# The columns with a notification's counts.
COUNTS: Final = (
    "recipient_count",
    "delivered_count",
    "bounced_count",
    "stopped_count",
    "opted_out_count",
    "expired_count",
    "received_count",
    "clicked_count",
    "dismissed_count",
)

_MOST_SORTED: Final = 10_000  # notifications of a period
_VALUES_OF: Final = 1_000  # notifications
_MOST_VALUES: Final = 200  # that a filter offers


def notification_get(*, channel_id: UUID, notification_id: UUID) -> Notification:
    """Returns the notification. Raises NotFound, also for a notification of another channel."""
    found = Notification.objects.filter(id=notification_id, channel_id=channel_id).first()
    if found is None:
        raise NotFound(gettext("There is no such notification."))
    return found


def notification_page(
    *,
    channel_id: UUID,
    limit: int,
    offset: int,
    status: str | None = None,
    label: str | None = None,
    scheduled_after: datetime | None = None,
    scheduled_before: datetime | None = None,
) -> list[Notification]:
    """A page of the channel's notifications, newest first. Their ids sort by time. Empty if the
    offset is past the end.

    `scheduled_after` is in the period, `scheduled_before` is not, so periods can follow each
    other."""
    conditions = {
        "status": status,
        "scheduled_at__gte": scheduled_after,
        "scheduled_at__lt": scheduled_before,
    }
    given = {name: value for name, value in conditions.items() if value is not None}
    notifications = Notification.objects.filter(channel_id=channel_id, **given)
    if label is not None:
        notifications = notifications.filter(_has_label(channel_id, label))
    listed = notifications.defer("data", "data_names").order_by("-id")
    if (
        scheduled_after
        and scheduled_before
        and _is_short(channel_id, scheduled_after, scheduled_before)
    ):
        # By no column, so that PostgreSQL reads the period, and not all newer notifications.
        listed = listed.order_by(Coalesce("id", "id").desc())
    return list(listed[offset : offset + limit])


def _has_label(channel_id: UUID, label: str) -> DataContains:
    """A condition on the channel's notifications, which the index `notification_labels` finds."""
    by_channel = Func(
        "channel_id",
        "labels",
        template="""('{"' || %(expressions)s::text || '}')::jsonb""",
        arg_joiner="""::text || '":' || """,
        output_field=JSONField(),
    )
    return DataContains(by_channel, Value({str(channel_id): [label]}, JSONField()))


def _is_short(channel_id: UUID, since: datetime, until: datetime) -> bool:
    """Whether the period has few enough notifications to read all of them for a page."""
    found = Notification.objects.filter(
        channel_id=channel_id, scheduled_at__gte=since, scheduled_at__lt=until
    )
    return found.order_by("scheduled_at")[: _MOST_SORTED + 1].count() <= _MOST_SORTED


class RecentValues(NamedTuple):
    """What the newest notifications have, for filters."""

    labels: Sequence[str]
    authors: Sequence[str]
    segments: Sequence[UUID]
    templates: Sequence[UUID]


def recent_values(channel_ids: Sequence[UUID] | None) -> RecentValues:
    """Labels and authors in alphabetical order, of the channels' newest notifications. None: of
    all channels."""
    newest = Notification.objects.filter(id__in=newest_ids(channel_ids, limit=_VALUES_OF))
    rows = list(newest.values_list("labels", "sent_by", "segment_id", "template_id"))
    labels = {label for labels, *_ in rows for label in labels or ()}
    return RecentValues(
        sorted(labels, key=str.casefold)[:_MOST_VALUES],
        sorted({author for _, author, *_ in rows if author}, key=str.casefold)[:_MOST_VALUES],
        list({segment for _, _, segment, _ in rows if segment})[:_MOST_VALUES],
        list({template for *_, template in rows if template})[:_MOST_VALUES],
    )


def notification_url(notification_id: UUID) -> tuple[str, bool]:
    """The url that a click opens, for a notification of any channel, or ""; and whether it is the
    same on every device."""
    found = Notification.objects.filter(id=notification_id).values_list("url", "extras").first()
    url, extras = found or ("", None)
    return url, not extras


def newest_ids(channel_ids: Sequence[UUID] | None, *, limit: int) -> RawSQL:
    """Ids of the channels' newest notifications, for `id__in` of a query. None: of all channels.

    They are an array, because PostgreSQL reads an array first and by index. With a plain subquery
    it may choose the other join order and read every notification.
    """
    values: tuple[Any, ...] = (limit,)
    statement = _NEWEST_OF_ALL
    if channel_ids is not None:
        statement, values = _NEWEST, (list(channel_ids), limit, limit)
    return RawSQL(statement, values)  # noqa: S611 (constant text; every value is a parameter)


def notifications_sent_since(
    notifications: QuerySet[Any], since: datetime, *, platform: str = ""
) -> QuerySet[Any]:
    """Notifications that were being sent at some time after `since`, which must begin a minute.

    Adds `ended_since`: how many recipients ended since then, on one platform or on all (""), by
    `delivered`, `bounced` and APART.
    """
    minutes = _minutes(since, platform)
    is_running = Q(status=NotificationStatus.PROCESSING)
    then = notifications.filter(is_running | Q(finished_at__gte=since), started_at__isnull=False)
    counted: QuerySet[Any] = then.annotate(
        ended_since=JSONObject(**{outcome: _sum(_ended(minutes, outcome)) for outcome in ENDED})
    )
    return counted


def notifications_with_outcome(
    notifications: QuerySet[Any], *, outcome: str, since: datetime | None, platform: str
) -> QuerySet[Any]:
    """Notifications with a recipient of this outcome, one of ENDED, after `since` or at any time
    (None), on one platform or on any ("")."""
    return notifications.filter(Exists(_ended(_minutes(since, platform), outcome)))


def campaigns(notifications: QuerySet[Any]) -> QuerySet[Any]:
    """Notifications to an audience: neither tests nor to ids."""
    return notifications.filter(only_subscription_id__isnull=True, has_targets=False)


def sent_by_schedule(notifications: QuerySet[Any]) -> QuerySet[Any]:
    return notifications.filter(Exists(Occurrence.objects.filter(notification_id=OuterRef("pk"))))


def with_many_bounces(notifications: QuerySet[Any]) -> QuerySet[Any]:
    """Notifications with over a tenth of their recipients bounced, not counting those that ended by
    a stop, an opt-out or the deadline."""
    apart = F("stopped_count") + F("opted_out_count") + F("expired_count")
    bounced, recipients = F("bounced_count") - apart, F("recipient_count") - apart
    return notifications.filter(GreaterThan(bounced * 10, recipients))


def _ended(minutes: QuerySet[OutcomeMinute], outcome: str) -> QuerySet[OutcomeMinute]:
    if outcome == "bounced":
        return minutes.exclude(code__in=["", *APART])
    return minutes.filter(code="" if outcome == "delivered" else outcome)


def _minutes(since: datetime | None, platform: str) -> QuerySet[OutcomeMinute]:
    """The outcome minutes of the outer query's notification."""
    minutes = OutcomeMinute.objects.filter(notification_id=OuterRef("pk"))
    if since:
        minutes = minutes.filter(minute__gte=since)
    return minutes.filter(platform=platform) if platform else minutes


def _sum(minutes: QuerySet[OutcomeMinute]) -> Coalesce:
    sums = minutes.values("notification_id").annotate(sum=Sum("count")).values("sum")
    return Coalesce(Subquery(sums, output_field=BigIntegerField()), 0)


# The public names of a delivery's status.
OUTCOMES: Final = {
    DeliveryStatus.WAITING: "waiting",
    DeliveryStatus.DELIVERED: "delivered",
    DeliveryStatus.BOUNCED: "bounced",
}


class NamedNow(NamedTuple):
    """How the targets of a notification name a subscription: the external id of its current person,
    or "", and the values. Values of the subscription override those of the person."""

    external_id: str
    vars: Mapping[str, Any]


def naming(notifications: Iterable[Notification]) -> dict[UUID, UUID]:
    """By the id of a notification that may be shown only to whom targets name: the notification
    that has the targets. For a correction it is the first notification."""
    own = list(notifications)
    roots = {each.root_id for each in own if each.root_id}
    direct = Notification.objects.filter(pk__in=roots, has_targets=True) if roots else ()
    named_by = {each.pk for each in direct} | {each.pk for each in own if each.has_targets}
    found = {each.pk: each.root_id or each.pk for each in own}
    return {id_: by for id_, by in found.items() if by in named_by}


def still_named(recipients: Sequence[tuple[UUID, UUID]]) -> dict[tuple[UUID, UUID], NamedNow]:
    """By (notification id, subscription id): how the targets name the subscription. A pair is
    missing if no target of the notification names the subscription or its current person."""
    notifications, subscriptions = zip(*recipients, strict=True)
    parameters = {"notifications": list(notifications), "subscriptions": list(subscriptions)}
    return {
        (notification, subscription): NamedNow(external_id or "", _vars(of_person) | _vars(own))
        for notification, subscription, external_id, of_person, own in sql.rows(
            _STILL_NAMED, parameters, is_prepared=sql.are_few(recipients)
        )
    }


def _vars(stored: str | None) -> dict[str, Any]:
    return json.loads(stored) if stored else {}


class SubscriberDelivery(NamedTuple):
    notification: Notification
    delivery: Delivery

    @property
    def outcome(self) -> str:
        """One of OUTCOMES."""
        return OUTCOMES[DeliveryStatus(self.delivery.status)]


def subscriber_deliveries(
    subscription: Subscription, *, notifications: int
) -> list[SubscriberDelivery]:
    """The subscription's deliveries among the channel's last `notifications`, newest first. Each is
    one lookup by key."""
    channel_id, own = subscription.channel_id, [subscription.pk]
    return devices_deliveries(channel_id, own, notifications=notifications)[subscription.pk]


def devices_deliveries(
    channel_id: UUID, subscription_ids: Sequence[UUID], *, notifications: int
) -> dict[UUID, list[SubscriberDelivery]]:
    """The deliveries of several subscriptions, by their ids, as `subscriber_deliveries`."""
    last = notification_page(channel_id=channel_id, limit=notifications, offset=0)
    by_id = {each.pk: each for each in last}
    found = Delivery.objects.filter(
        notification_id__in=list(by_id), subscription_id__in=subscription_ids
    )
    deliveries: dict[UUID, list[SubscriberDelivery]] = {id_: [] for id_ in subscription_ids}
    places = {id_: place for place, id_ in enumerate(by_id)}
    for each in sorted(found, key=lambda row: places[row.notification_id]):
        shown = SubscriberDelivery(by_id[each.notification_id], each)
        deliveries[each.subscription_id].append(shown)
    return deliveries


def person_deliveries(person: Person, *, notifications: int) -> list[SubscriberDelivery]:
    """The deliveries of all devices of the person among the channel's last `notifications`, newest
    first."""
    ids = list(person.devices.values_list("pk", flat=True))
    by_device = devices_deliveries(person.channel_id, ids, notifications=notifications)
    found = [each for deliveries in by_device.values() for each in deliveries]
    return sorted(found, key=lambda each: each.notification.created_at, reverse=True)


class LogEntry(NamedTuple):
    """The result of one recipient. `outcome`: one of OUTCOMES. `clicked_action`: from 0."""

    subscription_id: UUID
    platform: Platform
    outcome: str
    code: str
    detail: str
    attempts: int
    finished_at: datetime | None
    received_at: datetime | None
    clicked_at: datetime | None
    clicked_action: int | None
    dismissed_at: datetime | None


def log_after(notification_id: UUID, *, after: UUID, limit: int) -> list[LogEntry]:
    """The notification's next recipients in the order of their subscription ids."""
    batch = Batch.objects.filter(pk=OuterRef("batch_id"))
    entries = Delivery.objects.filter(
        notification_id=notification_id, subscription_id__gt=after
    ).annotate(platform=Subquery(batch.values("platform")), outcome=_OUTCOME)
    rows = entries.order_by("subscription_id").values_list(*LogEntry._fields)
    return [LogEntry(id_, Platform(platform), *row) for id_, platform, *row in rows[:limit]]


_OUTCOME: Final = Case(
    *(When(status=status, then=Value(name)) for status, name in OUTCOMES.items())
)


def segment_user(segment_id: UUID) -> Notification | None:
    """An unfinished notification that targets the segment, or None."""
    unfinished = [NotificationStatus.PENDING, NotificationStatus.PROCESSING]
    found = Notification.objects.filter(segment_id=segment_id, status__in=unfinished)
    return next(iter(found[:1]), None)


def segment_automation(channel_id: UUID, segment_id: UUID) -> UUID | None:
    """The id of an enabled automation of the channel whose condition is the segment, or None."""
    using = Automation.objects.filter(channel_id=channel_id, segment_id=segment_id, is_enabled=True)
    return next(iter(using.values_list("pk", flat=True)[:1]), None)


def segment_schedule(channel_id: UUID, segment_id: UUID) -> UUID | None:
    """The id of an enabled schedule of the channel that targets the segment and goes on, or
    None."""
    using = Schedule.objects.filter(
        channel_id=channel_id, segment_id=segment_id, is_enabled=True, next_at__isnull=False
    )
    return next(iter(using.values_list("pk", flat=True)[:1]), None)


def segment_newsfeed(channel_id: UUID, segment_id: UUID) -> UUID | None:
    """The id of an enabled newsfeed of the channel that targets the segment, or None."""
    using = Newsfeed.objects.filter(channel_id=channel_id, segment_id=segment_id, is_enabled=True)
    return next(iter(using.values_list("pk", flat=True)[:1]), None)


# Raw, because the ORM cannot query pairs. One statement, so that the values belong to the person
# that the statement sees. Each pair is found once, because a notification names a person or a
# subscription at most once.
_STILL_NAMED = """
SELECT recipient.notification_id, recipient.subscription_id, person.external_id,
  named.vars, target.vars
FROM unnest(%(notifications)s::uuid[], %(subscriptions)s::uuid[])
  AS recipient (notification_id, subscription_id)
JOIN subscriptions_app_subscription AS subscription
  ON subscription.id = recipient.subscription_id
LEFT JOIN subscriptions_app_person AS person ON person.id = subscription.person_id
LEFT JOIN notifications_app_target AS named
  ON named.notification_id = recipient.notification_id
  AND named.external_id = person.external_id
LEFT JOIN notifications_app_target AS target
  ON target.notification_id = recipient.notification_id
  AND target.subscription_id = recipient.subscription_id
WHERE named.notification_id IS NOT NULL OR target.notification_id IS NOT NULL
"""

# Raw, because the ORM has no LATERAL: the newest of each channel are read by index, then the newest
# of all these are kept. BETWEEN and both orders, because with an equality PostgreSQL may read the
# primary key instead, and for a channel without notifications all of it.
_NEWEST_OF_ALL = """
SELECT unnest(ARRAY(SELECT id FROM notifications_app_notification ORDER BY id DESC LIMIT %s))
"""

_NEWEST = """
SELECT unnest(ARRAY(
  SELECT newest.id FROM unnest(%s::uuid[]) AS wanted (channel_id)
  CROSS JOIN LATERAL (
    SELECT id FROM notifications_app_notification
    WHERE channel_id BETWEEN wanted.channel_id AND wanted.channel_id
    ORDER BY channel_id, id DESC LIMIT %s
  ) AS newest
  ORDER BY newest.id DESC LIMIT %s
))
"""
