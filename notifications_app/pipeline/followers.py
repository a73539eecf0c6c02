"""Deletes who waits for automations, and whom they contacted: of erased people, and old rows."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Final
from uuid import UUID

from pushsvc.common.store import sql

LATE: Final = timedelta(days=1)  # an entry that was missed for so long is skipped
AGAIN_DAYS: Final = 365  # after which a contact that is kept is looked at again


def followers_forget(
    channel_id: UUID, *, keys: Sequence[UUID], subscription_ids: Sequence[UUID]
) -> int:
    """Deletes what automations of the channel know about these keys and subscriptions. Returns how
    many rows. Call it before targets are locked."""
    parameters = {
        "channel": channel_id,
        "keys": list(keys),
        "subscriptions": list(subscription_ids),
    }
    return sum(sql.execute(each, parameters) for each in (_FORGET_ENTRIES, _FORGET_CONTACTS))


def entries_purge(limit: int) -> int:
    """Deletes at most `limit` entries of automations that are gone, or that are disabled if the
    entries are too late for them. Returns how many."""
    gone = sql.execute(_PURGE_ENTRIES, {"limit": limit})
    return gone or sql.execute(_PURGE_LATE, {"limit": limit, "late": LATE})


def automation_contacts_purge(limit: int) -> int:
    """Looks at no more than `limit` contacts whose day has come. Deletes those after which there
    may be another, and those of keys and automations that are gone. Returns how many it looked
    at."""
    ((seen,),) = sql.rows(_PURGE_CONTACTS, {"limit": limit, "again": AGAIN_DAYS})
    return int(seen) or sql.execute(_PURGE_ORPHANS, {"limit": limit})


# Raw, because the rows are locked in one order.
_OWN: Final = (
    "automation_id IN (SELECT id FROM notifications_app_automation WHERE channel_id = %(channel)s)"
)
_FORGET_ENTRIES: Final = f"""
WITH own AS MATERIALIZED (
  SELECT id FROM notifications_app_automationentry
  WHERE subscription_id = ANY(%(subscriptions)s::uuid[]) AND {_OWN} ORDER BY id FOR UPDATE
)
DELETE FROM notifications_app_automationentry WHERE id IN (SELECT id FROM own)
"""  # noqa: S608 - text of our own
_FORGET_CONTACTS: Final = f"""
WITH own AS MATERIALIZED (
  SELECT automation_id, key FROM notifications_app_automationcontact
  WHERE key = ANY(%(keys)s::uuid[]) AND {_OWN} ORDER BY automation_id, key FOR UPDATE
)
DELETE FROM notifications_app_automationcontact AS contact USING own
WHERE contact.automation_id = own.automation_id AND contact.key = own.key
"""  # noqa: S608 - text of our own

# The automations are found one after the other in an index.
_GONE: Final = """WITH RECURSIVE known (id) AS (
  (SELECT automation_id FROM {table} ORDER BY automation_id LIMIT 1)
  UNION ALL
  SELECT (SELECT automation_id FROM {table} WHERE automation_id > known.id
          ORDER BY automation_id LIMIT 1)
  FROM known WHERE id IS NOT NULL
), gone AS (
  SELECT id FROM known WHERE id IS NOT NULL
    AND NOT EXISTS (SELECT FROM notifications_app_automation WHERE id = known.id)
)"""
_PURGE_ENTRIES: Final = f"""
{_GONE.format(table="notifications_app_automationentry")}
DELETE FROM notifications_app_automationentry WHERE id = ANY(ARRAY(
  SELECT id FROM notifications_app_automationentry WHERE automation_id IN (SELECT id FROM gone)
  LIMIT %(limit)s FOR UPDATE SKIP LOCKED))
"""  # noqa: S608 - text of our own
_PURGE_LATE: Final = """
DELETE FROM notifications_app_automationentry WHERE id = ANY(ARRAY(
  SELECT late.id FROM notifications_app_automation AS automation
  CROSS JOIN LATERAL (
    SELECT id FROM notifications_app_automationentry
    WHERE automation_id = automation.id AND due_at < statement_timestamp() - %(late)s::interval
    ORDER BY automation_id, due_at, id LIMIT %(limit)s FOR UPDATE SKIP LOCKED
  ) AS late
  WHERE NOT automation.is_enabled LIMIT %(limit)s))
"""
_PURGE_ORPHANS: Final = f"""
{_GONE.format(table="notifications_app_automationcontact")}, old AS MATERIALIZED (
  SELECT automation_id, key FROM notifications_app_automationcontact
  WHERE automation_id IN (SELECT id FROM gone) LIMIT %(limit)s FOR UPDATE SKIP LOCKED
)
DELETE FROM notifications_app_automationcontact AS contact USING old
WHERE contact.automation_id = old.automation_id AND contact.key = old.key
"""  # noqa: S608 - text of our own
_PURGE_CONTACTS: Final = """
WITH old AS MATERIALIZED (
  SELECT automation_id, key, at FROM notifications_app_automationcontact
  WHERE expires_on <= (statement_timestamp() AT TIME ZONE 'UTC')::date
  ORDER BY expires_on LIMIT %(limit)s FOR UPDATE SKIP LOCKED
), kept AS (
  SELECT old.automation_id, old.key FROM old
  JOIN notifications_app_automation AS automation ON automation.id = old.automation_id
  WHERE (automation.once_per_days IS NULL
      OR old.at > statement_timestamp() - make_interval(days => automation.once_per_days))
    AND (EXISTS (SELECT FROM subscriptions_app_subscription WHERE id = old.key)
      OR EXISTS (SELECT FROM subscriptions_app_person WHERE id = old.key))
), moved AS (
  UPDATE notifications_app_automationcontact AS contact
  SET expires_on = (statement_timestamp() AT TIME ZONE 'UTC')::date + %(again)s
  FROM kept WHERE contact.automation_id = kept.automation_id AND contact.key = kept.key
), deleted AS (
  DELETE FROM notifications_app_automationcontact AS contact USING old
  WHERE contact.automation_id = old.automation_id AND contact.key = old.key
    AND (old.automation_id, old.key) NOT IN (SELECT automation_id, key FROM kept)
)
SELECT count(*) FROM old
"""
