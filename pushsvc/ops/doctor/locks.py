"""PostgreSQL: who holds a lock, and commits that wait for a standby."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from pushsvc.common.console.figures import duration, grouped
from pushsvc.ops.doctor import schema
from pushsvc.ops.doctor.finding import Finding, Tone
from pushsvc.ops.doctor.statements import query

LONG_WAIT: Final = timedelta(seconds=5)  # for a lock or a standby; usually milliseconds
_SUBJECT: Final = "database"


def blocked() -> Iterator[Finding]:
    """Finds processes that hold a lock for which others wait, and that wait for none themselves. A
    prepared transaction has no process, and counts as pid 0."""
    found = query(
        "SELECT blocker.pid, coalesce(nullif(holder.application_name, ''), holder.usename, ''),"
        " count(*), max(extract(epoch FROM clock_timestamp() - waiting.query_start))::float8"
        " FROM pg_stat_activity AS waiting"
        " CROSS JOIN LATERAL unnest(pg_blocking_pids(waiting.pid)) AS blocker(pid)"
        " LEFT JOIN pg_stat_activity AS holder ON holder.pid = blocker.pid"
        " WHERE waiting.datname = current_database() AND waiting.wait_event_type = 'Lock'"
        " AND waiting.query_start < clock_timestamp() - %s"
        " AND holder.wait_event_type IS DISTINCT FROM 'Lock'"
        " GROUP BY blocker.pid, 2 ORDER BY count(*) DESC LIMIT 5",
        [LONG_WAIT],
    )
    for pid, name, number, age in found:
        who = f"{name} (pid {pid})" if pid else "A prepared transaction"
        end = (
            f"SELECT pg_terminate_backend({pid})"
            if pid
            else "ROLLBACK PREPARED (pg_prepared_xacts)"
        )
        title = f"{who} blocks {grouped(number)} statements, the first for {duration(age)}"
        remedy = (
            "They wait for a lock that it holds, and what they belong to stands still: requests, "
            f"ticks or batches. Find its program, or run {end}."
        )
        yield Finding(_SUBJECT, Tone.BAD, title, remedy)


def locked() -> Iterator[Finding]:
    """Finds our tables that nobody can read, and for which nobody waits yet. A migration, VACUUM
    FULL or a forgotten transaction locks them. VACUUM gives way to others."""
    found = query(
        "SELECT held.pid, coalesce(nullif(application_name, ''), usename, ''),"
        " string_agg(relname, ', ' ORDER BY relname),"
        " extract(epoch FROM clock_timestamp() - min(xact_start))::float8"
        " FROM pg_locks AS held JOIN pg_class ON pg_class.oid = held.relation"
        " JOIN pg_stat_activity AS holder ON holder.pid = held.pid"
        " WHERE held.granted AND held.mode = 'AccessExclusiveLock'"
        " AND holder.datname = current_database() AND relname = ANY(%s)"
        " AND (xact_start IS NULL OR xact_start < clock_timestamp() - %s)"  # NULL: hidden from us
        " AND NOT EXISTS (SELECT 1 FROM pg_stat_progress_vacuum AS vacuum"
        " WHERE vacuum.pid = held.pid)"
        " AND NOT EXISTS (SELECT 1 FROM pg_stat_activity AS waiting"
        " WHERE waiting.wait_event_type = 'Lock'"
        " AND waiting.query_start < clock_timestamp() - %s"
        " AND held.pid = ANY(pg_blocking_pids(waiting.pid)))"
        " GROUP BY 1, 2 LIMIT 5",
        [schema.managed_tables(), LONG_WAIT, LONG_WAIT],
    )
    for pid, name, tables, age in found:
        time_taken = f", in a transaction of {duration(age)}" if age is not None else ""
        title = f"{name} (pid {pid}) locks {tables}{time_taken}"
        remedy = (
            "Nobody can read or write there until it ends: requests, ticks and batches will wait. "
            f"Find its program, or run SELECT pg_terminate_backend({pid}). A migration or VACUUM "
            "FULL may need this time."
        )
        tone = Tone.BAD if age is not None else Tone.WARN  # perhaps it began a moment ago
        yield Finding(_SUBJECT, tone, title, remedy)


def standby_missing() -> Iterator[Finding]:
    ((number, age),) = query(
        "SELECT count(*), max(extract(epoch FROM clock_timestamp() - query_start))::float8"
        " FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'SyncRep'"
        " AND query_start < clock_timestamp() - %s",
        [LONG_WAIT],
    )
    if number:
        title = f"{grouped(number)} commits wait for a standby, the first for {duration(age)}"
        remedy = (
            "No standby of synchronous_standby_names confirms them, so nothing can be stored. "
            "Start it, or go on without it: ALTER SYSTEM SET synchronous_standby_names = '', and "
            "reload."
        )
        yield Finding(_SUBJECT, Tone.BAD, title, remedy)
