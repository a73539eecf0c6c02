"""PostgreSQL: version, settings, clock, connections, and what delays or refuses statements."""

import time
from collections.abc import Callable, Generator, Iterator
from datetime import timedelta
from typing import Final

from django.db import Error, NotSupportedError, OperationalError, connection, transaction
from psycopg.errors import DiskFull, ReadOnlySqlTransaction

from pushsvc.common.findings import Finding, Kind, Severity, good
from pushsvc.common.quantities import duration
from pushsvc.ops.doctor import schema
from pushsvc.ops.doctor.statements import Silent, first_line, limited, query, watched

LONG_WAIT: Final = timedelta(seconds=5)  # for a lock or a standby; usually milliseconds
FEW_CONNECTIONS: Final = 0.1  # share of all
SLOW_CLOCK_SECONDS: Final = 2.0
WRONG_CLOCK_SECONDS: Final = 60.0  # beyond this, Google and Apple refuse tokens
_VERSIONS: Final = range(15, 19)
_CRASH: Final = "A crash of the machine can destroy the database."
_MUST_BE_ON: Final = {
    "fsync": _CRASH,
    "full_page_writes": _CRASH,
    "synchronous_commit": "A crash of the server can lose outcomes, whose messages are sent twice.",
    "autovacuum": "Tables grow without limit, and queries become slow.",
    "track_counts": "Autovacuum does not run without it: tables grow without limit.",
}
_ISOLATION: Final = "default_transaction_isolation"
_ISOLATION_LEVELS: Final = ("read committed", "read uncommitted")  # the same in PostgreSQL
_NOT_SERIALIZABLE: Final = (
    "Transactions that change the same rows fail with “could not serialize access”: requests get "
    "503, and batches are tried again."
)
_LIMITS: Final = (
    "statement_timeout",
    "transaction_timeout",
    "idle_in_transaction_session_timeout",
    "idle_session_timeout",
    "lock_timeout",
)
_SHORTEST_MILLISECONDS: Final = 5000
_SHORT: Final = (
    "PostgreSQL ends statements or connections, so requests get 503, and a large send is tried "
    "again and again."
)


def examine() -> Generator[Finding, None, bool]:
    """Returns whether the tables can be read. If there is no database, this is the only finding."""
    try:
        return (yield from _of_connection())
    except Silent:
        yield Kind.DATABASE_SILENT.found()
        return False


def _of_connection() -> Generator[Finding, None, bool]:
    try:
        with watched():
            connection.ensure_connection()
    except NotSupportedError as error:  # Django refuses it
        yield Kind.DATABASE_VERSION.found(version=f"of this server ({error})")
        return False
    except Error as error:
        yield Kind.DATABASE_UNAVAILABLE.found(error=first_line(error), advice=_advice(str(error)))
        return False
    is_readable = _is_readable()
    tables = (schema.migrations, schema.indexes) if is_readable else ()
    for part in (*_SERVER, schema.rights, *tables, _clock, *_ACTIVITY):
        yield from _examined(part)
    return is_readable


def _is_readable() -> bool:
    try:
        with limited():
            return schema.is_readable()
    except Error:
        return True  # so that the parts report what is wrong


def _advice(error: str) -> str:
    if "too many" in error or "connection slots" in error:
        return (
            "All connections are in use. Stop what needs none (SELECT * FROM pg_stat_activity), "
            "raise max_connections or the role's CONNECTION LIMIT, or put PgBouncer in front."
        )
    if "FATAL:" in error:  # the server's own word
        return (
            "The server is running and refuses the connection. Correct what it reports, in "
            "DATABASE_URL or on the server."
        )
    return "Check DATABASE_URL, and that the server is running."


def _examined(part: Callable[[], Iterator[Finding]]) -> list[Finding]:
    """Runs a part in its own transaction, so that a failed statement ends only this part."""
    try:
        with limited():
            return list(part())
    except Error as error:
        what = part.__name__.strip("_").replace("_", " ").capitalize()
        return [Kind.UNEXAMINED.found(what=what, error=first_line(error))]


def _version() -> Iterator[Finding]:
    ((number, version),) = query(
        "SELECT current_setting('server_version_num')::int / 10000,"
        " current_setting('server_version')"
    )
    if number in _VERSIONS:
        yield good("database", f"PostgreSQL {version}")
    else:
        yield Kind.DATABASE_VERSION.found(version=version)


def _settings() -> Iterator[Finding]:
    """The settings of a new session; `reset_val` does not show our own SET LOCAL."""
    names = [*_MUST_BE_ON, *_LIMITS, _ISOLATION]
    found = query(
        "SELECT name, reset_val FROM pg_settings WHERE name = ANY(%s) ORDER BY 1", [names]
    )
    for name, value in found:
        if name in _MUST_BE_ON and value == "off":
            yield _setting(name, value, _MUST_BE_ON[name])
        elif name == _ISOLATION and value not in _ISOLATION_LEVELS:
            yield _setting(name, value, _NOT_SERIALIZABLE)
        elif name in _LIMITS and 0 < int(value) < _SHORTEST_MILLISECONDS:
            yield _setting(name, f"{value}ms", _SHORT, Severity.WARNING)


def _setting(name: str, value: str, harm: str, severity: Severity = Severity.ERROR) -> Finding:
    advice = (
        f"Run ALTER SYSTEM SET {name} = on, and reload."
        if name in _MUST_BE_ON
        else f"Run ALTER ROLE … RESET {name} for the role in DATABASE_URL, or ALTER DATABASE or "
        "ALTER SYSTEM, wherever it is set."
    )
    return Kind.DATABASE_SETTING.found(
        severity=severity, name=name, value=value, harm=harm, advice=advice
    )


def read_only() -> Iterator[Finding]:
    ((is_standby, is_read_only),) = query(
        "SELECT pg_is_in_recovery(), current_setting('transaction_read_only')::bool"
    )
    if is_standby:
        yield Kind.DATABASE_STANDBY.found()
    elif is_read_only:
        yield Kind.DATABASE_READ_ONLY.found()


def _disk() -> Iterator[Finding]:
    """Finds out whether the disk is full: writes a megabyte to a temporary table. Reads do not show
    this, and small writes fit into existing pages. A role without the right is not examined,
    because pushsvc itself needs no temporary tables."""
    if query("SELECT 1 WHERE NOT has_database_privilege(current_database(), 'TEMP')"):
        return
    try:
        with transaction.atomic():
            query("CREATE TEMPORARY TABLE doctor_room AS SELECT generate_series(1, 30000)")
            transaction.set_rollback(True)
    except OperationalError as error:
        if isinstance(error.__cause__, DiskFull):
            yield Kind.DISK_FULL.found(error=first_line(error))
        elif not isinstance(error.__cause__, ReadOnlySqlTransaction):  # already reported
            raise


def _encoding() -> Iterator[Finding]:
    ((encoding,),) = query("SELECT current_setting('server_encoding')")
    if encoding != "UTF8":
        yield Kind.DATABASE_ENCODING.found(encoding=encoding)


def _clock() -> Iterator[Finding]:
    """Compares the database's clock, which decides when notifications start, with this machine's,
    which is in tokens."""
    before = time.time()
    ((theirs,),) = query("SELECT extract(epoch FROM clock_timestamp())::float8")
    ahead = float(theirs) - (before + time.time()) / 2
    yield from clock("this machine", "the database", ahead)


def clock(one: str, other: str, ahead: float) -> Iterator[Finding]:
    """A finding if one is too far ahead of the other, or behind it."""
    seconds = abs(ahead)
    if seconds > SLOW_CLOCK_SECONDS:
        severity = Severity.ERROR if seconds > WRONG_CLOCK_SECONDS else Severity.WARNING
        yield Kind.CLOCKS_DIFFER.found(severity=severity, one=one, other=other, seconds=seconds)


def connections() -> tuple[int, list[tuple[str, int]]]:
    """How many connections PostgreSQL allows, and how many each role has, the most first.

    Of all databases, because they share the limit. An ordinary role does not see the type of the
    connections of others."""
    found = query(
        "SELECT usename, count(*) FROM pg_stat_activity WHERE datid IS NOT NULL"
        " AND coalesce(backend_type, 'client backend') = 'client backend'"
        " GROUP BY usename ORDER BY count(*) DESC"
    )
    ((most,),) = query("SELECT current_setting('max_connections')::int")
    return most, [(role, number) for role, number in found]


def connections_scarce() -> Iterator[Finding]:
    most, roles = connections()
    used = sum(number for _, number in roles)
    if used > (1 - FEW_CONNECTIONS) * most:
        role, number = roles[0]
        yield Kind.CONNECTIONS_SCARCE.found(used=used, most=most, number=number, role=role)


def _locks() -> Iterator[Finding]:
    """Finds processes for which others wait, and that wait for nobody. A prepared transaction has
    no process, and counts as pid 0."""
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
        holder, end = f"{name} (pid {pid})", f"SELECT pg_terminate_backend({pid})"
        if not pid:
            holder, end = "A prepared transaction", "ROLLBACK PREPARED (pg_prepared_xacts)"
        yield Kind.LOCK_HELD.found(holder=holder, end=end, number=number, age=duration(age))


def standby_missing() -> Iterator[Finding]:
    ((number, age),) = query(
        "SELECT count(*), max(extract(epoch FROM clock_timestamp() - query_start))::float8"
        " FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'SyncRep'"
        " AND query_start < clock_timestamp() - %s",
        [LONG_WAIT],
    )
    if number:
        yield Kind.STANDBY_MISSING.found(number=number, age=duration(age))


_SERVER: Final = (_version, read_only, _disk, _encoding, _settings)
_ACTIVITY: Final = (_locks, standby_missing, connections_scarce)
