"""Leases of plans and batches. Those of batches: their duration by this process's clock, their
renewal and their end."""

import json
import time
from collections.abc import Callable, Sequence, Set
from copy import copy
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any, Final, Self, TypeVar
from uuid import UUID

import structlog
from django.conf import settings
from django.db import InterfaceError, OperationalError, connection

from notifications_app.content.values import MAX_TARGETS
from notifications_app.models import SLICE_TARGETS, Batch, Delivery, Driver
from notifications_app.pipeline.contacts import Limits
from notifications_app.pipeline.splitting import in_buckets, weights_of
from notifications_app.querysets import BatchQuerySet
from notifications_app.states import CAREFUL_AFTER_LEASE_LOSSES
from pushsvc.common import metrics
from pushsvc.common.correlation import Correlation, correlation_of
from pushsvc.common.platforms import Platform
from pushsvc.common.store import sql
from subscriptions_app.categories.consent import CONSENT_COLUMNS, consent_to
from subscriptions_app.segments.compiler import EVERYBODY, Condition, compiled
from subscriptions_app.segments.rules import Rule

logger = structlog.stdlib.get_logger(__name__)

T = TypeVar("T")

# Whether a subscription has one of a part's time zones.
IN_ZONES: Final = "subscription.timezone = ANY(%(zones)s::text[])"

RENEW_SECONDS = 10.0
_LONGEST_RETRY_WAIT = 2.0


class LeaseLost(Exception):
    """Other workers have the batches, or the batches are done. Nothing was written."""


@dataclass(frozen=True)
class Lease:
    """A claimed batch. Only the lease with the newest `number` may write. `claimed_at` is the
    database's time at the monotonic second `begun`. `charged`: how many recipients the claim took
    from the rate of the send; 0 if it has none. `leaves_none`: the claim left no due batch of the
    platform."""

    batch_id: int
    number: int
    lease_losses: int
    plan_id: int
    notification_id: UUID
    channel_id: UUID
    platform: Platform
    push_service: str
    claimed_at: datetime
    variant: int | None = None
    begun: float = 0.0
    charged: int = 0
    leaves_none: bool = False

    @classmethod
    def of(cls, row: Sequence[Any], *, begun: float) -> Self:
        """From a row with the columns in this order."""
        lease = cls(*row)
        return replace(lease, platform=Platform(lease.platform), begun=begun)

    @property
    def row_id(self) -> int:
        return self.batch_id

    def now(self) -> datetime:
        """The time of the database's clock, computed from the monotonic clock."""
        return self.claimed_at + timedelta(seconds=time.monotonic() - self.begun)

    def local(self, moment: datetime) -> float:
        """Converts a time of the database's clock to this process's monotonic clock."""
        return self.begun + (moment - self.claimed_at).total_seconds()

    @property
    def is_careful(self) -> bool:
        """Whether the recipients are to be called one by one."""
        return self.lease_losses >= CAREFUL_AFTER_LEASE_LOSSES


@dataclass(frozen=True)
class PlanLease:
    """A claimed plan. Only the lease with the newest `number` may plan. `zones`: as in Plan.
    `is_shared`: the notification has other parts on the platform, which may reach the same devices.
    `rate_per_minute`: of the notification; None if it has no rate. `caps_json`, `once_json`: as in
    Notification. `weights_json`: of its variants, as WEIGHTS. `bucket_from`, `bucket_to`: as in
    Plan. `winner`: the variant that the test of the variants found."""

    plan_id: int
    number: int
    notification_id: UUID
    channel_id: UUID
    platform: Platform
    rule_json: str | None
    driver: str
    zones: Sequence[str] | None
    has_targets: bool
    release_at: datetime
    started_at: datetime
    category: str
    is_shared: bool
    part: int = 0
    rate_per_minute: int | None = None
    caps_json: str | None = None
    once_json: str | None = None
    request_id: str | None = None
    traceparent: str | None = None
    weights_json: str | None = None
    bucket_from: int | None = None
    bucket_to: int | None = None
    winner: int | None = None

    @classmethod
    def of(cls, row: Sequence[Any]) -> Self:
        """From a row with the columns in this order."""
        lease = cls(*row)
        return replace(lease, platform=Platform(lease.platform))

    @property
    def row_id(self) -> int:
        return self.plan_id

    def order(self) -> tuple[UUID, int]:
        """The order in which all statements write recipients of several notifications."""
        return self.notification_id, self.plan_id

    @property
    def correlation(self) -> Correlation:
        return correlation_of(self.notification_id, self.request_id, self.traceparent)

    @property
    def is_slice(self) -> bool:
        return self.driver == Driver.SLICE

    @property
    def most_targets(self) -> int:
        return SLICE_TARGETS if self.is_slice else MAX_TARGETS

    @property
    def first_target(self) -> int:
        """The position of a slice's first target. The part 0 has none."""
        return (self.part - 1) * SLICE_TARGETS

    @cached_property
    def rule(self) -> Rule | None:
        return None if self.rule_json is None else json.loads(self.rule_json)

    @cached_property
    def weights(self) -> tuple[int, ...]:
        """Of the notification's variants; empty if it has none."""
        return weights_of(self.weights_json, self.winner if self.bucket_from else None)

    @cached_property
    def of_rule(self) -> Condition:
        """The same condition for every window, whichever process plans it and whenever."""
        rule = self.rule
        return EVERYBODY if rule is None else compiled(rule, now=self.started_at)

    @cached_property
    def audience(self) -> Condition:
        """Whom the plan reaches: who matches the rule and is in its time zones or buckets."""
        rule = self.of_rule
        if self.bucket_from is not None and self.bucket_to is not None:
            own = in_buckets(self.notification_id, self.bucket_from, self.bucket_to)
            return Condition(f"({own.text} AND {rule.text})", {**rule.parameters, **own.parameters})
        if self.zones is None:
            return rule
        return Condition(
            f"({rule.text} AND {IN_ZONES})", {**rule.parameters, "zones": list(self.zones)}
        )

    @cached_property
    def consent(self) -> Condition | None:
        """Which subscriptions want the notification's category. None if it has no category."""
        return consent_to(self.category) if self.category else None

    @cached_property
    def limits(self) -> Limits | None:
        """Who of the audience may be contacted again. None if everybody may."""
        return Limits.of(
            self.notification_id,
            self.channel_id,
            self.release_at,
            caps_json=self.caps_json,
            once_json=self.once_json,
        )

    @property
    def columns(self) -> str:
        """The columns of subscriptions that a window reads for `consent` and `limits`."""
        if self.category:
            return CONSENT_COLUMNS
        return "person_id, " if self.limits else ""


@dataclass(frozen=True)
class Renewal:
    """The result of a write that renews leases: ids of batches that it ended (`done`), that this
    worker no longer has (`lost`), and with rows that the database refuses to change
    (`with_refused_rows`). `is_halted`: a notification is paused or stopped. `is_written`: the
    database accepted something; if not, no lease was renewed either."""

    done: Set[int] = frozenset()
    lost: Set[int] = frozenset()
    with_refused_rows: Set[int] = frozenset()
    is_halted: bool = False
    is_written: bool = False


class HeldLeases:
    """The leases of a claim, which a worker serves in one pass. They are of one channel at one push
    service. Only the task's thread uses it.

    Every write is repeated while the database is away, until the leases are over. Then it raises
    LeaseLost, as it does when other workers have all the batches.
    """

    def __init__(self, leases: Sequence[Lease]) -> None:
        self.open = list(leases)
        self.until = leases[0].begun + settings.LEASE_SECONDS  # on the monotonic clock
        self.must_stop = False  # whether a notification is halted or a batch lost

    def split(self, batch_ids: Set[int]) -> Self:
        """Moves the leases of these batches to a new object, so that they can end differently."""
        apart = copy(self)
        apart.open = [lease for lease in self.open if lease.batch_id in batch_ids]
        self.open = [lease for lease in self.open if lease.batch_id not in batch_ids]
        return apart

    def persistently(
        self, write: Callable[[], T], *, may_repeat: Callable[[], bool] = lambda: True
    ) -> T:
        """Returns what `write()` returns, repeating it while the database is away. Raises an error
        after which `may_repeat()` is false."""
        wait = 0.1
        while True:
            try:
                return write()
            except (OperationalError, InterfaceError) as error:
                if not may_repeat():
                    raise
                connection.close()
                if time.monotonic() + wait >= self.until:
                    raise LeaseLost from error
                logger.warning("outcomes.unwritten", error=type(error.__cause__ or error).__name__)
                time.sleep(wait)
                wait = min(wait * 2, _LONGEST_RETRY_WAIT)

    def write_and_renew(self, write: Callable[[Sequence[Lease]], Renewal]) -> Renewal:
        """Runs a write that renews the open leases in the database. If it raises, the leases do not
        count as renewed, because perhaps nothing was written."""
        if not self.open:
            raise LeaseLost
        begun = time.monotonic()
        renewal = self.persistently(lambda: write(self.open))
        if renewal.is_written:
            self.until = begun + settings.LEASE_SECONDS
        self.split(renewal.done)
        lost = self.split(renewal.lost)
        lost.log_loss()
        self.must_stop |= renewal.is_halted or bool(lost.open)
        return renewal

    @property
    def is_renewal_due(self) -> bool:
        """Whether there are open leases that were not renewed in the last ten seconds."""
        renewed_at = self.until - settings.LEASE_SECONDS
        return bool(self.open) and time.monotonic() >= renewed_at + RENEW_SECONDS

    @property
    def are_done(self) -> bool:
        """Whether this worker ended all of the batches."""
        return not self.open and not self.must_stop

    def log_loss(self) -> None:
        for lease in self.open:
            logger.warning("batch.lease_lost", batch=lease.batch_id)

    def park(self) -> None:
        """Sets the batches aside until the platform's credentials are replaced."""
        self._end(lambda batches: batches.park())

    def hand_back(self, *, finished_pass: bool, wait: float = 0.0) -> None:
        """Ends the leases of batches with recipients left. Each batch is due when its first
        recipient is, but not before `wait` seconds."""
        waiting = Delivery.objects.waiting()
        self._end(
            lambda batches: batches.hand_back(
                waiting, finished_pass=finished_pass, wait=timedelta(seconds=wait)
            )
        )

    def hand_back_failed(self, *, careful: bool = False) -> None:
        """Ends the leases after a broken pass. `careful`: the next pass calls one by one."""
        lost = self._end(lambda batches: batches.hand_back_failed(careful=careful))
        if lost:
            metrics.LEASE_LOSSES.add(lost, self.open[0].platform, "broken")

    def _end(self, end: Callable[[BatchQuerySet[Batch]], int]) -> int:
        """Returns how many leases it ended. Leaves batches alone that are done or that other
        workers have."""
        if not self.open:
            return 0
        return self.persistently(lambda: self._end_once(end))

    def _end_once(self, end: Callable[[BatchQuerySet[Batch]], int]) -> int:
        """Locks several rows before the update, because an update locks them in any order."""
        own = Batch.objects.leased_by(*self.open)
        if len(self.open) == 1:
            return end(own)
        with sql.brief_transaction():
            own.lock_all()
            return end(own)
