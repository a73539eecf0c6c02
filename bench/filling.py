"""Fills channels with subscriptions and notifications for a figure; the database writes the rows.

The addresses of the subscriptions do not exist, and browsers have no keys.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from django.db import OperationalError, connection

if TYPE_CHECKING:
    from uuid import UUID

    from channels_app.models import Channel

_PLATFORMS: Final = ("web", "web", "android", "ios")  # browsers are half of all


def channel_with(recipients: int, *, platforms: Sequence[str]) -> "Channel":
    """A new channel, without notifications. All its subscriptions are active."""
    from channels_app.services import channel_create

    channel = channel_create(name="Bench")
    fill(channel, recipients, 0, platforms=platforms, expired=recipients + 1)
    return channel


def fill(
    channel: "Channel",
    subscribers: int,
    notifications: int,
    *,
    platforms: Sequence[str] = _PLATFORMS,
    expired: int = 20,
) -> None:
    """Writes subscriptions and notifications, with the channel's totals, and runs ANALYZE. One of
    `expired` subscriptions has expired."""
    parameters: dict[str, UUID | int | list[str]] = {
        "channel": channel.pk,
        "subscribers": subscribers,
        "notifications": notifications,
        "platforms": list(platforms),
        "expired": expired,
    }
    with connection.cursor() as cursor:
        for statement in (_SUBSCRIBERS, _COUNTERS, _NOTIFICATIONS):
            cursor.execute(statement, parameters)
        cursor.execute("VACUUM ANALYZE")


@contextmanager
def in_bulk(table: str) -> Iterator[None]:
    """A context in which millions of rows are written faster: without checks of foreign keys, and
    without indexes except the primary key. The indexes are created again at its end."""
    with connection.cursor() as cursor:
        cursor.execute("SET session_replication_role = replica; SET maintenance_work_mem = '1GB'")
        cursor.execute(_INDEXES, {"table": table})
        dropped: list[tuple[str, str]] = cursor.fetchall()
        for drop, _ in dropped:
            cursor.execute(drop)
        yield
        for _, make in dropped:
            cursor.execute(make)
        cursor.execute("RESET session_replication_role; RESET maintenance_work_mem")


def forget_notifications() -> None:
    """Deletes all notifications with their plans, batches and deliveries. Tries again if planners
    that look for work have locked the tables in another order."""
    for tries_left in reversed(range(10)):
        try:
            with connection.cursor() as cursor:
                cursor.execute("TRUNCATE notifications_app_notification CASCADE")
            return
        except OperationalError:
            if not tries_left:
                raise


_INDEXES = """
SELECT
  CASE WHEN own.oid IS NULL THEN format('DROP INDEX %%s', indexrelid::regclass)
  ELSE format('ALTER TABLE %%s DROP CONSTRAINT %%I', indrelid::regclass, conname) END,
  CASE WHEN own.oid IS NULL THEN pg_get_indexdef(indexrelid)
  ELSE format('ALTER TABLE %%s ADD CONSTRAINT %%I %%s', indrelid::regclass, conname,
              pg_get_constraintdef(own.oid)) END
FROM pg_index LEFT JOIN pg_constraint own ON own.conindid = indexrelid AND own.contype = 'u'
WHERE indrelid = %(table)s::regclass AND NOT indisprimary
"""

# Ids are UUIDv7 of the last 90 days, so that they sort by time as real ones do.
ID = """(lpad(to_hex((extract(epoch FROM {moment}) * 1000)::bigint), 12, '0')
  || '7' || substr(md5(random()::text), 1, 3) || '8' || substr(md5(random()::text), 1, 15))::uuid"""

_SUBSCRIBERS = f"""
INSERT INTO subscriptions_app_subscription
  (id, channel_id, platform, address, address_sha256, p256dh, auth, vapid_key_id, push_service,
   attributes, created_at, registered_at, expired_at, expired_code)
SELECT {ID.format(moment="moment")}, %(channel)s, platform, address, sha256(address::bytea),
  '', '',
  CASE platform WHEN 'web' THEN (SELECT id FROM channels_app_vapidkey
                                 WHERE channel_id = %(channel)s) END,
  CASE platform WHEN 'web' THEN 'mozilla' WHEN 'android' THEN 'fcm_v1' ELSE 'apns' END,
  jsonb_build_object('plan', (ARRAY['free', 'pro', 'team'])[1 + n %% 3], 'age', 18 + n %% 60),
  moment, moment, CASE WHEN n %% %(expired)s = 0 THEN least(now(), moment + interval '9 days') END,
  CASE WHEN n %% %(expired)s = 0 THEN 'gone' ELSE '' END
FROM (
  SELECT n, format('https://push.example/%%s/%%s', %(channel)s, n) AS address,
    (%(platforms)s::text[])[1 + n %% cardinality(%(platforms)s::text[])] AS platform,
    now() - interval '90 days' * n / %(subscribers)s AS moment
  FROM generate_series(1, %(subscribers)s) AS n
) AS made
"""  # noqa: S608 - numbers of the bench's own

_COUNTERS = """
INSERT INTO channels_app_channelcounter
  (channel_id, shard, web_subscribers, android_subscribers, ios_subscribers, notifications_sent)
SELECT %(channel)s, 0, count(*) FILTER (WHERE platform = 'web'),
  count(*) FILTER (WHERE platform = 'android'), count(*) FILTER (WHERE platform = 'ios'),
  %(notifications)s
FROM subscriptions_app_subscription WHERE channel_id = %(channel)s AND expired_at IS NULL
"""

# Of every hundred, one is being sent and two are scheduled.
_NOTIFICATIONS = f"""
INSERT INTO notifications_app_notification
  (id, channel_id, title, body, icon, url, image, data, ttl, urgency, topic, target_platforms,
   status, created_at, scheduled_at, started_at, deadline_at, finished_at,
   recipient_count, delivered_count, bounced_count, clicked_count)
SELECT {ID.format(moment="moment")}, %(channel)s, 'Notification number ' || n, 'Fresh bread', '',
  'https://shop.example/', '', '{{}}', 3600, 'normal', '', '["web", "android", "ios"]', status,
  moment, CASE status WHEN 'pending' THEN now() + interval '1 hour' * n ELSE moment END,
  CASE WHEN status <> 'pending' THEN moment END,
  CASE WHEN status <> 'pending' THEN moment + interval '100 days' END,
  CASE status WHEN 'sent' THEN moment + interval '1 minute' END,
  CASE status WHEN 'pending' THEN 0 ELSE 1000 END, CASE status WHEN 'pending' THEN 0 ELSE 900 END,
  CASE status WHEN 'sent' THEN 100 ELSE 0 END, 0
FROM (
  SELECT n, now() - interval '90 days' * n / %(notifications)s AS moment,
    CASE WHEN n %% 100 = 0 THEN 'processing' WHEN n %% 100 < 3 THEN 'pending' ELSE 'sent' END
      AS status
  FROM generate_series(1, %(notifications)s) AS n
) AS made
"""  # noqa: S608 - numbers of the bench's own
