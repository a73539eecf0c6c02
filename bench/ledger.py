"""Writes the ledger of past days in the database: one notification a day, with its plan, its
batches and its deliveries, which are all delivered."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from django.db import connection

from bench.filling import ID

if TYPE_CHECKING:
    from channels_app.models import Channel

_SHARES: Final = 16  # a day's notification reaches one of this many parts of the channel


def prepare(channel: "Channel") -> None:
    """Chooses the devices of each part."""
    with connection.cursor() as cursor:
        cursor.execute(_DEVICES, {"channel": channel.pk, "shares": _SHARES})
        cursor.execute("ANALYZE bench_device")


def fill_days(channel: "Channel", days: Iterable[float], recipients: int) -> None:
    """One notification for each of `days`, which count back from now, to one part in turn, and to
    at most `recipients` of its devices. The channel is the last that was prepared."""
    with connection.cursor() as cursor:
        for number, ago in enumerate(days):
            own = {"ago": ago, "share": number % _SHARES, "recipients": recipients}
            cursor.execute(_DAY, own | {"channel": channel.pk})


# Devices of each part are stored together. Otherwise each day would read all devices.
_DEVICES = """
DROP TABLE IF EXISTS bench_device;
CREATE UNLOGGED TABLE bench_device AS
SELECT get_byte(uuid_send(id), 15) %% %(shares)s AS share, id FROM subscriptions_app_subscription
WHERE channel_id = %(channel)s AND expired_at IS NULL ORDER BY 1, 2;
CREATE INDEX ON bench_device (share, id)
"""

_DAY = f"""
WITH sent_at AS (
  SELECT now() - make_interval(secs => 86400 * %(ago)s) AS moment
), devices AS MATERIALIZED (
  SELECT id, (row_number() OVER (ORDER BY id) - 1) / 1000 AS slot
  FROM (SELECT id FROM bench_device WHERE share = %(share)s ORDER BY id LIMIT %(recipients)s) AS own
), counted AS (
  SELECT count(*) AS number FROM devices
), slots AS MATERIALIZED (
  SELECT slot, number, nextval(pg_get_serial_sequence('notifications_app_batch', 'id')) AS id
  FROM (SELECT slot, count(*) AS number FROM devices GROUP BY slot ORDER BY slot) AS counted
), sent AS (
  INSERT INTO notifications_app_notification
    (id, channel_id, title, body, icon, url, image, data, ttl, urgency, topic, target_platforms,
     status, created_at, scheduled_at, started_at, deadline_at, finished_at,
     recipient_count, delivered_count, bounced_count, clicked_count)
  SELECT {ID.format(moment="moment")}, %(channel)s, 'A day', 'Fresh bread', '', '', '', '{{}}',
    3600, 'normal', '', '["android"]', 'sent', moment, moment, moment, moment + interval '1 hour',
    moment + interval '10 minutes', number, number, 0, 0
  FROM sent_at, counted
  RETURNING id, started_at, finished_at
), plans AS (
  INSERT INTO notifications_app_plan
    (notification_id, channel_id, platform, status, recipient_count, due_at, release_at,
     deadline_at)
  SELECT id, %(channel)s, 'android', 'done', number, started_at, started_at, finished_at
  FROM sent, counted
  RETURNING id, notification_id
), batches AS (
  INSERT INTO notifications_app_batch
    (id, plan_id, notification_id, channel_id, platform, push_service, status, due_at, claimed_at,
     finished_at, lease_number, recipient_count, delivered_count)
  SELECT slots.id, plans.id, notification_id, %(channel)s, 'android', 'fcm_v1', 'done', started_at,
    started_at, finished_at, 1, number, number
  FROM plans, sent, slots ORDER BY slots.id
)
INSERT INTO notifications_app_delivery
  (notification_id, subscription_id, batch_id, status, attempts, first_attempt_at, finished_at)
SELECT sent.id, devices.id, slots.id, 1, 1, started_at, finished_at
FROM sent, devices JOIN slots USING (slot) ORDER BY devices.id
"""  # noqa: S608 - a constant
