"""Statements of the doctor: in transactions that change nothing, and limited in time."""

import os
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from threading import Event, Timer
from typing import Any, Final

import psycopg
from django.db import DEFAULT_DB_ALIAS, Error, connection, connections, transaction

_SECONDS: Final = 3
_LOCK_SECONDS: Final = 0.5  # several parts may read the same locked table
SILENCE_SECONDS: Final = 5.0  # longer than any statement that PostgreSQL itself limits


class Silent(Exception):
    """PostgreSQL accepted a connection and stopped responding."""


@contextmanager
def limited() -> Iterator[None]:
    """A transaction that is rolled back, because a commit could wait for a standby. Its statements
    are limited, so that a wait for a lock does not delay the report. Raises Silent."""
    with ExitStack() as stack, connection.execute_wrapper(_watched), transaction.atomic():
        query(
            "SELECT set_config('statement_timeout', %s, true),"
            " set_config('lock_timeout', %s, true)",
            [f"{_SECONDS}s", f"{_LOCK_SECONDS}s"],
        )
        try:
            yield
        finally:
            stack.enter_context(watched())  # the end of the transaction is no statement
        transaction.set_rollback(True)


def _watched(execute: Callable[..., Any], *arguments: Any) -> Any:
    with watched():
        return execute(*arguments)


@contextmanager
def watched() -> Iterator[None]:
    """Raises Silent if PostgreSQL keeps the block waiting for SILENCE_SECONDS. A server enforces
    its own limits only while it runs, and the kernel acknowledges in its place."""
    database = connections[DEFAULT_DB_ALIAS]  # `connection` is another one in each thread
    is_silent = Event()

    def cut() -> None:
        """Shuts the socket down, so that whoever waits for it gets an error. Closing it would wake
        nobody, and a request to cancel needs a response as well."""
        if made := database.connection:  # libpq limits the time to connect
            is_silent.set()
            with suppress(OSError, psycopg.Error), socket.socket(fileno=os.dup(made.fileno())) as s:
                s.shutdown(socket.SHUT_RDWR)

    timer = Timer(SILENCE_SECONDS, cut)
    timer.daemon = True
    timer.start()
    try:
        yield
    except Error:
        if not is_silent.is_set():
            raise
    finally:
        timer.cancel()
    if is_silent.is_set():
        connection.close()
        raise Silent


def query(statement: str, parameters: list[Any] | None = None) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        return cursor.fetchall() if cursor.description else []


def first_line(error: Exception) -> str:
    return str(error).strip().split("\n", 1)[0].rstrip(".") + "."
