"""Deletes people who have left. Apart from `services`, because workers load no HTTP interface."""

from typing import Final

from django.conf import settings

from channels_app.models import Identity
from pushsvc.common.store import sql

LEFT_DAYS: Final = 90
TRUSTED_LEFT_DAYS: Final = 1 / 24  # in a channel where devices create people without proof


def people_purge(limit: int) -> int:
    """Deletes at most `limit` persons without devices and choices, whose last device ended or was
    unlinked LEFT_DAYS (or TRUSTED_LEFT_DAYS) ago. Returns how many. Keeps persons who opted out,
    because otherwise they would get messages again.

    Where devices create people without proof, choices keep as many persons as the channel may have
    subscribers. Others are deleted, those first who left first."""
    values = {"trust": Identity.TRUST, "days": LEFT_DAYS, "trusted_days": TRUSTED_LEFT_DAYS}
    values |= {"limit": limit, "most": settings.SUBSCRIPTIONS_PER_CHANNEL}
    return sql.execute(_PURGE, values) or sql.execute(_PURGE_CROWD, values)


# A registration that links a device meanwhile finds no person to count, and begins again. Raw,
# because the ORM cannot skip locked rows in a DELETE. Where devices are trusted, most who left in
# the last LEFT_DAYS still have an expired device. They are not all read each minute: after their
# first hours, each is looked at once a day.
_PURGE: Final = """
DELETE FROM subscriptions_app_person WHERE id = ANY(ARRAY(
  SELECT gone.id FROM channels_app_channel AS channel
  CROSS JOIN LATERAL (
    SELECT '-infinity'::timestamptz AS since, interval '1 day' * %(days)s AS ago
    UNION ALL
    SELECT statement_timestamp() - looked.ago - looked.lasting, looked.ago
    FROM (
      SELECT interval '1 day' * %(trusted_days)s AS ago, interval '2 hours' AS lasting
      UNION ALL
      SELECT interval '1 day' * day, interval '2 minutes' FROM generate_series(1, %(days)s) AS day
    ) AS looked
    WHERE channel.identity = %(trust)s
  ) AS period
  CROSS JOIN LATERAL (
    SELECT id FROM subscriptions_app_person AS person
    WHERE channel_id = channel.id
      AND left_at >= period.since AND left_at < statement_timestamp() - period.ago
      AND opted_out_at IS NULL AND choices = '{}' AND active_devices = 0
      AND NOT EXISTS (SELECT FROM subscriptions_app_subscription WHERE person_id = person.id)
    ORDER BY left_at LIMIT %(limit)s
    FOR UPDATE SKIP LOCKED
  ) AS gone
  LIMIT %(limit)s))
"""

_HAVE_LEFT: Final = """channel_id = channel.id
      AND left_at IS NOT NULL AND opted_out_at IS NULL AND choices <> '{}'"""
_PURGE_CROWD: Final = f"""
WITH channel AS MATERIALIZED (
  SELECT id, (
    SELECT count(*) FROM (
      SELECT FROM subscriptions_app_person WHERE {_HAVE_LEFT} LIMIT most + %(limit)s
    ) AS counted) - most AS excess
  FROM (
    SELECT id, coalesce(max_subscriptions, %(most)s) AS most FROM channels_app_channel
    WHERE identity = %(trust)s
  ) AS channel
)
DELETE FROM subscriptions_app_person WHERE id = ANY(ARRAY(
  SELECT first.id FROM channel CROSS JOIN LATERAL (
    SELECT id FROM subscriptions_app_person AS person
    WHERE {_HAVE_LEFT} AND active_devices = 0
      AND NOT EXISTS (SELECT FROM subscriptions_app_subscription WHERE person_id = person.id)
    ORDER BY left_at LIMIT greatest(channel.excess, 0)
    FOR UPDATE SKIP LOCKED
  ) AS first
  WHERE channel.excess > 0 LIMIT %(limit)s))
"""  # noqa: S608 - text of our own
