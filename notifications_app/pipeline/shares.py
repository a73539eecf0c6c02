"""Merges shares of past minutes and hours into share 0.

Readers add the shares up, so every read is the same before, between and after. If no merge runs,
there is a row for each connection, minute and code, and reads become slower.
"""

from typing import Final

from channels_app.counters import merging
from notifications_app.models import HourlyStat
from notifications_app.states import APART, STATES
from pushsvc.common.store import sql


def minutes_merge(limit: int) -> int:
    """Merges the shares of past minutes of at most `limit` notifications, and adds them to the
    counts of running ones. Returns how many shares it merged. Safe to repeat, also
    concurrently: the locks of the notifications are held meanwhile, so none ends."""
    with sql.brief_transaction():
        ids = [id_ for (id_,) in sql.rows(LOCK_UNMERGED, {"limit": limit})]
        # A separate statement, because it must see what was committed before the locks.
        return int(sql.rows(MERGE_MINUTES, STATES | {"ids": ids})[0][0]) if ids else 0


def hours_merge(limit: int) -> int:
    """Merges at most `limit` shares of past hours. Returns how many. Safe to repeat, also
    concurrently."""
    return int(sql.rows(MERGE_HOURS, {"limit": limit})[0][0])


# The sums of rows of minutes, as a notification counts them.
OUTCOME_SUMS: Final = ", ".join(
    f"coalesce(sum(count) FILTER (WHERE code {codes}), 0) AS {name}"
    for name, codes in (
        ("delivered", "= ''"),
        ("bounced", "<> ''"),
        *((code, f"= '{code}'") for code in APART),
    )
)

# Not the last minutes, because a flush may still write to their shares.
_IS_PAST: Final = "shard <> 0 AND minute < statement_timestamp() - interval '2 minutes'"

LOCK_UNMERGED: Final = f"""
SELECT id FROM notifications_app_notification
WHERE id = ANY(ARRAY(
  SELECT DISTINCT notification_id FROM notifications_app_outcomeminute
  WHERE {_IS_PAST} ORDER BY notification_id LIMIT %(limit)s))
ORDER BY id FOR NO KEY UPDATE
"""  # noqa: S608 - a constant

_KEY: Final = "notification_id, minute, platform, code"

# In SQL, because the ORM has neither DELETE … RETURNING nor an upsert that adds. One statement, so
# that every reader sees each share once: for itself, or in share 0 and in the notification.
MERGE_MINUTES: Final = f"""
WITH old AS MATERIALIZED (
  SELECT {_KEY}, shard FROM notifications_app_outcomeminute
  WHERE notification_id = ANY(%(ids)s::uuid[]) AND {_IS_PAST}
  FOR UPDATE SKIP LOCKED
), ended AS (
  DELETE FROM notifications_app_outcomeminute
  WHERE ({_KEY}, shard) IN (SELECT {_KEY}, shard FROM old)
  RETURNING {_KEY}, count
), merged AS (
  INSERT INTO notifications_app_outcomeminute AS stat ({_KEY}, shard, count)
  SELECT {_KEY}, 0, sum(count) FROM ended GROUP BY {_KEY} ORDER BY {_KEY}
  ON CONFLICT ({_KEY}, shard) DO UPDATE SET count = stat.count + excluded.count
), sums AS (
  SELECT notification_id, {OUTCOME_SUMS}
  FROM ended GROUP BY notification_id
), counted AS (
  UPDATE notifications_app_notification notification
  SET delivered_count = delivered_count + sums.delivered,
      bounced_count = bounced_count + sums.bounced,
      {", ".join(f"{code}_count = {code}_count + sums.{code}" for code in APART)}
  FROM sums
  WHERE notification.id = sums.notification_id AND status = %(notification_processing)s
)
SELECT count(*) FROM ended
"""  # noqa: S608 - constants

MERGE_HOURS: Final = merging(
    HourlyStat._meta.db_table,
    "channel_id, platform, hour",
    ("recipients", "delivered", "bounced", *APART, "deferred", "clicked"),
)
