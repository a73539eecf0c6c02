"""What devices report of a notification: received, clicked, dismissed. The only writer of it.

A report is counted once for each recipient, whoever repeats it and however many do so at once:
counts add only what the UPDATE of the delivery row itself changed. Locks are taken in the order
that `outcomes` names.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Final, NamedTuple
from uuid import UUID

from django.db import connection, models

from channels_app.counters import clicks_part
from notifications_app import selectors
from notifications_app.tracking import TOKEN_DAYS, TOKEN_LENGTH, read_token
from pushsvc.common.errors import NotFound
from pushsvc.common.store import sql
from pushsvc.common.store.group_commit import GroupCommit

MAX_EVENTS: Final = 20
_WRITTEN_TOKEN: Final = re.compile(rb'"([A-Za-z0-9_-]{%d})"' % TOKEN_LENGTH)


class Event(models.TextChoices):
    RECEIVED = "received"
    CLICKED = "clicked"
    DISMISSED = "dismissed"


class Report(NamedTuple):
    """What the device of one delivery says happened."""

    notification_id: UUID
    subscription_id: UUID
    event: str


def genuine(given: Iterable[tuple[str, str]]) -> list[Report]:
    """Of (token, event) pairs those whose token is ours. Asks no database."""
    read = [(read_token(token), event) for token, event in given]
    return [Report(*ids, event) for ids, event in read if ids is not None]


def holds_genuine(body: bytes) -> bool:
    """Whether a token of ours is written in what should be a report as JSON. Costs little, whatever
    the body is; a report whose tokens are spelt with escapes is taken for one that has none."""
    written = islice(_WRITTEN_TOKEN.finditer(body), MAX_EVENTS)
    return any(read_token(each[1].decode()) is not None for each in written)


def events_record(reports: Sequence[Report]) -> None:
    """Counts what is new of the reports, in one transaction. Safe to repeat.

    A click or a dismissal says that the notification was received, too. Nothing is changed for a
    delivery whose notification started over TOKEN_DAYS ago, or whose subscription was deleted, or
    that is deleted itself. What became of the handing-over does not matter: a device can only
    report what reached it, be that not yet recorded or taken for lost.

    Outside of a transaction, calls that a process makes at the same time share one.
    """
    if connection.in_atomic_block:
        _record(reports)
    elif reports:
        _record_in_group(reports)


def click_follow(reports: Sequence[Report], *, is_counted: bool) -> str:
    """Where the notification of a click leads; the click is recorded where `is_counted`.

    Raises NotFound where there is no genuine report, or the notification leads nowhere.
    """
    url = selectors.notification_url(reports[0].notification_id) if reports else ""
    if not url:
        raise NotFound
    if is_counted:
        events_record(reports)
    return url


def _record(reports: Sequence[Report]) -> None:
    columns = _columns(reports)
    if len(columns["notifications"]) == 1:
        sql.rows(_RECORD, columns)
    elif columns["notifications"]:
        with sql.brief_transaction():
            sql.rows(_LOCK_BATCHES, columns)
            sql.rows(_RECORD, columns)


_record_in_group = GroupCommit(_record)


def _columns(reports: Sequence[Report]) -> dict[str, list[object]]:
    """One entry for each delivery, whatever of it is reported."""
    reported: defaultdict[tuple[UUID, UUID], set[str]] = defaultdict(set)
    for report in reports:
        reported[report.notification_id, report.subscription_id].add(report.event)
    return {
        "notifications": [notification_id for notification_id, _ in reported],
        "subscriptions": [subscription_id for _, subscription_id in reported],
        "clicked": [Event.CLICKED in events for events in reported.values()],
        "dismissed": [Event.DISMISSED in events for events in reported.values()],
    }


# Of a delivery that is joined or selected beside `reported`: whether the report is news of it.
_IS_NEWS = """(received_at IS NULL OR (reported.clicked AND clicked_at IS NULL)
           OR (reported.dismissed AND dismissed_at IS NULL))"""

# One delivery is waited for holding nothing. Who waits for a second one must hold the batches, as
# whoever else locks several deliveries does, in orders of their own. What is no news locks nothing
# now or later: replays, however many, hold up no worker.
_LOCK_BATCHES = f"""
SELECT id FROM notifications_app_batch WHERE id IN (
  SELECT delivery.batch_id
  FROM unnest(%(notifications)s::uuid[], %(subscriptions)s::uuid[], %(clicked)s::boolean[],
              %(dismissed)s::boolean[])
    AS reported (notification_id, subscription_id, clicked, dismissed)
  JOIN notifications_app_delivery delivery USING (notification_id, subscription_id)
  WHERE {_IS_NEWS})
ORDER BY id
FOR NO KEY UPDATE
"""  # noqa: S608 - a condition of ours

# One statement, so that no lock that others wait for is held over a round trip. Each part reads
# what the one before returns, which keeps the order of locks. Deliveries are locked before they
# are judged: what is new is new of the row as it is then, whoever wrote it last.
#
# Where no click is new the end does not wait for the disk: hundreds of thousands of devices receive
# at once. Only a crash of the server could lose the last such reports, rows and counts together.
_RECORD = f"""
WITH news AS (
  SELECT reported.notification_id, reported.subscription_id, notification.channel_id,
    batch.platform, delivery.received, delivery.clicked, delivery.dismissed
  FROM unnest(%(notifications)s::uuid[], %(subscriptions)s::uuid[], %(clicked)s::boolean[],
              %(dismissed)s::boolean[])
    AS reported (notification_id, subscription_id, clicked, dismissed)
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
    AND EXISTS (SELECT FROM subscriptions_app_subscription
                WHERE id = reported.subscription_id)
), changed AS (
  UPDATE notifications_app_delivery delivery
  SET received_at = coalesce(received_at, statement_timestamp()),
      clicked_at = CASE WHEN news.clicked THEN statement_timestamp() ELSE clicked_at END,
      dismissed_at = CASE WHEN news.dismissed THEN statement_timestamp() ELSE dismissed_at END
  FROM news
  WHERE delivery.notification_id = news.notification_id
    AND delivery.subscription_id = news.subscription_id
  RETURNING news.*
), sums AS (
  SELECT notification_id, count(*) FILTER (WHERE received) AS received,
    count(*) FILTER (WHERE clicked) AS clicked, count(*) FILTER (WHERE dismissed) AS dismissed
  FROM changed GROUP BY notification_id
), turns AS (
  SELECT id FROM notifications_app_notification
  WHERE id IN (SELECT notification_id FROM sums)
  ORDER BY id
  FOR NO KEY UPDATE
), counted AS (
  UPDATE notifications_app_notification notification
  SET received_count = received_count + sums.received,
      clicked_count = clicked_count + sums.clicked,
      dismissed_count = dismissed_count + sums.dismissed
  FROM turns JOIN sums ON sums.notification_id = turns.id
  WHERE notification.id = turns.id
  RETURNING notification.channel_id, sums.clicked
), clicks AS (
  SELECT * FROM counted WHERE clicked > 0
), totals AS (
  {clicks_part("clicks")}
  RETURNING channel_id
), hours AS (
  INSERT INTO notifications_app_hourlystat AS stat (channel_id, platform, hour, clicked)
  SELECT channel_id, platform, date_trunc('hour', statement_timestamp(), 'UTC'), count(*)
  FROM changed WHERE clicked AND channel_id IN (SELECT channel_id FROM totals)
  GROUP BY channel_id, platform ORDER BY channel_id, platform
  ON CONFLICT (channel_id, platform, hour) DO UPDATE
  SET clicked = stat.clicked + excluded.clicked
  RETURNING 1
)
SELECT set_config('synchronous_commit', 'off', true) WHERE NOT EXISTS (SELECT FROM hours)
"""  # noqa: S608 - a number, a condition and a statement of ours
