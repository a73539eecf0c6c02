"""Leaves out whom a cap or a schedule's `once_per_days` excludes, and notes the others.

A key is a person, or a device without one. The statement that writes recipients also judges and
notes their keys, so a window that is rolled back leaves no contact, and two planners never both
find room for the last one. It locks keys in their order, so planners of several notifications
cannot deadlock.

A contact has the time at which its recipients are planned, or their release if that is later. A cap
of `limit` in `hours` refuses a key with `limit` contacts less than `hours` before or after. So no
window of that length has more, in whatever order planners commit. Further parts and platforms of a
notification that contacted a key pass, and count nothing.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any, Final, Self
from uuid import UUID

from django.utils.translation import ngettext

from notifications_app.models import MAX_ONCE_DAYS, Contact, Once
from pushsvc.common.store import sql
from subscriptions_app.segments.compiler import Condition

# A schedule of every seventh day reaches everyone each time, even if an occurrence is planned some
# minutes before its time, or clocks are put forward.
_EARLY_HOURS: Final = 2


@dataclass(frozen=True, slots=True)
class Cap:
    """At most `limit` notifications contact a person in any `hours`."""

    limit: int
    hours: int

    @property
    def words(self) -> str:
        words = ngettext("%(limit)s an hour", "%(limit)s in %(hours)s hours", self.hours)
        return words % {"limit": self.limit, "hours": self.hours}


def caps_from(stored: Sequence[Mapping[str, int]] | None) -> list[Cap]:
    return [Cap(each["limit"], each["hours"]) for each in stored or ()]


@dataclass(frozen=True)
class Limits:
    """What a notification's audience is judged by. `days`: within them, `schedule_id` contacts a
    key once; None if it may again."""

    notification_id: UUID
    channel_id: UUID
    release_at: datetime
    caps: Sequence[Cap] = ()
    schedule_id: UUID | None = None
    days: int | None = None

    @classmethod
    def of(
        cls,
        notification_id: UUID,
        channel_id: UUID,
        release_at: datetime,
        *,
        caps_json: str | None,
        once_json: str | None,
    ) -> Self | None:
        """None if nobody is excluded."""
        caps = caps_from(json.loads(caps_json or "null"))
        if not caps and not once_json:
            return None
        once = json.loads(once_json) if once_json else {}
        schedule_id = UUID(once["schedule_id"]) if once else None
        return cls(notification_id, channel_id, release_at, caps, schedule_id, once.get("days"))

    def part(self, *, is_shared: bool) -> str:
        """CTEs with places for a Source's `plan_id`, `wants` and `audience`. They end with `judged`
        (plan_id, id, push_service, is_recipient, is_capped) and `recipients`. Who is left out of
        one plan is judged here; `is_shared`: another part may have planned some of them."""
        unplanned = _UNPLANNED if is_shared else ""
        return f"{_WANTED}{unplanned}), {self._judged()}, {_RECIPIENTS}"

    @cached_property
    def parameters(self) -> dict[str, Any]:
        return {
            "notification": self.notification_id,
            "channel": self.channel_id,
            "release_at": self.release_at,
            "longest": max((each.hours for each in self.caps), default=0),
            "schedule": self.schedule_id,
            "apart": timedelta(days=self.days or 0) - timedelta(hours=_EARLY_HOURS),
            **_caps_parameters(self.caps),
        }

    def _judged(self) -> str:
        if self.schedule_id is None:
            return f"{_KEYS}, {self._allowed('keys')}, {_judged('allowed')}"
        if not self.caps:
            return f"{_KEYS}, {_TAKEN.format(keys='keys')}, {_judged('taken')}"
        capped = "fresh.key IS NOT NULL AND allowed.key IS NULL"
        judged = _judged("fresh", "allowed", "taken", capped=capped)
        parts = (_KEYS, _FRESH, self._allowed("fresh"), _TAKEN.format(keys="allowed"), judged)
        return ", ".join(parts)

    def _allowed(self, keys: str) -> str:
        return _ALLOWED.format(keys=keys, full=_full("contact", _AT, self.caps))


def over_caps(caps: Sequence[Cap], at: datetime) -> Condition:
    """The condition that a subscription's key has no room for a contact at the moment."""
    own = {**_caps_parameters(caps), "contacted_at": at}
    full = _full("contact", "%(contacted_at)s::timestamptz", caps)
    return Condition(_OVER_CAPS.format(full=full), own)


def cap_over(caps: Sequence[Cap], key: UUID, at: datetime, notification_id: UUID) -> Cap | None:
    """The cap that leaves the key out of the notification at the moment, as of now."""
    contact = Contact.objects.filter(pk=key).first()
    if contact is None or notification_id in contact.sends:
        return None
    for cap in caps:
        apart = timedelta(hours=cap.hours)
        if sum(at - apart < each < at + apart for each in contact.times) >= cap.limit:
            return cap
    return None


def repeated_at(
    schedule_id: UUID, days: int, key: UUID, at: datetime, notification_id: UUID
) -> datetime | None:
    """When the schedule last contacted the key, if it may not again at the moment."""
    apart = timedelta(days=days) - timedelta(hours=_EARLY_HOURS)
    found = Once.objects.filter(schedule_id=schedule_id, key=key, at__gt=at - apart)
    return found.exclude(send=notification_id).values_list("at", flat=True).first()


def contacts_forget(channel_id: UUID, keys: Sequence[UUID]) -> int:
    """Deletes what is known about these keys of the channel. Returns how many rows. Call it before
    rows of subscriptions are locked."""
    parameters = {"channel": channel_id, "keys": list(keys)}
    return sum(sql.execute(each, parameters) for each in (_FORGET_CONTACTS, _FORGET_ONCE))


def contacts_purge(limit: int) -> int:
    """Deletes at most `limit` contacts that no cap counts any more. Returns how many."""
    return sql.execute(_PURGE_CONTACTS, {"limit": limit})


def once_purge(limit: int) -> int:
    """Deletes at most `limit` rows of Once that are too old for any schedule, or of schedules that
    are gone. Returns how many."""
    old = sql.execute(_PURGE_ONCE, {"limit": limit, "age": timedelta(days=MAX_ONCE_DAYS + 1)})
    return old or sql.execute(_PURGE_ORPHANS, {"limit": limit})


def _caps_parameters(caps: Sequence[Cap]) -> dict[str, int]:
    limits = {f"cap_limit_{number}": cap.limit for number, cap in enumerate(caps)}
    return limits | {f"cap_hours_{number}": cap.hours for number, cap in enumerate(caps)}


def _full(row: str, at: str, caps: Sequence[Cap]) -> str:
    """Whether a row of Contact has no room for another contact. Any of the caps may be full."""
    return " OR ".join(
        _CAP_FULL.format(row=row, at=at, number=number) for number, _ in enumerate(caps)
    )


def _judged(*judges: str, capped: str | None = None) -> str:
    """Which of the wanted pass all the judges, CTEs of keys that pass. `capped`: whether a cap left
    out one that does not."""
    last = judges[-1]
    if capped is None:
        capped = "allowed.key IS NULL" if last == "allowed" else "false"
    joins = " ".join(f"LEFT JOIN {each} USING (key)" for each in judges)
    return _JUDGED.format(last=last, capped=capped, joins=joins)


# Raw, because the ORM has neither INSERT … SELECT … RETURNING nor arrays of rows. A key is locked
# even if it is refused; so the check sees what other planners have committed.
_WANTED: Final = """asked AS MATERIALIZED (
  SELECT {plan_id} AS plan_id, subscription.id, push_service, {wants} AS is_wanted,
    coalesce(person_id, subscription.id) AS key
  FROM {audience}
), wanted AS MATERIALIZED (
  SELECT plan_id, id, push_service, key FROM asked WHERE is_wanted"""
_UNPLANNED: Final = """
    AND (SELECT true FROM notifications_app_delivery AS planned
         WHERE planned.notification_id = %(notification)s AND subscription_id = asked.id) IS NULL"""
_RECIPIENTS: Final = """recipients AS (
  SELECT plan_id, id, push_service FROM judged WHERE is_recipient
)"""
_AT: Final = "greatest(%(release_at)s::timestamptz, statement_timestamp())"
_KEYS: Final = "keys AS (SELECT DISTINCT key FROM wanted)"
_CAP_FULL: Final = """(SELECT count(*) FROM unnest({row}.times) AS contacted (at)
    WHERE at > {at} - make_interval(hours => %(cap_hours_{number})s)
      AND at < {at} + make_interval(hours => %(cap_hours_{number})s)) >= %(cap_limit_{number})s"""
# Entries are kept an hour longer than a cap counts them, because other planners may have begun
# earlier and wait.
_ALLOWED: Final = f"""allowed AS (
  INSERT INTO notifications_app_contact AS contact (key, channel_id, times, sends, expires_on)
  SELECT key, %(channel)s::uuid, ARRAY[{_AT}], ARRAY[%(notification)s::uuid],
    (({_AT} + make_interval(hours => %(longest)s + 1)) AT TIME ZONE 'UTC')::date + 1
  FROM {{keys}} ORDER BY key
  ON CONFLICT (key) DO UPDATE
  SET (times, sends) = (
      SELECT array_agg(at), array_agg(send) FROM (
        SELECT at, send FROM unnest(contact.times, contact.sends) AS kept (at, send)
        WHERE at > statement_timestamp() - make_interval(hours => %(longest)s + 1)
          OR send = %(notification)s
        UNION ALL
        SELECT {_AT}, %(notification)s::uuid
        WHERE %(notification)s::uuid <> ALL (contact.sends)) AS entries),
    expires_on = greatest(contact.expires_on, excluded.expires_on)
  WHERE %(notification)s::uuid = ANY (contact.sends) OR NOT ({{full}})
  RETURNING key
)"""  # noqa: S608 - text of our own
_WAS_LATELY: Final = f"at > {_AT} - %(apart)s::interval"
_FRESH: Final = f"""fresh AS MATERIALIZED (
  SELECT key FROM keys WHERE (
    SELECT true FROM notifications_app_once AS once
    WHERE schedule_id = %(schedule)s AND once.key = keys.key AND send <> %(notification)s
      AND {_WAS_LATELY}) IS NULL
)"""  # noqa: S608 - text of our own
_TAKEN: Final = f"""taken AS (
  INSERT INTO notifications_app_once AS once (schedule_id, key, send, at)
  SELECT %(schedule)s::uuid, key, %(notification)s::uuid, {_AT} FROM {{keys}} ORDER BY key
  ON CONFLICT (schedule_id, key) DO UPDATE
  SET send = excluded.send,
    at = CASE WHEN once.send = excluded.send THEN once.at ELSE excluded.at END
  WHERE once.send = excluded.send OR NOT once.{_WAS_LATELY}
  RETURNING key
)"""  # noqa: S608 - text of our own
_JUDGED: Final = """judged AS MATERIALIZED (
  SELECT plan_id, id, push_service, {last}.key IS NOT NULL AS is_recipient, {capped} AS is_capped
  FROM wanted {joins}
)"""
CAPPED_COUNT: Final = "(SELECT count(*) FROM judged WHERE is_capped)"
REPEATED_COUNT: Final = "(SELECT count(*) FROM judged WHERE NOT is_recipient AND NOT is_capped)"

# For each row, the contact is read by its key.
_OVER_CAPS: Final = """((SELECT true FROM notifications_app_contact AS contact
  WHERE contact.key = coalesce(subscription.person_id, subscription.id) AND ({full}))
  IS NOT NULL)"""

# Planners lock rows in the order of keys.
_FORGET_CONTACTS: Final = """
WITH own AS MATERIALIZED (
  SELECT key FROM notifications_app_contact
  WHERE key = ANY(%(keys)s::uuid[]) AND channel_id = %(channel)s ORDER BY key FOR UPDATE
)
DELETE FROM notifications_app_contact AS contact USING own WHERE contact.key = own.key
"""
_FORGET_ONCE: Final = """
WITH own AS MATERIALIZED (
  SELECT schedule_id, key FROM notifications_app_once
  WHERE key = ANY(%(keys)s::uuid[]) AND schedule_id IN (
    SELECT id FROM notifications_app_schedule WHERE channel_id = %(channel)s)
  ORDER BY schedule_id, key FOR UPDATE
)
DELETE FROM notifications_app_once AS once USING own
WHERE once.schedule_id = own.schedule_id AND once.key = own.key
"""
_PURGE_CONTACTS: Final = """
DELETE FROM notifications_app_contact WHERE key = ANY(ARRAY(
  SELECT key FROM notifications_app_contact
  WHERE expires_on <= (statement_timestamp() AT TIME ZONE 'UTC')::date
  ORDER BY expires_on LIMIT %(limit)s FOR UPDATE SKIP LOCKED))
"""
_PURGE_ONCE: Final = """
WITH old AS MATERIALIZED (
  SELECT schedule_id, key FROM notifications_app_once
  WHERE at < statement_timestamp() - %(age)s
  ORDER BY at LIMIT %(limit)s FOR UPDATE SKIP LOCKED
)
DELETE FROM notifications_app_once AS once USING old
WHERE once.schedule_id = old.schedule_id AND once.key = old.key
"""
# The schedules are found one after the other in the primary key.
_PURGE_ORPHANS: Final = """
WITH RECURSIVE known (id) AS (
  (SELECT schedule_id FROM notifications_app_once ORDER BY schedule_id LIMIT 1)
  UNION ALL
  SELECT (SELECT schedule_id FROM notifications_app_once WHERE schedule_id > known.id
          ORDER BY schedule_id LIMIT 1)
  FROM known WHERE id IS NOT NULL
), old AS MATERIALIZED (
  SELECT schedule_id, key FROM notifications_app_once
  WHERE schedule_id IN (
    SELECT id FROM known
    WHERE NOT EXISTS (SELECT FROM notifications_app_schedule WHERE id = known.id))
  LIMIT %(limit)s FOR UPDATE SKIP LOCKED
)
DELETE FROM notifications_app_once AS once USING old
WHERE once.schedule_id = old.schedule_id AND once.key = old.key
"""
