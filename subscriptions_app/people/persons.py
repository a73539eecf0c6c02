"""Finds and creates persons, and deletes persons without devices and choices."""

from collections.abc import Collection
from typing import Final
from uuid import UUID

from channels_app.models import Identity
from pushsvc.common.store import sql
from subscriptions_app.models import Person
from subscriptions_app.people.counting import PersonsChanged

LEFT_DAYS: Final = 90
TRUSTED_LEFT_DAYS: Final = 1 / 24  # in a channel where devices create people without proof


def persons_named(channel_id: UUID, external_ids: Collection[str]) -> dict[str, Person]:
    """The channel's persons with these ids. Creates missing ones.

    They are not locked. The transaction that links a device to a person also counts it
    (`changes_count`), so that no other transaction deletes the person. Raises PersonsChanged.
    """
    found = _found(channel_id, external_ids)
    missing = sorted(set(external_ids) - found.keys())
    if missing:
        made = [Person(channel_id=channel_id, external_id=each) for each in missing]
        Person.objects.bulk_create(made, ignore_conflicts=True)
        found = _found(channel_id, external_ids)
    if len(found) < len(set(external_ids)):
        raise PersonsChanged
    return found


def people_purge(limit: int) -> int:
    """Deletes at most `limit` persons without devices and choices, whose last device ended or was
    unlinked LEFT_DAYS (or TRUSTED_LEFT_DAYS) ago. Returns how many. Keeps persons who opted out,
    because otherwise they would get messages again."""
    values = {"trust": Identity.TRUST, "days": LEFT_DAYS, "trusted_days": TRUSTED_LEFT_DAYS}
    return sql.execute(_PURGE, values | {"limit": limit})


def _found(channel_id: UUID, external_ids: Collection[str]) -> dict[str, Person]:
    rows = Person.objects.filter(channel_id=channel_id, external_id__in=external_ids)
    return {row.external_id: row for row in rows}


# A registration that links a device meanwhile finds no person to count, and begins again. Raw,
# because the ORM cannot skip locked rows in a DELETE.
_PURGE: Final = """
DELETE FROM subscriptions_app_person WHERE id IN (
  SELECT gone.id FROM channels_app_channel AS channel
  CROSS JOIN LATERAL (
    SELECT id FROM subscriptions_app_person AS person
    WHERE channel_id = channel.id
      AND left_at < statement_timestamp() - interval '1 day' * CASE channel.identity
        WHEN %(trust)s THEN %(trusted_days)s ELSE %(days)s END
      AND opted_out_at IS NULL AND choices = '{}' AND active_devices = 0
      AND NOT EXISTS (SELECT FROM subscriptions_app_subscription WHERE person_id = person.id)
    ORDER BY left_at LIMIT %(limit)s
    FOR UPDATE SKIP LOCKED
  ) AS gone
  LIMIT %(limit)s)
"""
