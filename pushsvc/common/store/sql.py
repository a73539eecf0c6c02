"""Set-based statements that the ORM cannot say: several rows, in one round trip."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any, TypeVar

from django.conf import settings
from django.db import (
    DatabaseError,
    InterfaceError,
    InternalError,
    OperationalError,
    connection,
    transaction,
)
from psycopg.errors import IdleInTransactionSessionTimeout

T = TypeVar("T")


def rows(statement: str, parameters: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        return list(cursor.fetchall())


def execute(statement: str, parameters: Mapping[str, Any]) -> int:
    """The number of rows that the statement changed."""
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        return int(cursor.rowcount)


def now() -> datetime:
    """The database's clock, at the start of this statement."""
    moment: datetime = rows("SELECT statement_timestamp()", {})[0][0]
    return moment


@contextmanager
def brief_transaction() -> Iterator[None]:
    """A transaction that the server ends when this process falls silent in it: one that is paused,
    or whose machine is gone, must not hold its locks until somebody looks.

    To be used for what locks rows that workers share. Raises OperationalError if it came to that,
    as for any other connection that was lost.
    """
    try:
        with transaction.atomic():
            execute(_LIMIT_SILENCE, {"limit": f"{settings.SILENT_TRANSACTION_SECONDS}s"})
            yield
    except InternalError as error:
        if isinstance(error.__cause__, IdleInTransactionSessionTimeout):
            raise OperationalError("silent for too long in a transaction") from error
        raise


def write_apart(
    items: Sequence[T], write: Callable[[Sequence[T]], None], *, most: int | None = None
) -> list[tuple[T, Exception]]:
    """Writes all but the items that the database refuses each by itself, found by halves; returns
    these with what it said. After `most` of them it is not about items: the rest is refused, too.

    `write` is one transaction and safe to repeat. Raises what it raises while the database is away.
    """
    refused: list[tuple[T, Exception]] = []
    parts = [items]
    while parts:
        part = parts.pop()
        try:
            write(part)
        except (OperationalError, InterfaceError):
            raise  # it refuses nothing
        except (DatabaseError, ValueError) as error:
            is_over = most is not None and len(refused) >= most
            if len(part) <= 1 or is_over:
                refused += [(item, error) for item in part]
            else:
                half = len(part) // 2
                parts += [part[half:], part[:half]]
    return refused


# For this transaction only: PgBouncer's next one may be another process's.
_LIMIT_SILENCE = "SELECT set_config('idle_in_transaction_session_timeout', %(limit)s, true)"
