"""Measures what a recipient costs in PostgreSQL, from plan to outcome: WAL, HOT, statements, CPU.

In each round one notification to all subscribers is planned and then recorded as delivered, in this
process, without a push service. The bench has its own temporary database. It runs without full page
writes, so the figures do not depend on checkpoints. CPU is that of this process and of its database
session.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from bench import filling
from bench.database import own_database
from bench.results import Options, Result, ResultRow
from pushsvc.common.platforms import Platform

if TYPE_CHECKING:
    from channels_app.models import Channel
    from notifications_app.pipeline.lease import Lease

PLATFORM: Final = Platform.ANDROID
FLUSH = 300  # outcomes in one transaction, the most that a worker collects


def measure(options: Options) -> Result:
    result = Result()
    planned, recorded = [], []
    with own_database():
        channel = filling.channel_with(options.recorded, platforms=[PLATFORM])
        for _ in range(options.rounds):
            with result.load.round():
                planned.append(_cost(lambda: plan(channel), options.recorded))
                recorded.append(_cost(lambda: _record(FLUSH), options.recorded))
        disk = _disk(options.recorded * options.rounds)
    wal = [plan.wal + record.wal for plan, record in zip(planned, recorded, strict=True)]
    result.rows = [
        ResultRow("WAL, plan and outcome", "bytes", wal, aim="350"),
        ResultRow("of it: plan", "bytes", [cost.wal for cost in planned]),
        ResultRow("of it: outcome", "bytes", [cost.wal for cost in recorded]),
        ResultRow("HOT share of updates", "", [cost.hot for cost in recorded], aim="0.95"),
        ResultRow("CPU of PostgreSQL, plan", "µs", [cost.database_us for cost in planned]),
        ResultRow("CPU of PostgreSQL, outcome", "µs", [cost.database_us for cost in recorded]),
        ResultRow("CPU of the worker, outcome", "µs", [cost.own_us for cost in recorded]),
        ResultRow("statements, plan", "", [cost.statements for cost in planned]),
        ResultRow("statements, outcome", "", [cost.statements for cost in recorded]),
        ResultRow("disk, delivery with its index entries", "bytes", [disk]),
    ]
    result.remarks.append(f"For each of {options.recorded:,} recipients.")
    return result


@dataclass(frozen=True)
class _Cost:
    """The cost of one recipient."""

    own_us: float
    database_us: float
    wal: float
    hot: float
    statements: float


def _cost(step: Callable[[], None], recipients: int) -> _Cost:
    with _counted_statements() as statements:
        before, cpu = database_figures(), time.process_time()
        step()
        cpu, after = time.process_time() - cpu, database_figures()
    spent = {name: after[name] - before[name] for name in after}
    return _Cost(
        own_us=1e6 * cpu / recipients,
        database_us=1e6 * spent["cpu"] / recipients,
        wal=spent["wal"] / recipients,
        hot=spent["hot"] / max(1, spent["updated"]),
        statements=len(statements) / recipients,
    )


@contextmanager
def _counted_statements() -> Iterator[list[None]]:
    """A list that gets one entry for each statement in the context."""
    from django.db import connection

    statements: list[None] = []

    def count(execute: Any, *arguments: Any) -> Any:
        statements.append(None)
        return execute(*arguments)

    with connection.execute_wrapper(count):
        yield statements


def _disk(deliveries: int) -> float:
    """Bytes on disk for each delivery."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_total_relation_size('notifications_app_delivery')")
        return float(cursor.fetchone()[0]) / deliveries


def database_figures() -> dict[str, float]:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_stat_force_next_flush()")
        cursor.execute(_FIGURES)
        pid, wal, updated, hot = cursor.fetchone()
    ticks = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()[11:13]
    return {
        "cpu": sum(map(int, ticks)) / 100,
        "wal": float(wal),
        "updated": float(updated),
        "hot": float(hot),
    }


def send(channel: "Channel") -> None:
    """Creates a notification to the whole channel."""
    from django.db.models.functions import Now

    from notifications_app.models import Notification

    Notification.objects.create(
        channel=channel, body="bench", ttl=3600, target_platforms=[PLATFORM], scheduled_at=Now()
    )


def plan(channel: "Channel") -> None:
    from notifications_app.pipeline import planning

    send(channel)
    while planning.work(seconds=3600):
        pass


def _record(flush: int) -> None:
    from notifications_app.pipeline import batches

    while leases := batches.claim(PLATFORM, most=1, skip=[], processes=1):
        deliver(leases[0], flush)


def deliver(lease: "Lease", flush: int, *, are_gone: bool = False) -> None:
    """Records all recipients of the batch as delivered, or as gone, so that they expire."""
    from notifications_app.models import Delivery
    from notifications_app.pipeline import outcomes
    from notifications_app.pipeline.transitions import DueDelivery, Transition
    from notifications_app.states import DeliveryStatus
    from pushsvc.common.store import sql

    due = Delivery.objects.due().filter(batch_id=lease.batch_id)
    ids: list[UUID] = list(due.values_list("subscription_id", flat=True))
    end: dict[str, Any] = {"status": DeliveryStatus.DELIVERED}
    if are_gone:
        end = {"status": DeliveryStatus.BOUNCED, "code": "gone", "expires_as_of": sql.now()}
    changes = [
        Transition(
            DueDelivery(lease.batch_id, id_, 0, None, 0, lease.claimed_at), attempts=1, **end
        )
        for id_ in ids
    ]
    for start in range(0, len(changes), flush):
        outcomes.record([lease], changes[start : start + flush])


_FIGURES = """
SELECT pg_backend_pid(), pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0'), n_tup_upd,
  n_tup_hot_upd
FROM pg_stat_user_tables WHERE relname = 'notifications_app_delivery'
"""
