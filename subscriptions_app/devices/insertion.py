"""Inserts the subscription of a new device in one round trip.

Most registrations of new devices end here. registration.py handles all others.
"""

import json
from collections.abc import Mapping
from functools import cache
from typing import Any
from uuid import UUID

from channels_app.counters import counter_parts
from channels_app.models import Channel
from channels_app.selectors import CURRENT_VAPID_KEY_PART, ROOM_PART
from pushsvc.common.ids import uuid7
from pushsvc.common.platforms import Platform
from pushsvc.common.store import sql
from subscriptions_app.addresses import address_lock
from subscriptions_app.devices.capacity import capacity_lock
from subscriptions_app.models import MOST_DEVICES


def subscription_insert(
    channel: Channel,
    platform: Platform,
    facts: Mapping[str, Any],
    vapid_key_id: UUID | None,
    external_id: str | None,
) -> UUID | None:
    """Inserts and counts a subscription, and returns its id. `vapid_key_id` None: the channel's
    current key. `external_id`: the subscription's person, who may be new, too.

    Stores nothing and returns None if there is a row at the address of `facts`, if the channel has
    little capacity left, or if the person may have no further device."""
    statements, counts = _statements(platform, external_id is not None)
    parameters = {
        "attributes": "{}",
        "timezone": "",
        "language": "",
        **facts,
        **counts,
        "id": uuid7(),
        "channel": channel.id,
        "platform": str(platform),
        "vapid_key": vapid_key_id,
        "most": channel.most_subscriptions,
        "address_lock": address_lock(channel.id, platform, facts["address_sha256"]),
        "capacity_lock": capacity_lock(channel.id),
        "person": uuid7(),
        "external_id": external_id,
        "most_devices": MOST_DEVICES,
    }
    if "attributes" in facts:
        parameters["attributes"] = json.dumps(facts["attributes"])
    stored = sql.rows_of_last(statements, parameters)
    return stored[0][0] if stored else None


@cache
def _statements(platform: Platform, has_person: bool) -> tuple[str, dict[str, int]]:
    deltas = {f"{platform}_subscribers": 1, "stored_subscriptions": 1}
    if has_person:
        deltas["linked_devices"] = 1
        parts, counts = counter_parts("linked", deltas, columns=("people",))
    else:
        parts, counts = counter_parts("added", deltas)
    return _STORE.format(
        counter_parts=_LINKED + parts if has_person else parts,
        current_key=CURRENT_VAPID_KEY_PART if platform == Platform.WEB else "NULL",
        room=ROOM_PART,
        person=_PERSON if has_person else _NOBODY,
    ), counts


# Raw, because the ORM has neither advisory locks nor conditional inserts. The second statement sees
# what other transactions committed before they released the locks.
_STORE = """
SELECT pg_advisory_xact_lock(hashtextextended(%(address_lock)s, 0)),
  pg_advisory_xact_lock_shared(hashtextextended(%(capacity_lock)s, 0));
WITH room AS (
  {room}
), place AS (
  SELECT FROM room
  WHERE NOT EXISTS (
    SELECT FROM subscriptions_app_subscription
    WHERE channel_id = %(channel)s AND platform = %(platform)s
      AND address_sha256 = %(address_sha256)s)
), person AS ({person}), added AS (
  INSERT INTO subscriptions_app_subscription (id, channel_id, platform, address, address_sha256,
    p256dh, auth, vapid_key_id, push_service, attributes, timezone, language, person_id,
    registered_at, expired_code)
  SELECT %(id)s, %(channel)s, %(platform)s, %(address)s, %(address_sha256)s, %(p256dh)s, %(auth)s,
    coalesce(%(vapid_key)s::uuid, {current_key}), %(push_service)s, %(attributes)s::jsonb,
    %(timezone)s, %(language)s, person.id, clock_timestamp(), ''
  FROM place, person
  RETURNING id, channel_id
), {counter_parts}
SELECT id FROM added
"""

_NOBODY = "SELECT NULL::uuid AS id"

# The person is locked before the subscription is inserted. This is not the usual order, but cannot
# deadlock: the address is locked, so no transaction waits for the new row.
_PERSON = """
  INSERT INTO subscriptions_app_person AS stored
    (id, channel_id, external_id, active_devices)
  SELECT %(person)s, %(channel)s, %(external_id)s, 1 FROM place
  ON CONFLICT (channel_id, external_id) DO UPDATE
  SET active_devices = stored.active_devices + 1, left_at = NULL
  WHERE stored.active_devices < %(most_devices)s AND stored.opted_out_at IS NULL
  RETURNING id, active_devices"""

# For the counters: 1 if it is the person's first device.
_LINKED = """linked AS (
  SELECT channel_id, (active_devices = 1)::int AS people FROM added, person
), """
