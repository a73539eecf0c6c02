"""PostgreSQL: version, settings, clock, and what delays statements or fills the disk."""

import time
from collections.abc import Callable, Generator, Iterator
from datetime import timedelta
from typing import Final

from django.conf import settings
from django.db import Error, NotSupportedError, OperationalError, connection, transaction
from psycopg.errors import DiskFull, ReadOnlySqlTransaction

from pushsvc.common.console.figures import duration, grouped
from pushsvc.ops.doctor import locks, schema
from pushsvc.ops.doctor.finding import Finding, Tone
from pushsvc.ops.doctor.statements import (
    SILENCE_SECONDS,
    Silent,
    first_line,
    limited,
    query,
    watched,
)

OLD_TRANSACTION: Final = timedelta(minutes=5)
MUCH_WAL: Final = 10 * 1024**3  # bytes that a replication slot keeps
OLD_ROWS: Final = 1_000_000_000  # transactions; PostgreSQL refuses writes at about two billion
FEW_CONNECTIONS: Final = 0.1  # share of all
SLOW_CLOCK_SECONDS: Final = 2.0
WRONG_CLOCK_SECONDS: Final = 60.0  # beyond this, Google and Apple refuse tokens
_SUBJECT: Final = "database"
_VERSIONS: Final = range(15, 19)
_USE: Final = f"Use PostgreSQL {_VERSIONS[0]} to {_VERSIONS[-1]}."
_SHORTEST_SECONDS: Final = 5  # for limits of statements that the role or the server sets
_LIMITS: Final = (
    "statement_timeout",
    "transaction_timeout",
    "idle_in_transaction_session_timeout",
    "idle_session_timeout",
    "lock_timeout",
)
_ISOLATION: Final = ("read committed", "read uncommitted")  # the same in PostgreSQL
_THREADS: Final = 20  # of a web process that sends no mail; each may hold a connection
_MANY_DEAD: Final = 100_000
_MORE: Final = "Raise max_connections, or put PgBouncer in front."
_HARMFUL: Final = {
    "fsync": "A crash of the machine can destroy the database.",
    "full_page_writes": "A crash of the machine can destroy the database.",
    "synchronous_commit": "A crash of the server can lose outcomes, whose messages are sent twice.",
    "autovacuum": "Tables grow without limit, and queries become slow.",
    "track_counts": "Autovacuum does not run without it: tables grow without limit.",
}


def examine() -> Generator[Finding, None, bool]:
    """Returns whether the tables can be read. If there is no database, this is the only finding."""
    try:
        return (yield from _of_connection())
    except Silent:
        yield silence()
        return False


def silence() -> Finding:
    remedy = (
        f"Nothing came for {SILENCE_SECONDS:.0f} s, and requests and batches wait, too. "
        "Look whether its processes are stopped (SIGSTOP, a frozen container or machine) or wait "
        "for their disk, and whether a pooler or a firewall on the way drops packets. Restart it, "
        "or let a standby take over."
    )
    title = "PostgreSQL accepts connections and does not answer"
    return Finding(_SUBJECT, Tone.BAD, title, remedy)


def _of_connection() -> Generator[Finding, None, bool]:
    try:
        with watched():
            connection.ensure_connection()
    except NotSupportedError as error:  # Django refuses it
        yield Finding(_SUBJECT, Tone.BAD, "This PostgreSQL is too old", f"{error}. {_USE}")
        return False
    except Error as error:
        remedy = f"{first_line(error)} {_way_to_connect(str(error))}"
        yield Finding(_SUBJECT, Tone.BAD, "PostgreSQL cannot be reached", remedy)
        return False
    is_readable = _is_readable()
    tables = (schema.migrations, schema.indexes) if is_readable else ()
    for part in (*_SETTINGS, schema.rights, *tables, _clock, *_STATISTICS):
        yield from _examined(part)
    return is_readable


def _is_readable() -> bool:
    try:
        with limited():
            return schema.is_readable()
    except Error:
        return True  # so that the parts say what is wrong


def _way_to_connect(said: str) -> str:
    if "too many" in said or "connection slots" in said:
        return (
            "All connections are in use. Stop what needs none (SELECT * FROM pg_stat_activity), "
            "raise max_connections or the role's CONNECTION LIMIT, or put PgBouncer in front."
        )
    if "could not write" in said:
        return "Its disk is full. Make room there."
    if "FATAL:" in said:  # the server's own word
        return "The server runs and refuses the connection. Check DATABASE_URL."
    return "Check DATABASE_URL, and that the server is running."


def _examined(part: Callable[[], Iterator[Finding]]) -> list[Finding]:
    """Runs a part in its own transaction, so that a failed statement ends only this part."""
    try:
        with limited():
            return list(part())
    except Error as error:
        title = f"{part.__name__.strip('_').replace('_', ' ').capitalize()} could not be read"
        return [Finding(_SUBJECT, Tone.WARN, title, first_line(error))]


def _version() -> Iterator[Finding]:
    ((number, text),) = query(
        "SELECT current_setting('server_version_num')::int / 10000,"
        " current_setting('server_version')"
    )
    if number in _VERSIONS:
        yield Finding(_SUBJECT, Tone.OK, f"PostgreSQL {text}")
    else:
        yield Finding(_SUBJECT, Tone.BAD, f"PostgreSQL {text} is not supported", _USE)


def _harmful_settings() -> Iterator[Finding]:
    off = query(
        "SELECT name FROM pg_settings WHERE setting = 'off' AND name = ANY(%s) ORDER BY name",
        [list(_HARMFUL)],
    )
    for (name,) in off:
        remedy = f"{_HARMFUL[name]} Run ALTER SYSTEM SET {name} = on, and reload."
        yield Finding(_SUBJECT, Tone.BAD, f"The setting {name} is off", remedy)


def _read_only() -> Iterator[Finding]:
    ((is_standby, is_read_only),) = query(
        "SELECT pg_is_in_recovery(), current_setting('transaction_read_only')::bool"
    )
    if is_standby:
        remedy = (
            "Nothing can be stored or sent. Let DATABASE_URL name the primary, or both with "
            "?target_session_attrs=read-write. If the primary is lost, run SELECT pg_promote()."
        )
        yield Finding(_SUBJECT, Tone.BAD, "DATABASE_URL leads to a standby", remedy)
    elif is_read_only:
        remedy = (
            "Nothing can be stored or sent. Hosters do that to a server whose disk is full: make "
            "room first. Then set default_transaction_read_only to off, for the server (ALTER "
            "SYSTEM), the database or the role, wherever it is on."
        )
        yield Finding(_SUBJECT, Tone.BAD, "The database accepts no writes", remedy)


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
            remedy = (
                f"{first_line(error)} Most requests get 503, and outcomes cannot be written. Make "
                "room on PostgreSQL's disk; nothing else is needed."
            )
            yield Finding(_SUBJECT, Tone.BAD, "PostgreSQL's disk is full", remedy)
        elif not isinstance(error.__cause__, ReadOnlySqlTransaction):  # already reported
            raise


def _encoding() -> Iterator[Finding]:
    ((encoding,),) = query("SELECT current_setting('server_encoding')")
    if encoding != "UTF8":
        remedy = (
            "Texts with letters beyond ASCII fail. Make another one with ENCODING 'UTF8' and "
            "TEMPLATE template0, and restore a pg_dump into it."
        )
        yield Finding(_SUBJECT, Tone.BAD, f"The database's encoding is {encoding}", remedy)


def _limits() -> Iterator[Finding]:
    """The limits of a new session; `reset_val` does not show our own SET LOCAL."""
    short = query(
        "SELECT name, reset_val || unit FROM pg_settings WHERE name = ANY(%s)"
        " AND reset_val::bigint BETWEEN 1 AND %s ORDER BY name",
        [list(_LIMITS), 1000 * _SHORTEST_SECONDS - 1],
    )
    for name, value in short:
        remedy = (
            "PostgreSQL ends statements or connections, so requests get 503, and a large send is "
            "tried again and again. Run "
            f"ALTER ROLE … RESET {name} for the role in DATABASE_URL, or raise it."
        )
        yield Finding(_SUBJECT, Tone.WARN, f"The limit {name} is only {value}", remedy)


def _isolation() -> Iterator[Finding]:
    ((level,),) = query("SELECT current_setting('default_transaction_isolation')")
    if level in _ISOLATION:
        return
    remedy = (
        "Transactions that change the same rows fail with “could not serialize access”: requests "
        "get 503, and batches are tried again. Run ALTER ROLE … RESET "
        "default_transaction_isolation for the role in DATABASE_URL, or ALTER DATABASE or ALTER "
        "SYSTEM, wherever it is set."
    )
    title = f"Transactions are {level}, and pushsvc needs {_ISOLATION[0]}"
    yield Finding(_SUBJECT, Tone.BAD, title, remedy)


def _clock() -> Iterator[Finding]:
    """Compares the database's clock, which decides when notifications start, with this machine's,
    which is in tokens."""
    before = time.time()
    ((theirs,),) = query("SELECT extract(epoch FROM clock_timestamp())::float8")
    difference = float(theirs) - (before + time.time()) / 2
    if abs(difference) > SLOW_CLOCK_SECONDS:
        tone = Tone.BAD if abs(difference) > WRONG_CLOCK_SECONDS else Tone.WARN
        title = f"The clocks of this machine and the database differ by {abs(difference):.0f} s"
        yield Finding(_SUBJECT, tone, title, "Run NTP on both: Google and Apple check the time.")


def _connections() -> Iterator[Finding]:
    """Counts used connections, and those that this process's settings allow; other machines need
    more. A pooler opens fewer connections to PostgreSQL than its clients open."""
    ((most, used),) = query(
        "SELECT current_setting('max_connections')::int, (SELECT count(*) FROM pg_stat_activity"
        " WHERE backend_type = 'client backend')"
    )
    if used > (1 - FEW_CONNECTIONS) * most:
        ((role, number),) = query(
            "SELECT usename, count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'"
            " GROUP BY usename ORDER BY count(*) DESC LIMIT 1"
        )
        title = f"{used} of {most} connections are in use, {number} of them by {role}"
        yield Finding(_SUBJECT, Tone.WARN, title, f"Without one, requests get 503. {_MORE}")
    if _is_pooled():
        return
    threads = _THREADS + (settings.MAIL_SERVER is not None)
    wanted = settings.WEB_CONCURRENCY * threads + 4 * settings.WORKER_CONCURRENCY + 1
    if wanted > most:
        remedy = f"One web, four workers and beat with these settings open up to {wanted}. {_MORE}"
        yield Finding(_SUBJECT, Tone.WARN, f"max_connections is {most}", remedy)


def _is_pooled() -> bool:
    """Whether PgBouncer is used. It gives its client another number than PostgreSQL's process
    id."""
    ((pid,),) = query("SELECT pg_backend_pid()")
    return bool(pid != connection.connection.info.backend_pid)


def _replication_slots() -> Iterator[Finding]:
    """Finds unused replication slots. They keep WAL until the disk is full, or up to
    max_slot_wal_keep_size."""
    idle = query(
        "SELECT slot_name, pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn)::bigint AS kept"
        " FROM pg_replication_slots WHERE NOT active AND NOT pg_is_in_recovery()"
        " AND pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn) > %s ORDER BY kept DESC LIMIT 5",
        [MUCH_WAL],
    )
    for name, kept in idle:
        title = f"The replication slot {name} is not read and keeps {kept / 1024**3:.1f} GB of WAL"
        remedy = (
            "It fills PostgreSQL's disk, which ends the server. Start what reads it, or run SELECT "
            f"pg_drop_replication_slot('{name}')."
        )
        yield Finding(_SUBJECT, Tone.BAD, title, remedy)


def _row_age() -> Iterator[Finding]:
    ((age,),) = query(
        "SELECT age(datfrozenxid) FROM pg_database WHERE datname = current_database()"
    )
    if age > OLD_ROWS:
        remedy = (
            "At about two billion PostgreSQL refuses writes. Something keeps VACUUM from its work: "
            "end old transactions, prepared ones and replication slots, then run VACUUM."
        )
        title = f"Rows were not frozen for {grouped(age)} transactions"
        yield Finding(_SUBJECT, Tone.BAD, title, remedy)


def _old_transactions() -> Iterator[Finding]:
    oldest = query(
        "SELECT pid, coalesce(nullif(application_name, ''), usename, ''),"
        " extract(epoch FROM clock_timestamp() - xact_start)::float8 FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        " AND backend_type = 'client backend'"  # autovacuum does not count
        " AND xact_start < clock_timestamp() - %s ORDER BY xact_start LIMIT 1",
        [OLD_TRANSACTION],
    )
    for pid, name, age in oldest:
        title = f"A transaction of {name} (pid {pid}) has been open for {duration(age)}"
        remedy = (
            "Dead rows cannot be removed while it is open, so tables grow. Find its program, or "
            f"run SELECT pg_terminate_backend({pid})."
        )
        yield Finding(_SUBJECT, Tone.WARN, title, remedy)


def _dead_rows() -> Iterator[Finding]:
    tables = query(
        "SELECT relname, n_live_tup, n_dead_tup FROM pg_stat_user_tables"
        " WHERE n_dead_tup > %s AND n_dead_tup > n_live_tup / 2 ORDER BY n_dead_tup DESC LIMIT 5",
        [_MANY_DEAD],
    )
    for name, live, dead in tables:
        title = f"{name} has {grouped(dead)} dead rows beside {grouped(live)} live ones"
        remedy = (
            "Autovacuum does not keep up. Look for old transactions, lower the table's "
            f"autovacuum_vacuum_scale_factor, and run VACUUM {name}."
        )
        yield Finding(_SUBJECT, Tone.WARN, title, remedy)


_SETTINGS: Final = (_version, _read_only, _disk, _encoding, _harmful_settings, _limits, _isolation)
_STATISTICS: Final = (
    locks.blocked,
    locks.locked,
    locks.standby_missing,
    _connections,
    _old_transactions,
    _dead_rows,
    _replication_slots,
    _row_age,
)
