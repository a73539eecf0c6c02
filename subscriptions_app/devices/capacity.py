"""Limits how many subscriptions a channel holds, and deletes one when a full channel gets another.

`POST /subscribe` is public, so the number of subscriptions needs a limit. A full channel deletes
its oldest subscription that is not proven, and never a proven one.

A transaction that adds a row holds an advisory lock on the channel's capacity until it ends. The
lock is shared while much capacity is left, and exclusive when little is left, so that the count is
exact.
"""

from typing import Final
from uuid import UUID

from channels_app.models import Channel
from channels_app.selectors import stored_subscriptions
from pushsvc.common.store import sql
from subscriptions_app.errors import SubscriptionsFull
from subscriptions_app.models import Subscription
from subscriptions_app.people.counting import Changes, Standing

_MOST_EVICTED: Final = 100  # in one transaction; there are more only if the limit was lowered


class CapacityScarce(Exception):
    """Little capacity is left. Repeat the registration in another transaction, which holds the lock
    `alone`."""


def capacity_lock(channel_id: UUID) -> str:
    """The name of the advisory lock of a channel's capacity."""
    return f"{channel_id} capacity"


def capacity_take(channel: Channel, changes: Changes, *, alone: bool) -> None:
    """Makes sure that the caller's transaction may insert and count one more row.

    May delete other rows, and notes this in `changes`. Raises SubscriptionsFull, and CapacityScarce
    unless the lock is held `alone`.
    """
    most = channel.most_subscriptions
    sql.rows(_HOLD_ALONE if alone else _HOLD_SHARED, {"name": capacity_lock(channel.id)})
    # A separate statement, to see what other transactions committed before releasing the lock.
    stored = stored_subscriptions(channel.id)
    if not alone:
        if stored.counted + stored.most_uncounted >= most:
            raise CapacityScarce
    elif stored.counted >= most:
        _evict(channel, changes, min(stored.counted + 1 - most, _MOST_EVICTED))


def capacity_room(channel: Channel, wanted: int, *, alone: bool) -> int:
    """How many of `wanted` rows the caller's transaction may insert and count. Deletes no other
    rows. Raises CapacityScarce unless the lock is held `alone`.

    The lock is shared only while there is room even if every other session inserts as many: a
    registration that holds the shared lock expects one uncounted row of each session.
    """
    if not wanted:
        return 0
    sql.rows(_HOLD_ALONE if alone else _HOLD_SHARED, {"name": capacity_lock(channel.id)})
    stored, most = stored_subscriptions(channel.id), channel.most_subscriptions
    if alone:
        return max(0, min(wanted, most - stored.counted))
    if stored.counted + (stored.most_uncounted + 1) * wanted > most:
        raise CapacityScarce
    return wanted


def _evict(channel: Channel, changes: Changes, number: int) -> None:
    unproven = Subscription.objects.filter(channel=channel, is_proven=False).order_by("id")
    counted = ("platform", "person_id", "expired_at", "expired_code")
    evicted = list(unproven.locked_or_skipped().only(*counted)[:number])
    if not evicted:
        raise SubscriptionsFull
    Subscription.objects.filter(id__in=[each.id for each in evicted]).delete()
    for each in evicted:
        changes.note(Standing.of(each), None)


# Raw, because the ORM has no advisory locks.
_HOLD_SHARED = "SELECT pg_advisory_xact_lock_shared(hashtextextended(%(name)s, 0))"
_HOLD_ALONE = "SELECT pg_advisory_xact_lock(hashtextextended(%(name)s, 0))"
