"""Django's PostgreSQL, which asks a kept connection less often whether it still works."""

import select
import time
from typing import Final

from django.db.backends.postgresql import base
from typing_extensions import override

_TRUSTED_SECONDS: Final = 1.0  # after the server answered


class DatabaseWrapper(base.DatabaseWrapper):
    """Django sends a statement of its own before the first one of every request. This one does so
    only if the last such statement is a second old, or if something arrived meanwhile: a server
    that ends a connection says so, or at least closes it."""

    _trusted_until = 0.0  # on the monotonic clock

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
