"""PostgreSQL: version, settings, schema, clock, old transactions and dead rows."""

import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any, Final

from django.conf import settings
from django.db import Error, connection, transaction
from django.db.migrations.executor import MigrationExecutor

from pushsvc.common.console.figures import duration, grouped
from pushsvc.doctor.finding import Finding, Tone

UNREACHABLE: Final = "PostgreSQL cannot be reached"
OLD_TRANSACTION: Final = timedelta(minutes=5)
SLOW_CLOCK_SECONDS: Final = 2.0
WRONG_CLOCK_SECONDS: Final = 60.0  # Google and Apple refuse tokens of such a clock
_SUBJECT: Final = "database"
_VERSIONS: Final = range(15, 19)
_STATEMENT_SECONDS: Final = 3
_THREADS: Final = 18  # of a web process; each may hold a connection
_MANY_DEAD: Final = 100_000
_HARMFUL: Final = {
    "fsync": "A crash of the machine can destroy the database.",
    "full_page_writes": "A crash of the machine can destroy the database.",
    "synchronous_commit": "A crash of the server can lose outcomes, whose messages are sent twice.",
    "autovacuum": "Tables grow without limit, and queries become slow.",
    "track_counts": "Autovacuum does not run without it: tables grow without limit.",
}


def examine() -> Iterator[Finding]:
    """A single finding, UNREACHABLE, if there is no database."""
    try:
        connection.ensure_connection()
    except Error as error:
        remedy = f"{first_line(error)} Check DATABASE_URL, and that the server is running."
        yield Finding(_SUBJECT, Tone.BAD, UNREACHABLE, remedy)
        return
    for part in (_version, _harmful_settings, _migrations, _indexes, _clock, *_STATISTICS):
        yield from _examined(part)


def _examined(part: Callable[[], Iterator[Finding]]) -> list[Finding]:
    """In a transaction of its own, so that a statement that fails ends only its own part."""
    try:
        with transaction.atomic():
            _query(f"SET LOCAL statement_timeout = '{_STATEMENT_SECONDS}s'")
            return list(part())
    except Error as error:
        title = f"{part.__name__.strip('_').replace('_', ' ').capitalize()} could not be read"
        return [Finding(_SUBJECT, Tone.WARN, title, first_line(error))]


def _version() -> Iterator[Finding]:
    ((number, text),) = _query(
        "SELECT current_setting('server_version_num')::int / 10000,"
        " current_setting('server_version')"
    )
    if number in _VERSIONS:
        yield Finding(_SUBJECT, Tone.OK, f"PostgreSQL {text}")
    else:
        remedy = f"Use PostgreSQL {_VERSIONS[0]} to {_VERSIONS[-1]}."
        yield Finding(_SUBJECT, Tone.BAD, f"PostgreSQL {text} is not supported", remedy)


def _harmful_settings() -> Iterator[Finding]:
    off = _query(
        "SELECT name FROM pg_settings WHERE setting = 'off' AND name = ANY(%s) ORDER BY name",
        [list(_HARMFUL)],
    )
    for (name,) in off:
        remedy = f"{_HARMFUL[name]} Run ALTER SYSTEM SET {name} = on, and reload."
        yield Finding(_SUBJECT, Tone.BAD, f"The setting {name} is off", remedy)


def _migrations() -> Iterator[Finding]:
    executor = MigrationExecutor(connection)
    missing = executor.migration_plan(executor.loader.graph.leaf_nodes())
    if missing:
        first = missing[0][0]
        remedy = f"The first is {first}. Run manage.py migrate --no-input."
        yield Finding(_SUBJECT, Tone.BAD, f"{len(missing)} migrations are not applied", remedy)


def _indexes() -> Iterator[Finding]:
    invalid = _query(
        "SELECT indexrelid::regclass::text FROM pg_index WHERE NOT indisvalid"
        " AND indexrelid NOT IN (SELECT index_relid FROM pg_stat_progress_create_index)"
    )
    for (name,) in invalid:
        remedy = (
            "Its build was cut off. Writes update it and no query uses it. Run DROP INDEX "
            f"CONCURRENTLY {name}, then manage.py migrate --no-input."
        )
        yield Finding(_SUBJECT, Tone.BAD, f"The index {name} is invalid", remedy)


def _clock() -> Iterator[Finding]:
    """The database's clock decides when notifications start; this machine's is in tokens."""
    before = time.time()
    ((theirs,),) = _query("SELECT extract(epoch FROM clock_timestamp())::float8")
    difference = float(theirs) - (before + time.time()) / 2
    if abs(difference) > SLOW_CLOCK_SECONDS:
        tone = Tone.BAD if abs(difference) > WRONG_CLOCK_SECONDS else Tone.WARN
        title = f"The clocks of this machine and the database differ by {abs(difference):.0f} s"
        yield Finding(_SUBJECT, tone, title, "Run NTP on both: Google and Apple check the time.")


def _connections() -> Iterator[Finding]:
    """Of what this process's settings ask for; other machines come on top. A pooler opens fewer to
    PostgreSQL than are opened to it."""
    if _is_pooled():
        return
    ((most,),) = _query("SELECT current_setting('max_connections')::int")
    wanted = settings.WEB_CONCURRENCY * _THREADS + 4 * settings.WORKER_CONCURRENCY + 1
    if wanted > most:
        remedy = (
            f"One web, four workers and beat with these settings open up to {wanted}. Raise "
            "max_connections, or put PgBouncer in front."
        )
        yield Finding(_SUBJECT, Tone.WARN, f"max_connections is {most}", remedy)


def _is_pooled() -> bool:
    """PgBouncer gives its client another number than that of PostgreSQL's process."""
    ((pid,),) = _query("SELECT pg_backend_pid()")
    return bool(pid != connection.connection.info.backend_pid)


def _old_transactions() -> Iterator[Finding]:
    oldest = _query(
        "SELECT pid, coalesce(nullif(application_name, ''), usename, ''),"
        " extract(epoch FROM clock_timestamp() - xact_start)::float8 FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        " AND backend_type = 'client backend'"  # autovacuum holds nothing back
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
    tables = _query(
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


_STATISTICS: Final = (_connections, _old_transactions, _dead_rows)


def _query(statement: str, parameters: list[Any] | None = None) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        return cursor.fetchall() if cursor.description else []


def first_line(error: Exception) -> str:
    return str(error).strip().split("\n", 1)[0].rstrip(".") + "."
