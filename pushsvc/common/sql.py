"""Set-based statements that the ORM cannot say: several rows, in one round trip."""

from collections.abc import Mapping
from typing import Any

from django.db import connection


def rows(statement: str, parameters: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        return list(cursor.fetchall())


def execute(statement: str, parameters: Mapping[str, Any]) -> int:
    """The number of rows that the statement changed."""
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        return int(cursor.rowcount)
