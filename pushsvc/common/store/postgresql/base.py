"""Django's backend for PostgreSQL, with fewer checks of kept connections and a faster loader of
times. It treats a server that accepts no writes as one that is away."""

import select
import time
from datetime import UTC
from types import TracebackType
from typing import Any, Final

import psycopg
from django.db import OperationalError
from django.db.backends.postgresql import base
from django.db.utils import DatabaseErrorWrapper
from django.utils.functional import cached_property
from psycopg.adapt import Buffer, Loader
from psycopg.errors import ReadOnlySqlTransaction
from psycopg.pq import Format
from typing_extensions import override

_TRUSTED_SECONDS: Final = 1.0  # after the server responded
_TIME: Final = "timestamptz"
_LOADER: Final[Any] = psycopg.adapters.get_loader(psycopg.adapters.types[_TIME].oid, Format.TEXT)


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
    """Maps the refusal of a read-only server (a standby, or one with a full disk) to an error of
    the connection, because it or another server may accept writes later. Django raises
    InternalError, after which a worker would search for a recipient whose row is refused."""

    @override
    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if isinstance(exc_value, ReadOnlySqlTransaction):
            raise OperationalError(*exc_value.args).with_traceback(traceback) from exc_value
        super().__exit__(exc_type, exc_value, traceback)


class DatabaseWrapper(base.DatabaseWrapper):
    """Checks a connection only if the last check is a second old, or if data arrived meanwhile,
    because a server that ends a connection sends a message or closes it. Django checks it with a
    statement before the first statement of every request."""

    _trusted_until = 0.0  # on the monotonic clock

    @cached_property
    @override
    def wrap_database_errors(self) -> _Errors:
        return _Errors(self)

    @override
    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        connection = super().get_new_connection(conn_params)
        connection.adapters.register_loader(_TIME, UtcLoader)
        return connection

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
