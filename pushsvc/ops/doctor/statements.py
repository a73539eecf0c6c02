"""Statements of the doctor: in transactions that change nothing, and limited in time."""

import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

import psycopg
from django.db import DEFAULT_DB_ALIAS, Error, connection, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from typing_extensions import override

_SECONDS: Final = 3
_LOCK_SECONDS: Final = 0.5  # many parts may read the same locked table
_LOOK_SECONDS: Final = 0.2
SILENCE_SECONDS: Final = 5.0  # longer than any statement that PostgreSQL itself limits


class Silent(Exception):
    """PostgreSQL accepted a connection and stopped answering."""


@contextmanager
def limited() -> Iterator[None]:
    """A transaction that is rolled back, because a commit could wait for a standby. Its statements
    are limited, so that a wait for a lock does not delay the report. Raises Silent."""
    with watched() as watch, transaction.atomic():
        query(
            "SELECT set_config('statement_timeout', %s, true),"
            " set_config('lock_timeout', %s, true)",
            [f"{_SECONDS}s", f"{_LOCK_SECONDS}s"],
        )
        try:
            yield
        finally:
            watch.expect()
        transaction.set_rollback(True)


@contextmanager
def watched() -> Iterator["_Watch"]:
    """Raises Silent, and closes the connection, when PostgreSQL keeps a statement waiting for
    SILENCE_SECONDS. The server keeps its own limits only while it runs, and the kernel acknowledges
    in its place."""
    watch = _Watch(connections[DEFAULT_DB_ALIAS])  # `connection` is another one in each thread
    try:
        with connection.execute_wrapper(watch):
            yield watch
    except Error:
        if not watch.has_cut:
            raise
    finally:
        watch.end()
    if watch.has_cut:
        connection.close()
        raise Silent


class _Watch(threading.Thread):
    """Waits for the begin and the end of the transaction, and for each statement; not while the
    doctor works. A wrapper of statements."""

    def __init__(self, database: BaseDatabaseWrapper) -> None:
        super().__init__(name="doctor-watch", daemon=True)
        self._database, self._ended = database, threading.Event()
        self._waits_since: float | None = None
        self.has_cut = False
        self.expect()
        self.start()

    def __call__(self, execute: Callable[..., Any], *arguments: Any) -> Any:
        self.expect()
        try:
            return execute(*arguments)
        except Error:
            if self.has_cut:
                self._database.close()  # or Django would connect again to end the transaction
            raise
        finally:
            self._waits_since = None

    def expect(self) -> None:
        """From now on the doctor waits for PostgreSQL."""
        self._waits_since = time.monotonic()

    @override
    def run(self) -> None:
        while not self._is_silent():
            if self._ended.wait(_LOOK_SECONDS):
                return
        if made := self._database.connection:  # libpq limits the time to connect
            self.has_cut = True
            _cut(made)

    def _is_silent(self) -> bool:
        since = self._waits_since
        return since is not None and time.monotonic() - since > SILENCE_SECONDS

    def end(self) -> None:
        self._ended.set()
        self.join()


def _cut(made: psycopg.Connection) -> None:
    """Shuts the socket down, so that who waits for it gets an error. Closing it would wake nobody,
    and a request to cancel needs an answer, too."""
    with suppress(OSError, psycopg.Error), socket.socket(fileno=os.dup(made.fileno())) as shared:
        shared.shutdown(socket.SHUT_RDWR)


def query(statement: str, parameters: list[Any] | None = None) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        return cursor.fetchall() if cursor.description else []


def first_line(error: Exception) -> str:
    return str(error).strip().split("\n", 1)[0].rstrip(".") + "."
