"""Leases on batches: claimed fairly, handed back, parked, freed when they lapse.

Every statement is conditional and commits by itself, so each may be repeated, and two workers or
two ticks at once do no harm. `attempt` fences: whoever holds an older number has lost the batch.
"""

import dataclasses
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Self
from uuid import UUID

from django.conf import settings
from django.db import InterfaceError, OperationalError, connection

from notifications_app.pipeline.breakers import STRANGERS
from notifications_app.states import CAREFUL_AFTER_LAPSES
from pushsvc.common.platforms import Platform
from pushsvc.common.store import sql

logger = logging.getLogger(__name__)

_LONGEST_RETRY_WAIT = 2.0
_STRANGERS_LOCK = 0x7075_7368_0001  # advisory: one claim at a time looks at the strangers' share
_LANES = 8


class LeaseLost(Exception):
    """The batch is somebody else's now, or done: whatever this worker knows comes too late."""


@dataclass(frozen=True)
class Lease:
    """A claimed batch. `claimed_at` is the database's time at the monotonic second `begun`."""

    batch_id: int
    attempt: int
    lapses: int
    plan_id: int
    notification_id: UUID
    channel_id: UUID
    platform: Platform
    push_service: str
    claimed_at: datetime
    begun: float = 0.0

    @classmethod
    def of(cls, row: Sequence[Any], *, begun: float = 0.0) -> Self:
        """From a row with the columns in this order."""
        lease = cls(*row)
        return dataclasses.replace(lease, platform=Platform(lease.platform), begun=begun)

    def now(self) -> datetime:
        """The database's clock, carried on by this process's monotonic one."""
        return self.claimed_at + timedelta(seconds=time.monotonic() - self.begun)

    def local(self, moment: datetime) -> float:
        """The moment of the database's clock on this process's monotonic one."""
        return self.begun + (moment - self.claimed_at).total_seconds()

    @property
    def is_careful(self) -> bool:
        return self.lapses >= CAREFUL_AFTER_LAPSES


def claim(
    platform: Platform,
    *,
    skip: Sequence[str],
    processes: int,
    skip_channels: Sequence[UUID] = (),
) -> Lease | None:
    """Leases the next due batch, or None when there is none.

    `skip`: breakers (`notifications_app.pipeline.breakers`) behind which batches are left alone.

    The channel that waited longest comes first, within it the notification that waited longest:
    a small send waits for one batch of a large one, not for all of it.
    """
    begun = time.monotonic()
    with sql.brief_transaction():
        skipped = [*skip, *_strangers_to_skip(platform, processes)]
        for plan_id in _lanes(platform, skipped, skip_channels):
            claimed = sql.rows(_CLAIM, {"plan": plan_id, "skip": skipped, "lease": _lease()})
            if claimed:
                return Lease.of(claimed[0], begun=begun)
    return None


def hand_back(lease: Lease, *, finished_pass: bool, wait: float = 0.0) -> None:
    """Ends the lease of a batch with recipients left: due when the first of them is, or after
    `wait` seconds if that is later. A finished pass forgets the lapses before it. Nothing happens
    if the lease is lost or the batch done."""
    sql.execute(_HAND_BACK, _fence(lease) | {"wait": wait, "finished_pass": finished_pass})


def hand_back_failed(lease: Lease, *, careful: bool = False) -> bool:
    """As `hand_back`, after a pass that broke: counted like a lapse, tried again in a second, and
    after half a minute if it goes on so. `careful`: the next pass is. False if the lease is
    lost."""
    least = CAREFUL_AFTER_LAPSES if careful else 0
    return sql.execute(_HAND_BACK_FAILED, _fence(lease) | {"least": least}) == 1


def postpone_bounces(batch_id: int) -> None:
    """The same for an overdue batch of which the database refuses rows; it is not `overdue` again
    before."""
    sql.execute(_POSTPONE_BOUNCES, {"batch": batch_id, "least": CAREFUL_AFTER_LAPSES})


def renew(lease: Lease) -> bool:
    """False if the lease is lost."""
    return sql.execute(_RENEW, _fence(lease) | {"lease": _lease()}) == 1


def park(lease: Lease) -> None:
    """Until the platform's credentials are replaced, or the limits of `overdue` are reached."""
    sql.execute(_PARK, _fence(lease))


def free_lapsed(limit: int = 100) -> int:
    """Hands out again what dead or stuck workers held."""
    return sql.execute(_FREE_LAPSED, {"limit": limit})


def unpark(limit: int = 1000) -> int:
    """Makes the batches ready whose platform has credentials that nobody refused."""
    return sql.execute(_UNPARK, {"limit": limit})


def overdue(limit: int = 20) -> list[tuple[int, str]]:
    """(batch id, bounce code) of idle batches whose time is over: past the notification's
    deadline, or parked for too long."""
    parameters = {"limit": limit, "parked": timedelta(seconds=settings.PARKED_SECONDS)}
    return [(int(row[0]), str(row[1])) for row in sql.rows(_OVERDUE, parameters)]


def persistently(write: Callable[[], bool], *, until: float) -> bool:
    """`write()`, again while the database is away; LeaseLost once the lease is over, `until` on
    the monotonic clock."""
    wait = 0.1
    while True:
        try:
            return write()
        except (OperationalError, InterfaceError) as error:
            connection.close()
            if time.monotonic() + wait >= until:
                raise LeaseLost from error
            logger.warning("outcomes.unwritten", extra={"error": type(error).__name__})
            time.sleep(wait)
            wait = min(wait * 2, _LONGEST_RETRY_WAIT)


def due_counts(most: int) -> dict[str, int]:
    """How many batches of each platform are due now, counted up to `most`."""
    return {str(row[0]): int(row[1]) for row in sql.rows(_DUE_COUNTS, {"most": most})}


def _fence(lease: Lease) -> dict[str, int]:
    return {"batch": lease.batch_id, "attempt": lease.attempt}


def _lease() -> timedelta:
    return timedelta(seconds=settings.LEASE_SECONDS)


def _lanes(platform: Platform, skip: list[str], skip_channels: Sequence[UUID]) -> Iterator[int]:
    """Plans with due batches, fairest first: a few at a time, for mostly the first will do."""
    tried: list[int] = []
    while True:
        parameters = {
            "platform": platform,
            "skip": skip,
            "channels": list(skip_channels),
            "tried": tried,
            "lanes": _LANES,
        }
        lanes = [int(row[0]) for row in sql.rows(_NEXT_LANES, parameters)]
        yield from lanes
        if len(lanes) < _LANES:
            return
        tried += lanes


def _strangers_to_skip(platform: Platform, processes: int) -> list[str]:
    """Strangers' servers may hold a quarter of the web processes, at least one."""
    if platform != Platform.WEB:
        return []
    (locked,) = sql.rows("SELECT pg_try_advisory_xact_lock(%(key)s)", {"key": _STRANGERS_LOCK})[0]
    if locked:
        (leased,) = sql.rows(_STRANGERS_LEASED, {"service": STRANGERS})[0]
        if leased < max(1, processes // 4):
            return []
    return [STRANGERS]


_NEXT_LANES = """
SELECT plan.id
FROM notifications_app_plan plan
WHERE plan.platform = %(platform)s AND plan.status <> 'done' AND plan.id <> ALL(%(tried)s)
  AND plan.channel_id <> ALL(%(channels)s)
  AND EXISTS (
    SELECT FROM notifications_app_batch batch
    WHERE batch.plan_id = plan.id AND batch.status = 'ready'
      AND batch.due_at <= statement_timestamp() AND batch.push_service <> ALL(%(skip)s)
      AND batch.push_service || ' ' || batch.channel_id <> ALL(%(skip)s))
ORDER BY
  (SELECT max(claimed_at) FROM notifications_app_batch served
   WHERE served.channel_id = plan.channel_id AND served.platform = plan.platform) NULLS FIRST,
  (SELECT max(claimed_at) FROM notifications_app_batch served
   WHERE served.plan_id = plan.id) NULLS FIRST,
  plan.id
LIMIT %(lanes)s
"""

_CLAIM = """
UPDATE notifications_app_batch
SET status = 'leased', attempt = attempt + 1, claimed_at = clock_timestamp(),
    lease_until = clock_timestamp() + %(lease)s
WHERE id = (
  SELECT id FROM notifications_app_batch
  WHERE plan_id = %(plan)s AND status = 'ready' AND due_at <= statement_timestamp()
    AND push_service <> ALL(%(skip)s)
    AND push_service || ' ' || channel_id <> ALL(%(skip)s)
  ORDER BY due_at, id LIMIT 1
  FOR NO KEY UPDATE SKIP LOCKED)
RETURNING id, attempt, lapses, plan_id, notification_id, channel_id, platform, push_service,
  claimed_at
"""

_STRANGERS_LEASED = """
SELECT count(*) FROM notifications_app_batch
WHERE status = 'leased' AND platform = 'web' AND push_service = %(service)s
"""

_HAND_BACK = """
UPDATE notifications_app_batch batch
SET status = 'ready', lease_until = NULL,
    lapses = CASE WHEN %(finished_pass)s THEN 0 ELSE lapses END, due_at = greatest(
  statement_timestamp() + make_interval(secs => %(wait)s),
  (SELECT min(coalesce(due_at, '-infinity')) FROM notifications_app_delivery
   WHERE batch_id = batch.id AND status = 0))
WHERE id = %(batch)s AND attempt = %(attempt)s AND status = 'leased'
"""

_HAND_BACK_FAILED = """
UPDATE notifications_app_batch
SET status = 'ready', lease_until = NULL, lapses = least(greatest(lapses + 1, %(least)s), 100),
    due_at = statement_timestamp() + make_interval(secs => 2 ^ least(lapses, 5))
WHERE id = %(batch)s AND attempt = %(attempt)s AND status = 'leased'
"""

_POSTPONE_BOUNCES = """
UPDATE notifications_app_batch
SET lapses = least(greatest(lapses + 1, %(least)s), 100),
    due_at = statement_timestamp() + make_interval(secs => 2 ^ least(lapses, 5)),
    bounce_again_at = statement_timestamp() + make_interval(secs => 2 ^ least(lapses, 5))
WHERE id = %(batch)s AND status IN ('ready', 'parked')
"""

_RENEW = """
UPDATE notifications_app_batch SET lease_until = clock_timestamp() + %(lease)s
WHERE id = %(batch)s AND attempt = %(attempt)s AND status = 'leased'
"""

_PARK = """
UPDATE notifications_app_batch
SET status = 'parked', lease_until = NULL, parked_at = statement_timestamp()
WHERE id = %(batch)s AND attempt = %(attempt)s AND status = 'leased'
"""

_FREE_LAPSED = """
UPDATE notifications_app_batch
SET status = 'ready', lease_until = NULL, lapses = least(lapses + 1, 100),
    due_at = statement_timestamp()
WHERE id IN (
  SELECT id FROM notifications_app_batch
  WHERE status = 'leased' AND lease_until < statement_timestamp()
  ORDER BY id LIMIT %(limit)s
  FOR NO KEY UPDATE SKIP LOCKED)
"""

_UNPARK = """
UPDATE notifications_app_batch
SET status = 'ready', parked_at = NULL, due_at = statement_timestamp()
WHERE id IN (
  SELECT batch.id FROM notifications_app_batch batch
  WHERE batch.status = 'parked' AND EXISTS (
    SELECT FROM channels_app_providercredential credential
    WHERE credential.channel_id = batch.channel_id AND credential.platform = batch.platform
      AND credential.paused_at IS NULL)
  ORDER BY batch.id LIMIT %(limit)s
  FOR NO KEY UPDATE OF batch SKIP LOCKED)
"""

# From the notifications past their deadline, so that a long queue that is in time costs nothing.
# Batches that were refused not long ago wait: else they would take the others' turn each second.
_OVERDUE = """
SELECT batch.id, CASE WHEN batch.status = 'parked' THEN 'credentials_refused' ELSE 'expired' END
FROM notifications_app_batch batch
WHERE batch.id IN (
  SELECT parked.id FROM notifications_app_batch parked
  WHERE parked.status = 'parked' AND parked.parked_at < statement_timestamp() - %(parked)s
  UNION ALL
  SELECT late.id
  FROM notifications_app_notification notification
  JOIN notifications_app_batch late ON late.notification_id = notification.id
  WHERE notification.status = 'processing'
    AND notification.deadline_at < statement_timestamp()
    AND late.status IN ('ready', 'parked'))
  AND (batch.bounce_again_at IS NULL OR batch.bounce_again_at <= statement_timestamp())
ORDER BY batch.id LIMIT %(limit)s
"""

_DUE_COUNTS = """
SELECT platform, (
  SELECT count(*) FROM (
    SELECT FROM notifications_app_batch batch
    WHERE batch.status = 'ready' AND batch.platform = platforms.platform
      AND batch.due_at <= statement_timestamp()
    LIMIT %(most)s) due)
FROM unnest(ARRAY['web', 'android', 'ios']) AS platforms (platform)
"""
