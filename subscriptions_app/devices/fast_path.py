"""Stores the visit of a known, active device, or a new device, in one round trip.

Most registrations end with one of these statements. registration.py handles all others.
"""

import json
from functools import cache
from hashlib import sha256
from typing import Any, Final
from uuid import UUID

from channels_app.counters import counter_parts
from channels_app.feeds import EventKind, feed_call
from channels_app.selectors import CAPACITY_PART, CURRENT_VAPID_KEY_PART
from pushsvc.common.ids import uuid7
from pushsvc.common.platforms import Platform
from pushsvc.common.store import sql
from subscriptions_app.addresses import address_lock
from subscriptions_app.devices.capacity import capacity_lock
from subscriptions_app.devices.values import Visit
from subscriptions_app.models import MOST_DEVICES


def visit_update(visit: Visit) -> UUID | None:
    """Stores the visit of an active subscription with this address, `auth` and person, and with the
    VAPID key if the device named one. Returns its id, or None if there is no such subscription."""
    if visit.facts.login is None:
        person = ""
    else:
        person = _IS_NOBODYS if visit.external_id is None else _IS_OF_PERSON
    parameters = {"auth_sha256": sha256(visit.facts.auth.encode()).digest()}
    found = sql.rows(_UPDATE.format(person=person), _parameters(visit) | parameters)
    return found[0][0] if found else None


def visit_insert(visit: Visit) -> UUID | None:
    """Inserts and counts a subscription, with its person if the person is new. Returns its id.

    Stores nothing and returns None if there is a row at the address, if the channel has little
    capacity left, or if the person may have no further device."""
    channel, address = visit.channel, visit.address
    statements, counts = _statements(address.platform, visit.external_id is not None)
    parameters = {
        **counts,
        "id": uuid7(),
        "most": channel.most_subscriptions,
        "address_lock": address_lock(channel.id, address.platform, address.digest),
        "capacity_lock": capacity_lock(channel.id),
        "person_id": uuid7(),
        "most_devices": MOST_DEVICES,
    }
    stored = sql.rows_of_last(statements, _parameters(visit) | parameters)
    return stored[0][0] if stored else None


def _parameters(visit: Visit) -> dict[str, Any]:
    address, facts = visit.address, visit.facts
    return {
        "channel": visit.channel.id,
        "platform": str(address.platform),
        "address": address.text,
        "digest": address.digest,
        "push_service": visit.push_service,
        "p256dh": facts.p256dh,
        "auth": facts.auth,
        "vapid_key": visit.vapid_key_id,
        "attributes": None if facts.attributes is None else json.dumps(facts.attributes),
        "timezone": facts.timezone,
        "language": facts.language,
        "external_id": visit.external_id,
    }


@cache
def _statements(platform: Platform, has_person: bool) -> tuple[str, dict[str, int]]:
    deltas = {f"{platform}_subscribers": 1, "stored_subscriptions": 1}
    if has_person:
        deltas["linked_devices"] = 1
        parts, counts = counter_parts("linked", deltas, columns=("people",))
    else:
        parts, counts = counter_parts("added", deltas)
    return _INSERT.format(
        counter_parts=_LINKED + parts if has_person else parts,
        current_key=CURRENT_VAPID_KEY_PART if platform == Platform.WEB else "NULL",
        capacity=CAPACITY_PART,
        feed=_FEED,
        person=_PERSON if has_person else _NOBODY,
    ), counts


# Raw, because the ORM has no RETURNING for an update. It needs no address lock: if a registration
# changes the row meanwhile, PostgreSQL evaluates the condition again. It compares hashes of `auth`,
# so that its time reveals nothing about the stored value. CASE, because PostgreSQL might read all
# active subscriptions of the channel, if its statistics are from the time before it had many.
_UPDATE: Final = """
UPDATE subscriptions_app_subscription
SET registered_at = clock_timestamp(), p256dh = %(p256dh)s, push_service = %(push_service)s,
  attributes = coalesce(%(attributes)s::jsonb, attributes),
  language = coalesce(%(language)s, language), timezone = coalesce(%(timezone)s, timezone),
  timezone_changed_at = CASE WHEN timezone = coalesce(%(timezone)s, timezone)
    THEN timezone_changed_at ELSE clock_timestamp() END
WHERE channel_id = %(channel)s AND platform = %(platform)s AND address_sha256 = %(digest)s
  AND CASE WHEN NOT is_set_aside THEN expired_at IS NULL END
  AND sha256(convert_to(auth, 'UTF8')) = %(auth_sha256)s
  AND (%(vapid_key)s::uuid IS NULL OR vapid_key_id = %(vapid_key)s::uuid){person}
RETURNING id
"""
_IS_NOBODYS: Final = " AND person_id IS NULL"
_IS_OF_PERSON: Final = """
  AND takeover_until IS NULL AND person_id = (SELECT id FROM subscriptions_app_person
    WHERE channel_id = %(channel)s AND external_id = %(external_id)s)"""

# Raw, because the ORM has neither advisory locks nor conditional inserts. The second statement sees
# what other transactions committed before they released the locks.
_INSERT: Final = """
SELECT pg_advisory_xact_lock(hashtextextended(%(address_lock)s, 0)),
  pg_advisory_xact_lock_shared(hashtextextended(%(capacity_lock)s, 0));
WITH capacity AS (
  {capacity}
), place AS (
  SELECT FROM capacity
  WHERE NOT EXISTS (
    SELECT FROM subscriptions_app_subscription
    WHERE channel_id = %(channel)s AND platform = %(platform)s
      AND address_sha256 = %(digest)s)
), person AS ({person}), added AS (
  INSERT INTO subscriptions_app_subscription (id, channel_id, platform, address, address_sha256,
    p256dh, auth, vapid_key_id, push_service, attributes, timezone, language, person_id,
    registered_at, expired_code)
  SELECT %(id)s, %(channel)s, %(platform)s, %(address)s, %(digest)s, %(p256dh)s, %(auth)s,
    coalesce(%(vapid_key)s::uuid, {current_key}), %(push_service)s,
    coalesce(%(attributes)s::jsonb, '{{}}'), coalesce(%(timezone)s, ''), coalesce(%(language)s, ''),
    person.id, clock_timestamp(), ''
  FROM place, person
  RETURNING id, channel_id, {feed}
), {counter_parts}
SELECT id FROM added
"""

_FEED: Final = feed_call(
    EventKind.CREATED,
    channel="channel_id",
    subject="id",
    second="person_id",
    platform="platform",
)
_NOBODY: Final = "SELECT NULL::uuid AS id"

# The person is locked before the subscription is inserted. This is not the usual order, but cannot
# deadlock: the address is locked, so no transaction waits for the new row.
_PERSON: Final = """
  INSERT INTO subscriptions_app_person AS stored
    (id, channel_id, external_id, active_devices)
  SELECT %(person_id)s, %(channel)s, %(external_id)s, 1 FROM place
  ON CONFLICT (channel_id, external_id) DO UPDATE
  SET active_devices = stored.active_devices + 1, left_at = NULL
  WHERE stored.active_devices < %(most_devices)s AND stored.opted_out_at IS NULL
  RETURNING id, active_devices"""

# For the counters: 1 if it is the person's first device.
_LINKED: Final = """linked AS (
  SELECT channel_id, (active_devices = 1)::int AS people FROM added, person
), """
