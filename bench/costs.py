"""Measures what a piece of work costs in PostgreSQL."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Cost:
    """Processor seconds of the session, how often it touched a page of a table or an index, bytes
    of WAL, and seconds of wall-clock time."""

    cpu: float
    touches: float
    wal: float
    elapsed: float


def cost_of(step: Callable[[], object], parts: float = 1) -> Cost:
    """The cost of one of the step's `parts`. No other session may work meanwhile."""
    before, began = _figures(), time.perf_counter()
    step()
    elapsed, after = time.perf_counter() - began, _figures()
    cpu, touches, wal = (late - early for early, late in zip(before, after, strict=True))
    return Cost(cpu / parts, touches / parts, wal / parts, elapsed / parts)


def run(statement: str, parameters: Mapping[str, Any] | None = None) -> None:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)


def without_autovacuum() -> None:
    """Turns autovacuum off in the bench's own server."""
    run("ALTER SYSTEM SET autovacuum = off")
    run("SELECT pg_reload_conf()")


def row(statement: str, parameters: dict[str, Any] | None = None) -> tuple[Any, ...]:
    """The first row of the statement."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        found: tuple[Any, ...] = cursor.fetchone()
        return found


def _figures() -> tuple[float, float, float]:
    run("SELECT pg_stat_force_next_flush()")
    pid, touches, wal = row(_FIGURES)
    nanoseconds = int(Path(f"/proc/{pid}/schedstat").read_text(encoding="ascii").split()[0])
    return nanoseconds / 1e9, float(touches), float(wal)


_FIGURES = """
SELECT pg_backend_pid(),
  sum(heap_blks_hit + heap_blks_read + coalesce(idx_blks_hit + idx_blks_read, 0)),
  pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')
FROM pg_statio_user_tables
"""
