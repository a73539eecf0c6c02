"""Statements that only estimate: sizes, samples and previews of audiences.

Somebody waits for them, nothing depends on them, and their cost depends on a rule that a tenant
wrote. So each has a time limit, an account runs few at once in a process, and a statement ends when
the client of its request leaves.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from threading import Lock, Thread, local
from typing import Any, Final
from uuid import UUID

from django.conf import settings
from django.db import OperationalError, connection, transaction
from psycopg import Connection
from psycopg.errors import QueryCanceled

from pushsvc.common.errors import Busy
from pushsvc.common.store import sql

OF_ACCOUNT: Final = 2  # at once, in one process
_CANCEL_SECONDS: Final = 2.0


class TooSlow(Exception):
    """The statement was ended, because its time was over or because the client left."""


class ClientLeft(Busy):
    """Nobody waits for the response any more."""


class Client:
    """The client of a request. The event loop uses `leave`, and a thread everything else."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._running: Connection[Any] | None = None
        self._has_left = False

    def leave(self) -> None:
        """Ends the statement that is being run for the client, and refuses others. Does not
        wait."""
        with self._lock:
            self._has_left = True
            is_running = self._running is not None
        if is_running:
            Thread(target=self._end, daemon=True).start()

    def _end(self) -> None:
        # With the lock until the database has ended it, so that the connection's next statement,
        # which is another request's, is not ended instead.
        with self._lock:
            if self._running is not None:
                self._running.cancel_safe(timeout=_CANCEL_SECONDS)

    def check(self) -> None:
        """Raises ClientLeft."""
        if self._has_left:
            raise ClientLeft

    @contextmanager
    def waiting_for(self, running: Connection[Any]) -> Iterator[None]:
        """While the connection runs a statement for the client. Raises ClientLeft."""
        with self._lock:
            self.check()
            self._running = running
        try:
            yield
        finally:
            with self._lock:
                self._running = None

    @contextmanager
    def served(self) -> Iterator[None]:
        """The thread's work in this context is for the client. Raises ClientLeft."""
        self.check()
        _own.client = self
        try:
            yield
        finally:
            _own.client = None


_own = local()
_lock = Lock()
_running: Counter[UUID] = Counter()  # by account


@contextmanager
def share_of(account_id: UUID) -> Iterator[None]:
    """Counts the estimates of an account. Raises Busy if OF_ACCOUNT are already running. Does not
    wait, because a waiting thread would be missing for others."""
    with _lock:
        if _running[account_id] >= OF_ACCOUNT:
            raise Busy
        _running[account_id] += 1
    try:
        yield
    finally:
        with _lock:
            _running[account_id] -= 1
            if not _running[account_id]:
                del _running[account_id]


def rows(statement: str, parameters: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """The statement's rows, in one round trip. Raises TooSlow after ESTIMATE_SECONDS, or
    ClientLeft."""
    own = transaction.atomic() if connection.in_atomic_block else nullcontext()
    try:
        with own, _for_client():
            limit = {"estimate_limit": f"{settings.ESTIMATE_SECONDS}s"}
            found = sql.rows_of_last(f"{_LIMIT}; {statement}", {**parameters, **limit})
            if connection.in_atomic_block:
                sql.execute(_UNLIMITED, {})
            return found
    except OperationalError as error:
        if isinstance(error.__cause__, QueryCanceled):
            raise TooSlow from error
        raise


def _for_client() -> AbstractContextManager[None]:
    client: Client | None = getattr(_own, "client", None)
    if client is None:
        return nullcontext()
    connection.ensure_connection()
    return client.waiting_for(connection.connection)


# Until the end of the transaction, which outside of a transaction is the end of the round trip.
_LIMIT: Final = "SELECT set_config('statement_timeout', %(estimate_limit)s, true)"
_UNLIMITED: Final = "SET LOCAL statement_timeout TO DEFAULT"
