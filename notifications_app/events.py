"""The only writer of the events that devices report: received, clicked, dismissed.

An event counts once for each recipient, even if it is repeated or reported concurrently, because
only changes of the delivery row are counted. Locks are taken in the order of docs/architecture.md.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import timedelta
from itertools import islice
from typing import Final, NamedTuple
from uuid import UUID

from django.conf import settings
from django.db import connection, models
from django.db.models import Exists, Q
from django.db.models.functions import Coalesce, Now

from channels_app.counters import clicks_part
from channels_app.feeds import EventKind as FactKind
from channels_app.feeds import feed_call
from notifications_app import selectors
from notifications_app.content.personal import PersonalContent
from notifications_app.content.tracking import TOKEN_DAYS, TOKEN_LENGTH, read_token
from notifications_app.delivery.messages import Messages
from notifications_app.device_values import spoken_by, stored_values
from notifications_app.models import Batch, Delivery, Notification
from pushsvc.common.errors import NotFound
from pushsvc.common.links import absolute, may_be_opened
from pushsvc.common.platforms import Platform
from pushsvc.common.store import sql
from pushsvc.common.store.group_commit import GroupCommit
from subscriptions_app.devices.clicks import last_clicks_part
from subscriptions_app.devices.selectors import exists_part
from subscriptions_app.models import Subscription

MAX_EVENTS: Final = 20
AT_ONCE: Final = 500  # most events of a group, so that its locks are held briefly
MAX_BODY: Final = 8 * 1024  # bytes of a report; four times the size of 20 events
_WRITTEN_TOKEN: Final = re.compile(rb'"([A-Za-z0-9_-]{%d})"' % TOKEN_LENGTH)


class EventKind(models.TextChoices):
    RECEIVED = "received"
    CLICKED = "clicked"
    DISMISSED = "dismissed"


class Event(NamedTuple):
    """What a device reports of one delivery."""

    notification_id: UUID
    subscription_id: UUID
    kind: str
    action: str = ""  # the id of the button that was clicked


def read_events(given: Iterable[tuple[str, str, str]]) -> list[Event]:
    """The events of each (token, kind, action) whose token is valid. Does not use the database."""
    read = [(read_token(token), kind, action) for token, kind, action in given]
    return [Event(*ids, kind, action) for ids, kind, action in read if ids is not None]


def holds_valid_token(body: bytes) -> bool:
    """Whether the body contains a valid token. The body need not be JSON.

    The cost is bounded for any body. A token that is written with JSON escapes is not found.
    """
    written = islice(_WRITTEN_TOKEN.finditer(body), MAX_EVENTS)
    return any(read_token(each[1].decode()) is not None for each in written)


def events_record(events: Sequence[Event]) -> None:
    """Counts new events, in one transaction. Safe to repeat.

    A click or a dismissal implies that the notification was received. A click of an action that the
    notification does not have counts as a click without action. Nothing changes for a notification
    that started over TOKEN_DAYS ago, for a deleted subscription, or for a deleted delivery. The
    delivery may have any status, because a device can report before the outcome is recorded, and
    after a call whose response was lost.

    Outside of a transaction, concurrent calls of a process share one transaction, with at most
    AT_ONCE events.
    """
    if connection.in_atomic_block:
        _record(events)
    elif events:
        _record_in_group(events)


def click_follow(clicks: Sequence[Event], *, is_counted: bool, is_personal: bool) -> str:
    """Returns the url that the clicked notification opens on the device. Records the click if
    `is_counted`. Raises NotFound if there is no click, or if the notification has no url.

    A personal url has the device's values only if `is_personal`, for TOKEN_DAYS, and while the
    device belongs to the person to whom the message was sent. Otherwise it is that of the common
    texts.
    """
    url = _url(clicks[0], is_personal=is_personal) if clicks else ""
    if not url:
        raise NotFound
    if is_counted:
        events_record(clicks)
    return url


def _url(click: Event, *, is_personal: bool) -> str:
    """The url of the click. Most notifications have the same url on every device."""
    url, is_same = selectors.notification_url(click.notification_id)
    return url if is_same else _own_url(click, is_personal=is_personal)


def _own_url(click: Event, *, is_personal: bool) -> str:
    """The url of the device's message, with the current values of the device. For a deleted device,
    for a device whose values may not be shown and for a path of a site, the url of the common
    texts; "" for a url that the device's values have spoiled since."""
    notification = Notification.objects.get(pk=click.notification_id)
    found = Subscription.objects.filter(pk=click.subscription_id)
    if notification.content.personalize:
        found = found.filter(_still_of_recipient(click)) if is_personal else found.none()
    device = found.select_related("person").first()
    values = stored_values(notification, click.subscription_id, device)
    content = notification.content
    if content.variants:
        content = content.of_variant(_variant(click))
    common = PersonalContent(content).filled(values).url if content.personalize else content.url
    if device is None:
        return common
    messages = Messages(notification.pk, content, Platform(device.platform), expires_at=0.0)
    url = messages.filled(spoken_by(device), values).whole.url
    if not may_be_opened(url):
        return ""
    return absolute(url) or common


def _variant(click: Event) -> int | None:
    """Which the device got; None if its delivery is deleted."""
    own = Delivery.objects.filter(
        notification_id=click.notification_id, subscription_id=click.subscription_id
    )
    batch = Batch.objects.filter(pk__in=own.values("batch_id"))
    return batch.values_list("variant", flat=True).first()


def _still_of_recipient(click: Event) -> Q:
    """Whether the device still belongs to the person to whom the message was sent, or to nobody as
    then."""
    sent = Delivery.objects.filter(
        notification_id=click.notification_id, subscription_id=click.subscription_id
    )
    begun = Notification.objects.filter(
        pk=click.notification_id, started_at__gt=Now() - timedelta(days=TOKEN_DAYS)
    )
    # A pass reads the values before it writes the outcome, at most the time of a lease before.
    handed_over = Coalesce(sent.values("finished_at"), begun.values("started_at")) - timedelta(
        seconds=settings.LEASE_SECONDS
    )
    is_same = Q(linked_at=None) | Q(linked_at__lt=handed_over)
    return is_same & Q(Exists(sent), Exists(begun))


def _record(events: Sequence[Event]) -> None:
    columns = _columns(events)
    # Prepared for any number, because rows are looked up by keys in any plan.
    if len(columns["notifications"]) == 1:
        sql.rows(_RECORD, columns, is_prepared=True)
    elif columns["notifications"]:
        with sql.brief_transaction():
            sql.rows(_LOCK_BATCHES, columns, is_prepared=True)
            sql.rows(_RECORD, columns, is_prepared=True)


_record_in_group = GroupCommit(_record, most=AT_ONCE)


def _columns(events: Sequence[Event]) -> dict[str, list[object]]:
    """One entry for each delivery, with all its events."""
    reported: defaultdict[tuple[UUID, UUID], set[str]] = defaultdict(set)
    actions: dict[tuple[UUID, UUID], str] = {}
    for event in events:
        delivery = event.notification_id, event.subscription_id
        reported[delivery].add(event.kind)
        if event.kind == EventKind.CLICKED:
            actions.setdefault(delivery, event.action)
    return {
        "notifications": [notification_id for notification_id, _ in reported],
        "subscriptions": [subscription_id for _, subscription_id in reported],
        "clicked": [EventKind.CLICKED in kinds for kinds in reported.values()],
        "dismissed": [EventKind.DISMISSED in kinds for kinds in reported.values()],
        "actions": [actions.get(delivery) or None for delivery in reported],
    }


# Raw, because the ORM has neither statements that chain UPDATEs nor unnest over parallel arrays.
# Whether an event is new, for a delivery in a statement with `reported`.
_IS_NEWS = """(received_at IS NULL OR (reported.clicked AND clicked_at IS NULL)
           OR (reported.dismissed AND dismissed_at IS NULL))"""

# A single delivery is locked while no other lock is held. Before several deliveries, their batches
# are locked, as in all code that locks several deliveries, so the order of deliveries does not
# matter. Events that are not new lock nothing, so repeated events delay no worker.
_REPORTED: Final = """unnest(%(notifications)s::uuid[], %(subscriptions)s::uuid[],
              %(clicked)s::boolean[], %(dismissed)s::boolean[], %(actions)s::text[])
    AS reported (notification_id, subscription_id, clicked, dismissed, action)"""

_LOCK_BATCHES = f"""
SELECT id FROM notifications_app_batch WHERE id IN (
  SELECT delivery.batch_id
  FROM {_REPORTED}
  JOIN notifications_app_delivery delivery USING (notification_id, subscription_id)
  WHERE {_IS_NEWS})
ORDER BY id
FOR NO KEY UPDATE
"""  # noqa: S608 - a constant

_CLICK, _DISMISSAL = (
    feed_call(
        kind,
        channel="news.channel_id",
        subject="news.notification_id",
        second="news.subscription_id",
        code=code,
        platform="news.platform",
    )
    for kind, code in (
        (FactKind.CLICKED, "CASE WHEN news.clicked_action IS NULL THEN '' ELSE news.action END"),
        (FactKind.DISMISSED, "''"),
    )
)

_IS_COUNTED: Final = "(notification_id IN (SELECT id FROM counted)) IS TRUE"

# One statement, so that no lock is held during a round trip. Each part reads or counts what the
# previous part returns, which keeps the order of locks. Deliveries are locked before they are read,
# so the row is as the last writer left it. No transaction waits for a notification's hours, because
# this one holds the lock of the notification.
#
# No part is joined with another: parts have no index, and the plan for any number of events would
# compare all of their rows. So `turns` returns the sums, and each IN has IS TRUE, with which it is
# not joined, but looked up in a hash table.
#
# If no click is new, the commit does not wait for the disk, because hundreds of thousands of
# devices report at once. A crash of the server can lose the last events, rows and counts together.
_RECORD = f"""
WITH news AS (
  SELECT reported.notification_id, reported.subscription_id, notification.channel_id,
    batch.platform, batch.variant, delivery.received, delivery.clicked, delivery.dismissed,
    reported.action,
    CASE WHEN delivery.clicked AND reported.action IS NOT NULL THEN (
      SELECT place - 1 FROM jsonb_array_elements(notification.extras -> 'actions')
        WITH ORDINALITY AS button (value, place)
      WHERE value ->> 'id' = reported.action
    ) END AS clicked_action
  FROM {_REPORTED}
  JOIN notifications_app_notification notification ON notification.id = reported.notification_id
  CROSS JOIN LATERAL (
    SELECT batch_id, received_at IS NULL AS received,
      reported.clicked AND clicked_at IS NULL AS clicked,
      reported.dismissed AND dismissed_at IS NULL AS dismissed
    FROM notifications_app_delivery
    WHERE notification_id = reported.notification_id
      AND subscription_id = reported.subscription_id
      AND {_IS_NEWS}
    FOR NO KEY UPDATE
  ) AS delivery
  JOIN notifications_app_batch batch ON batch.id = delivery.batch_id
  WHERE notification.started_at > statement_timestamp() - interval '{TOKEN_DAYS} days'
    AND {exists_part("reported.subscription_id")}
), changed AS (
  UPDATE notifications_app_delivery delivery
  SET received_at = coalesce(received_at, statement_timestamp()),
      clicked_at = CASE WHEN news.clicked THEN statement_timestamp() ELSE clicked_at END,
      clicked_action = coalesce(news.clicked_action, delivery.clicked_action),
      dismissed_at = CASE WHEN news.dismissed THEN statement_timestamp() ELSE dismissed_at END
  FROM news
  WHERE delivery.notification_id = news.notification_id
    AND delivery.subscription_id = news.subscription_id
  RETURNING news.*, CASE WHEN news.clicked THEN {_CLICK} END AS click_fed,
    CASE WHEN news.dismissed THEN {_DISMISSAL} END AS dismissal_fed
), sums AS (
  SELECT notification_id, count(*) FILTER (WHERE received) AS received,
    count(*) FILTER (WHERE clicked) AS clicked, count(*) FILTER (WHERE dismissed) AS dismissed
  FROM changed GROUP BY notification_id
), turns AS (
  SELECT sums.* FROM sums
  JOIN notifications_app_notification notification ON notification.id = sums.notification_id
  ORDER BY notification.id
  FOR NO KEY UPDATE OF notification
), counted AS (
  UPDATE notifications_app_notification notification
  SET received_count = received_count + turns.received,
      clicked_count = clicked_count + turns.clicked,
      dismissed_count = dismissed_count + turns.dismissed
  FROM turns
  WHERE notification.id = turns.notification_id
  RETURNING notification.id, notification.channel_id, turns.clicked,
    notification.only_subscription_id IS NOT NULL AS is_test
), action_counts AS (
  INSERT INTO notifications_app_actioncount AS stat (notification_id, action, count)
  SELECT notification_id, action, count(*) FROM changed
  WHERE clicked_action IS NOT NULL AND {_IS_COUNTED}
  GROUP BY notification_id, action
  ON CONFLICT (notification_id, action) DO UPDATE SET count = stat.count + excluded.count
), variant_counts AS (
  INSERT INTO notifications_app_variantcount AS stat
    (notification_id, variant, received, clicked, dismissed)
  SELECT notification_id, variant, count(*) FILTER (WHERE received),
    count(*) FILTER (WHERE clicked), count(*) FILTER (WHERE dismissed)
  FROM changed WHERE variant IS NOT NULL AND {_IS_COUNTED}
  GROUP BY notification_id, variant ORDER BY notification_id, variant
  ON CONFLICT (notification_id, variant) DO UPDATE
  SET received = stat.received + excluded.received, clicked = stat.clicked + excluded.clicked,
      dismissed = stat.dismissed + excluded.dismissed
), event_hours AS (
  INSERT INTO notifications_app_eventhour AS stat
    (notification_id, hour, platform, received, clicked, dismissed)
  SELECT notification_id, date_trunc('hour', statement_timestamp(), 'UTC'), platform,
    count(*) FILTER (WHERE received), count(*) FILTER (WHERE clicked),
    count(*) FILTER (WHERE dismissed)
  FROM changed WHERE {_IS_COUNTED}
  GROUP BY notification_id, platform
  ON CONFLICT (notification_id, hour, platform) DO UPDATE
  SET received = stat.received + excluded.received, clicked = stat.clicked + excluded.clicked,
      dismissed = stat.dismissed + excluded.dismissed
), clickers AS (
  {last_clicks_part("changed")}
  RETURNING 1
), clicks AS (
  SELECT * FROM counted WHERE clicked > 0 AND (SELECT count(*) FROM clickers) >= 0
), totals AS (
  {clicks_part("clicks")}
  RETURNING channel_id
), hours AS (
  INSERT INTO notifications_app_hourlystat AS stat (channel_id, platform, hour, clicked)
  SELECT channel_id, platform, date_trunc('hour', statement_timestamp(), 'UTC'), count(*)
  FROM changed WHERE clicked AND (channel_id IN (SELECT channel_id FROM totals)) IS TRUE
    AND notification_id NOT IN (SELECT id FROM clicks WHERE is_test)
  GROUP BY channel_id, platform ORDER BY channel_id, platform
  ON CONFLICT (channel_id, platform, hour, shard) DO UPDATE
  SET clicked = stat.clicked + excluded.clicked
  RETURNING 1
)
SELECT set_config('synchronous_commit', 'off', true) WHERE NOT EXISTS (SELECT FROM hours)
"""  # noqa: S608 - constants
