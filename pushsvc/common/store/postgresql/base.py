"""Django's backend for PostgreSQL, with fewer checks of kept connections and a faster loader of
times. It treats a server that accepts no writes, or ended the transaction, as one that is away."""

import select
import time
from datetime import UTC
from types import TracebackType
from typing import Any, Final, TypeGuard

import psycopg
from django.db import OperationalError
from django.db.backends.postgresql import base
from django.db.backends.postgresql.operations import DatabaseOperations
from django.db.utils import DatabaseErrorWrapper
from django.utils.functional import cached_property
from psycopg.adapt import Buffer, Loader
from psycopg.errors import (
    FeatureNotSupported,
    IdleInTransactionSessionTimeout,
    ReadOnlySqlTransaction,
    TransactionTimeout,
)
from psycopg.pq import Format
from typing_extensions import override

_TRUSTED_SECONDS: Final = 1.0  # after the server responded
# A plan that was made while a table was small may read all of it when it has grown.
_PLANNED_SECONDS: Final = 10.0
_TIME: Final = "timestamptz"
_PreparedCursor: Final[Any] = base.ServerBindingCursor
_LOADER: Final[Any] = psycopg.adapters.get_loader(psycopg.adapters.types[_TIME].oid, Format.TEXT)


# Whether the connection is direct: a pooler tells its clients invented ids of processes. If so, the
# session makes one plan of a prepared statement. PostgreSQL would compare costs of plans and make a
# new one for most calls of ours, which takes longer than to run it.
_PREPARE: Final = """
SELECT CASE WHEN pg_backend_pid() = %(pid)s
  THEN set_config('plan_cache_mode', 'force_generic_plan', false) IS NOT NULL ELSE false END
"""


# The formats that psycopg reads. A role or a database may have others.
_FORMATS: Final = (("DateStyle", "ISO"), ("IntervalStyle", "postgres"))
# A server accepts no writes (a standby, or one with a full disk), or ended a transaction that was
# silent or took too long.
_OF_CONNECTION: Final = (
    ReadOnlySqlTransaction,
    IdleInTransactionSessionTimeout,
    TransactionTimeout,
)


class UtcLoader(Loader):
    """psycopg's loader in C. Django's loader derives from the one in Python, which takes six times
    as long. Sessions have the time zone UTC, so the results are the same."""

    timezone = UTC  # Django reads this, and replaces a loader of another time zone

    def __init__(self, oid: int, context: Any = None) -> None:
        super().__init__(oid, context)
        self._loader = _LOADER(oid, context)

    @override
    def load(self, data: Buffer) -> Any:
        return self._loader.load(data)


class _Errors(DatabaseErrorWrapper):
    """Maps an error that only another connection, or this server later, can avoid to an error of
    the connection. Django raises another, after which a worker would search for a recipient whose
    row is refused."""

    wrapper: Any

    @override
    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if isinstance(exc_value, _OF_CONNECTION) or _is_of_old_plan(exc_value):
            # Before the next request or task. A session may refuse writes as long as it lives,
            # although its role may write again, or another server is the primary now.
            self.wrapper.close_at = time.monotonic()
            raise OperationalError(*exc_value.args).with_traceback(traceback) from exc_value
        super().__exit__(exc_type, exc_value, traceback)


def _is_of_old_plan(error: BaseException | None) -> TypeGuard[FeatureNotSupported]:
    """Whether a migration has changed the type of a column that a prepared statement returns. By
    the function of PostgreSQL that reports it, because the text depends on lc_messages."""
    return (
        isinstance(error, FeatureNotSupported)
        and error.diag.source_function == "RevalidateCachedQuery"
    )


class _Operations(DatabaseOperations):
    @override
    def last_executed_query(self, cursor: Any, sql: Any, params: Any) -> Any:
        """With the parameters as texts, also of a statement that PostgreSQL got without them."""
        if isinstance(cursor, _PreparedCursor):
            return self.compose_sql(sql, params)
        return super().last_executed_query(cursor, sql, params)


class DatabaseWrapper(base.DatabaseWrapper):
    """Checks a connection only if the last check is a second old, or if data arrived meanwhile,
    because a server that ends a connection sends a message or closes it. Django checks it with a
    statement before the first statement of every request."""

    ops_class = _Operations
    _trusted_until = 0.0  # on the monotonic clock
    _is_direct: bool | None = None  # of this connection; None: not known yet
    _planned_until = 0.0  # on the monotonic clock

    @cached_property
    @override
    def wrap_database_errors(self) -> _Errors:
        return _Errors(self)

    @override
    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        connection = super().get_new_connection(conn_params)
        self._is_direct = None
        connection.prepare_threshold = 1  # of cursors with server-side parameters
        connection.adapters.register_loader(_TIME, UtcLoader)
        return connection

    @override
    def init_connection_state(self) -> None:
        """Also sets the formats, if the server reports others."""
        super().init_connection_state()
        for name, value in _FORMATS:
            if self.connection.info.parameter_status(name).partition(",")[0] != value:
                self.connection.execute(f"SET {name} = {value}")

    def prepared_cursor(self) -> Any:
        """A cursor whose statements PostgreSQL parses and plans once for the connection. Through a
        pooler, which may give each transaction another session, it is a usual cursor."""
        self.close_if_health_check_failed()
        self.ensure_connection()
        if self._is_direct is None:
            with self.wrap_database_errors:
                pid = self.connection.info.backend_pid
                ((self._is_direct,),) = self.connection.execute(_PREPARE, {"pid": pid}).fetchall()
        if not self._is_direct:
            return self.cursor()
        if time.monotonic() >= self._planned_until:
            self._planned_until = time.monotonic() + _PLANNED_SECONDS
            with self.wrap_database_errors:
                self.connection.execute("DISCARD PLANS")
        with self.wrap_database_errors:
            cursor = _PreparedCursor(self.connection)
        return self.make_debug_cursor(cursor) if self.queries_logged else self.make_cursor(cursor)

    @override
    def is_usable(self) -> bool:
        usable = super().is_usable()
        if usable:
            self._trusted_until = time.monotonic() + _TRUSTED_SECONDS
        return usable

    @override
    def close_if_health_check_failed(self) -> None:
        if time.monotonic() < self._trusted_until and self._is_silent():
            self.health_check_done = True
        super().close_if_health_check_failed()

    def _is_silent(self) -> bool:
        if self.connection is None or self.connection.closed:
            return False
        arrived = select.poll()
        arrived.register(self.connection.fileno(), select.POLLIN)
        return not arrived.poll(0)
