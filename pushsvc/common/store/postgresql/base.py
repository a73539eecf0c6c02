"""Django's PostgreSQL, which asks a kept connection less often whether it still works, and takes a
server that accepts no writes for one that is away."""

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
    """A standby, or a server that was made read-only because its disk is full, may accept writes
    later, or another one may. To Django its refusal would be a fault of ours (InternalError), and a
    worker would look for the recipient whose row is refused."""

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
    """Django sends a statement of its own before the first one of every request. This one does so
    only if the last such statement is a second old, or if something arrived meanwhile: a server
    that ends a connection says so, or at least closes it."""

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
