"""Django's backend for PostgreSQL, with fewer checks of kept connections. It treats a server that
accepts no writes as one that is away."""

import select
import time
from types import TracebackType
from typing import Final

from django.db import OperationalError
from django.db.backends.postgresql import base
from django.db.utils import DatabaseErrorWrapper
from django.utils.functional import cached_property
from psycopg.errors import ReadOnlySqlTransaction
from typing_extensions import override

_TRUSTED_SECONDS: Final = 1.0  # after the server answered


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
