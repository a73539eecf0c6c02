"""Stores a device of which nothing is known, in one round trip.

Most registrations that are not visits take this way. services.py decides all others.
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
from subscriptions_app.room import room_lock


def newcomer_store(
    channel: Channel, platform: Platform, facts: Mapping[str, Any], vapid_key_id: UUID | None
) -> UUID | None:
    """Inserts and counts a subscription, and returns its id. `vapid_key_id` None: with the
    channel's current key. None if there is a row at the address of `facts`, or if the channel has
    little room left: then nothing is stored."""
    statements, counts = _statements(platform)
    parameters = {
        "attributes": "{}",
        **facts,
        **counts,
        "id": uuid7(),
        "channel": channel.id,
        "platform": str(platform),
        "vapid_key": vapid_key_id,
        "most": channel.most_subscriptions,
        "address_lock": address_lock(channel.id, platform, facts["address_sha256"]),
        "room_lock": room_lock(channel.id),
    }
    if "attributes" in facts:
        parameters["attributes"] = json.dumps(facts["attributes"])
    stored = sql.rows_of_last(statements, parameters)
    return stored[0][0] if stored else None


@cache
def _statements(platform: Platform) -> tuple[str, dict[str, int]]:
    deltas = {f"{platform}_subscribers": 1, "stored_subscriptions": 1}
    parts, counts = counter_parts("added", **deltas)
    key = CURRENT_VAPID_KEY_PART if platform == Platform.WEB else "NULL"
    return _STORE.format(counter_parts=parts, current_key=key, room=ROOM_PART), counts


# Raw, because the ORM has no advisory locks, and inserts nothing on a condition. The second
# statement sees what others committed before they released the locks.
_STORE = """
SELECT pg_advisory_xact_lock(hashtextextended(%(address_lock)s, 0)),
  pg_advisory_xact_lock_shared(hashtextextended(%(room_lock)s, 0));
WITH room AS (
  {room}
), added AS (
  INSERT INTO subscriptions_app_subscription (id, channel_id, platform, address, address_sha256,
    p256dh, auth, vapid_key_id, push_service, attributes, registered_at, expired_code)
  SELECT %(id)s, %(channel)s, %(platform)s, %(address)s, %(address_sha256)s, %(p256dh)s, %(auth)s,
    coalesce(%(vapid_key)s::uuid, {current_key}), %(push_service)s, %(attributes)s::jsonb,
    clock_timestamp(), ''
  FROM room
  WHERE NOT EXISTS (
    SELECT FROM subscriptions_app_subscription
    WHERE channel_id = %(channel)s AND platform = %(platform)s
      AND address_sha256 = %(address_sha256)s)
  RETURNING id, channel_id
), {counter_parts}
SELECT id FROM added
"""
