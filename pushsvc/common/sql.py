"""Set-based statements that the ORM cannot say: several rows, in one round trip."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import InternalError, OperationalError, connection, transaction
from psycopg.errors import IdleInTransactionSessionTimeout


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


# For this transaction only: PgBouncer's next one may be another process's.
_LIMIT_SILENCE = "SELECT set_config('idle_in_transaction_session_timeout', %(limit)s, true)"
