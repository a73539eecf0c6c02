"""SQL statements that the ORM cannot express, the database's clock, and transactions that end.

Two of PostgreSQL's clocks are used. `statement_timestamp()`, which is Django's `Now()`, is the
rule. It is the same for all rows of a statement, so rows that are written together agree, and a
comparison with the clock does not change while the statement runs. `clock_timestamp()` is for times
that must not be earlier than a wait for a lock: the begin and the end of a lease (otherwise a
statement that waited would give a lease that is partly over) and the time of a registration, which
decides whether a response is older. `now()` is the begin of the transaction and is not used,
because a transaction may wait before it writes.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import contextmanager
from datetime import datetime
from functools import cache, lru_cache
from typing import Any, NamedTuple, TypeVar

import psycopg
from django.conf import settings
from django.db import (
    DatabaseError,
    IntegrityError,
    InterfaceError,
    OperationalError,
    connection,
    transaction,
)
from django.db.models import Model
from psycopg.errors import (
    ConfigurationLimitExceeded,
    LockNotAvailable,
    QueryCanceled,
    UniqueViolation,
)
from psycopg.sql import Literal

T = TypeVar("T")
Row = TypeVar("Row", bound=Model)


def rows(
    statement: str, parameters: Mapping[str, Any], *, is_prepared: bool = False
) -> list[tuple[Any, ...]]:
    """`is_prepared`: the session keeps the statement and its plan, which fits any parameters and
    arrays of few values."""
    with _cursor(is_prepared=is_prepared) as cursor:
        cursor.execute(statement, parameters)
        return list(cursor.fetchall())


def are_few(items: Sized) -> bool:
    """Whether a plan that was made for about ten values fits these."""
    return len(items) <= _FEW


def with_constants(statement: str, constants: Mapping[str, Any]) -> str:
    """The statement with these parameters as texts. A plan that is made for any parameters uses a
    partial index only if the statement contains the index's values."""

    def text(found: re.Match[str]) -> str:
        value = constants.get(found[1])
        return found[0] if value is None else Literal(value).as_string(None)

    return _PARAMETER.sub(text, statement)


def _cursor(*, is_prepared: bool) -> Any:
    return connection.prepared_cursor() if is_prepared else connection.cursor()  # type: ignore[attr-defined]


def rows_of_last(statements: str, parameters: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """Runs statements that are separated by semicolons, in one round trip and one transaction.
    Returns the rows of the last statement. Each statement sees what was committed before it began.

    The client must insert the parameters, as Django's connections do, because PostgreSQL accepts
    only one statement with server-side parameters.
    """
    with connection.cursor() as cursor:
        cursor.execute(statements, parameters)
        while cursor.nextset():
            pass
        return list(cursor.fetchall())


def array(texts: Iterable[str]) -> str:
    """A parameter of an array type from texts that need no quotes: numbers, and ids as `hex`.
    Faster than psycopg's conversion of a list."""
    return f"{{{','.join(texts)}}}"


def insert(model: type[Row], values: Mapping[str, Any], *, if_any: str = "") -> Row | None:
    """Inserts a row with these values of columns, and returns it. Columns that are not in `values`
    have the database's default, or null. As `create`, with a quarter of its processor time and
    without signals.

    `if_any`: a query that finds at most one row, with the row's columns as parameters. If it finds
    none, nothing is inserted, and the result is None."""
    columns = _columns(model)
    stored = columns.usual.copy()
    parameters: dict[str, Any] = {}
    for name, value in values.items():
        position, field = columns.fields[name]
        if value != stored[position]:  # otherwise the database stores the same value by default
            parameters[name] = field.get_db_prep_save(value, connection)
        stored[position] = value
    added = tuple(name for name in columns.added if name not in values)
    statement = _insertion(model._meta.db_table, tuple(parameters), added, if_any)
    inserted = rows(statement, parameters)
    if not inserted:
        return None
    for name, value in zip(added, inserted[0], strict=True):
        stored[columns.fields[name][0]] = value
    return model.from_db(connection.alias, list(columns.fields), stored)


def read_row(model: type[Row], fields: Sequence[Any], values: Sequence[Any]) -> Row:
    """The row of these fields of the model, in its order, from a statement's values. Other fields
    are read when they are used."""
    found = [
        each.from_db_value(value, None, connection) if hasattr(each, "from_db_value") else value
        for each, value in zip(fields, values, strict=True)
    ]
    return model.from_db(connection.alias, [each.attname for each in fields], found)


class _Columns(NamedTuple):
    """`fields`: each column's position and field. `usual`: the values that the database stores by
    default. `added`: the columns whose default the database computes."""

    fields: Mapping[str, tuple[int, Any]]
    usual: list[Any]
    added: Sequence[str]


@cache
def _columns(model: type[Model]) -> _Columns:
    fields = model._meta.concrete_fields
    usual = [each.db_default if each.has_db_default() else None for each in fields]
    added = [each.attname for each, value in zip(fields, usual, strict=True) if _is_made(value)]
    positions = {each.attname: (index, each) for index, each in enumerate(fields)}
    return _Columns(positions, usual, added)


def _is_made(default: Any) -> bool:
    return hasattr(default, "resolve_expression")


@lru_cache(maxsize=256)
def _insertion(table: str, given: Sequence[str], added: Sequence[str], if_any: str) -> str:
    values = ", ".join(f"%({name})s" for name in given)
    # Names and statements of our own.
    source = f"SELECT {values} FROM ({if_any}) AS it" if if_any else f"VALUES ({values})"  # noqa: S608
    return f"""
        INSERT INTO {table} ({", ".join(given)}) {source}
        RETURNING {", ".join(added)}"""


def execute(statement: str, parameters: Mapping[str, Any], *, is_prepared: bool = False) -> int:
    """Runs the statement. Returns how many rows it changed. `is_prepared`: as of `rows`."""
    with _cursor(is_prepared=is_prepared) as cursor:
        cursor.execute(statement, parameters)
        return int(cursor.rowcount)


def now() -> datetime:
    """The database's clock, at the start of this statement."""
    moment: datetime = rows("SELECT statement_timestamp()", {})[0][0]
    return moment


def try_lock(name: str) -> bool:
    """Takes the advisory lock `name` until the transaction ends. Returns False, without waiting, if
    another transaction has it."""
    return bool(rows(_TRY_LOCK, {"name": name}, is_prepared=True)[0][0])


def is_cancelled(error: BaseException) -> bool:
    """Whether PostgreSQL cancelled the statement because of a limit: `statement_timeout`,
    `lock_timeout` or `temp_file_limit`. Others may succeed."""
    return isinstance(error.__cause__, _CANCELLED)


def is_about_tables(error: BaseException) -> bool:
    """Whether PostgreSQL refused the statement whatever the rows: the role lacks a right, or a
    table or column is missing (class 42 of SQLSTATE)."""
    cause = error.__cause__
    return isinstance(cause, psycopg.Error) and (cause.sqlstate or "").startswith("42")


@contextmanager
def unless_taken(error: type[Exception]) -> Iterator[None]:
    """A transaction that raises `error` if a unique constraint refuses a row. For transactions in
    which only one constraint can."""
    try:
        with transaction.atomic():
            yield
    except IntegrityError as refused:
        if not isinstance(refused.__cause__, UniqueViolation):
            raise
        raise error from refused


@contextmanager
def brief_transaction(*, is_repeatable: bool = False) -> Iterator[None]:
    """A transaction that the server ends if this process is silent in it for too long. So a paused
    process, or one whose machine is lost, does not keep its locks.

    Use it for every transaction that locks rows that workers share. Raises OperationalError if the
    server ended the transaction, as for any lost connection.

    `is_repeatable`: the commit does not wait for the disk. A crash of the server can undo it, with
    all that was committed later, so only if the same work is then done again and nothing outside
    of the database depends on it.
    """
    limit = {"limit": f"{settings.SILENT_TRANSACTION_SECONDS}s"}
    with transaction.atomic():
        rows(_BEGIN_REPEATABLE if is_repeatable else _BEGIN, limit)
        yield


def write_apart(
    items: Sequence[T], write: Callable[[Sequence[T]], None], *, most: int | None = None
) -> list[tuple[T, Exception]]:
    """Writes all items except those that the database refuses, which it finds by bisection.
    Returns the refused items with their errors. After `most` refusals the cause is not a single
    item, so all remaining items count as refused, too.

    `write` must be one transaction and safe to repeat. Raises what `write` raises while the
    database is away.
    """
    refused: list[tuple[T, Exception]] = []
    parts = [items]
    while parts:
        part = parts.pop()
        try:
            write(part)
        except (OperationalError, InterfaceError):
            raise  # the database is away and has refused nothing
        except (DatabaseError, ValueError) as error:
            if not part:
                raise
            is_over = most is not None and len(refused) >= most
            if len(part) <= 1 or is_over:
                refused += [(item, error) for item in part]
            else:
                half = len(part) // 2
                parts += [part[half:], part[:half]]
    return refused


# For this transaction only: PgBouncer may give the connection to another process afterwards.
_BEGIN = "SELECT set_config('idle_in_transaction_session_timeout', %(limit)s, true)"
WAITS_FOR_NO_DISK = "set_config('synchronous_commit', 'off', true)"  # as `is_repeatable`
_BEGIN_REPEATABLE = f"{_BEGIN}, {WAITS_FOR_NO_DISK}"
_CANCELLED = (QueryCanceled, LockNotAvailable, ConfigurationLimitExceeded)
_FEW = 10
_PARAMETER = re.compile(r"%\((\w+)\)s")

_TRY_LOCK = "SELECT pg_try_advisory_xact_lock(hashtextextended(%(name)s, 0))"
