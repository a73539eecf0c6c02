"""How many subscriptions a channel may hold, and which go when one more comes.

`POST /subscribe` is public, so what strangers subscribe must have an end. A full channel deletes
the oldest subscription that no push service ever took a message for, never another.

Whoever adds a row holds the channel's room until the transaction ends: shared with others while
there is plenty of it, alone where it is scarce, so that the count is exact.
"""

from collections import Counter
from typing import Final

from channels_app.counters import counter_add
from channels_app.models import Channel
from pushsvc.common.store import sql
from subscriptions_app.errors import SubscriptionsFull

_MOST_EVICTED: Final = 100  # at once: more only where somebody lowered the bound


class RoomScarce(Exception):
    """To be tried again in another transaction, which holds the room alone."""


def take_room(channel: Channel, *, alone: bool) -> None:
    """Room for one more row, which the caller's transaction is to insert and to count.

    Others may have to go for it; they are counted. Raises SubscriptionsFull, and RoomScarce unless
    the room is held `alone`.
    """
    most = channel.most_subscriptions
    sql.rows(_HOLD_ALONE if alone else _HOLD_SHARED, {"name": f"{channel.id} room"})
    # A statement of its own: it must see what others committed before they gave the room up.
    ((stored, most_holders),) = sql.rows(_STORED, {"channel": channel.id})
    if not alone:
        if stored + most_holders >= most:
            raise RoomScarce
    elif stored >= most:
        _evict(channel, min(stored + 1 - most, _MOST_EVICTED))


def _evict(channel: Channel, number: int) -> None:
    evicted = sql.rows(_EVICT, {"channel": channel.id, "number": number})
    if not evicted:
        raise SubscriptionsFull
    active = Counter(platform for platform, is_active in evicted if is_active)
    lost = {f"{platform}_subscribers": -each for platform, each in active.items()}
    counter_add(channel.id, stored_subscriptions=-len(evicted), **lost)


_HOLD_SHARED = "SELECT pg_advisory_xact_lock_shared(hashtextextended(%(name)s, 0))"
_HOLD_ALONE = "SELECT pg_advisory_xact_lock(hashtextextended(%(name)s, 0))"

# Each connection holds the room for one row at the most, so no more rows than that are under way.
_STORED = """
SELECT coalesce(sum(stored_subscriptions), 0)::bigint, current_setting('max_connections')::int
FROM channels_app_channelcounter WHERE channel_id = %(channel)s
"""

# SKIP LOCKED: one that is just registering again is not waited for, under locks of our own.
_EVICT = """
DELETE FROM subscriptions_app_subscription WHERE id IN (
    SELECT id FROM subscriptions_app_subscription
    WHERE channel_id = %(channel)s AND NOT is_proven
    ORDER BY id LIMIT %(number)s
    FOR UPDATE SKIP LOCKED
)
RETURNING platform, expired_at IS NULL
"""
