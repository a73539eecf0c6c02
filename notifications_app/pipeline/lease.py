"""A worker's claim of a batch: how long it lasts by this process's clock, and how it ends."""

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Self, TypeVar
from uuid import UUID

from django.conf import settings
from django.db import InterfaceError, OperationalError, connection

from notifications_app.models import Batch, Delivery
from notifications_app.states import CAREFUL_AFTER_LEASE_LOSSES, STATES
from pushsvc.common.platforms import Platform
from pushsvc.common.store import sql

logger = logging.getLogger(__name__)

T = TypeVar("T")

_RENEW_SECONDS = 10.0
_LONGEST_RETRY_WAIT = 2.0


class LeaseLost(Exception):
    """Another worker has the batch, or it is done. What this worker learned comes too late."""


@dataclass(frozen=True)
class Lease:
    """A claimed batch. `attempt` fences: only the newest one may write. `claimed_at` is the
    database's time at the monotonic second `begun`."""

    batch_id: int
    attempt: int
    lease_losses: int
    plan_id: int
    notification_id: UUID
    channel_id: UUID
    platform: Platform
    push_service: str
    claimed_at: datetime
    begun: float = 0.0

    @classmethod
    def of(cls, row: Sequence[Any], *, begun: float) -> Self:
        """From a row with the columns in this order."""
        lease = cls(*row)
        return replace(lease, platform=Platform(lease.platform), begun=begun)

    def now(self) -> datetime:
        """The database's clock, by this process's monotonic one."""
        return self.claimed_at + timedelta(seconds=time.monotonic() - self.begun)

    def local(self, moment: datetime) -> float:
        """A moment of the database's clock on this process's monotonic one."""
        return self.begun + (moment - self.claimed_at).total_seconds()

    @property
    def is_careful(self) -> bool:
        """Whether the recipients are to be called one by one."""
        return self.lease_losses >= CAREFUL_AFTER_LEASE_LOSSES


class HeldLease:
    """The lease of the batch that this worker serves. Only the task's thread uses it.

    Every write is repeated while the database is away, until the lease is over. Then it raises
    LeaseLost, as it does when another worker has the batch.
    """

    def __init__(self, lease: Lease) -> None:
        self.lease = lease
        self.until = lease.begun + settings.LEASE_SECONDS  # on the monotonic clock
        self.is_halted = False  # whether the notification is paused or stopped

    def persistently(self, write: Callable[[], T]) -> T:
        """What `write()` returns."""
        wait = 0.1
        while True:
            try:
                return write()
            except (OperationalError, InterfaceError) as error:
                connection.close()
                if time.monotonic() + wait >= self.until:
                    raise LeaseLost from error
                logger.warning("outcomes.unwritten", extra={"error": type(error).__name__})
                time.sleep(wait)
                wait = min(wait * 2, _LONGEST_RETRY_WAIT)

    def write_and_renew(self, write: Callable[[], bool]) -> None:
        """For a write that renews the lease in the database and returns whether the notification is
        halted. If it raises, the lease is not taken for renewed: perhaps nothing was written."""
        begun = time.monotonic()
        self.is_halted = self.persistently(write)
        self.until = begun + settings.LEASE_SECONDS

    def renew_if_due(self) -> None:
        """Renews a lease that was not renewed in the last ten seconds."""
        if time.monotonic() >= self.until - settings.LEASE_SECONDS + _RENEW_SECONDS:
            self.write_and_renew(self.renew)

    def park(self) -> None:
        """Sets the batch aside until the platform's credentials are replaced."""
        self.persistently(lambda: Batch.objects.leased_by(self.lease).park())

    def hand_back(self, *, finished_pass: bool, wait: float = 0.0) -> None:
        """Ends the lease of a batch with recipients left. It is due when the first of them is, and
        not before `wait` seconds. Nothing happens if the batch is done."""
        waiting = Delivery.objects.waiting()
        self.persistently(
            lambda: Batch.objects.leased_by(self.lease).hand_back(
                waiting, finished_pass=finished_pass, wait=timedelta(seconds=wait)
            )
        )

    def hand_back_failed(self, *, careful: bool = False) -> None:
        """The same after a pass that broke. `careful`: the next pass calls one by one."""
        self.persistently(
            lambda: Batch.objects.leased_by(self.lease).hand_back_failed(careful=careful)
        )

    def renew(self) -> bool:
        """Returns whether the notification is halted."""
        parameters = {
            "batch": self.lease.batch_id,
            "attempt": self.lease.attempt,
            "lease": timedelta(seconds=settings.LEASE_SECONDS),
        }
        renewed = sql.rows(_RENEW, STATES | parameters)
        if not renewed:
            raise LeaseLost
        return bool(renewed[0][0])


# In SQL, because an update of the ORM does not return rows.
_RENEW = """
UPDATE notifications_app_batch batch
SET lease_until = clock_timestamp() + %(lease)s
WHERE id = %(batch)s AND attempt = %(attempt)s AND status = %(batch_leased)s
RETURNING (SELECT paused_at IS NOT NULL OR stopped_at IS NOT NULL
           FROM notifications_app_notification WHERE id = batch.notification_id)
"""
