"""Statements of the doctor: in transactions that change nothing, and limited in time."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from django.db import connection, transaction

_SECONDS: Final = 3


@contextmanager
def limited() -> Iterator[None]:
    """A transaction that is rolled back, because a commit could wait for a standby. Its statements
    are limited, so that a wait for a lock does not delay the report."""
    with transaction.atomic():
        query(f"SET LOCAL statement_timeout = '{_SECONDS}s'")
        yield
        transaction.set_rollback(True)


def query(statement: str, parameters: list[Any] | None = None) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        return cursor.fetchall() if cursor.description else []


def first_line(error: Exception) -> str:
    return str(error).strip().split("\n", 1)[0].rstrip(".") + "."
