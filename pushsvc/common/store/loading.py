"""Loads times from the database. `pushsvc.apps` activates it."""

from datetime import UTC
from typing import Any, Final

import psycopg
from django.db.backends.signals import connection_created
from psycopg.adapt import Buffer, Loader
from psycopg.pq import Format
from typing_extensions import override

_TYPE: Final = "timestamptz"
_OID: Final = psycopg.adapters.types[_TYPE].oid
_LOADER: Final[Any] = psycopg.adapters.get_loader(_OID, Format.TEXT)


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


def _register(connection: Any, **_: Any) -> None:
    connection.connection.adapters.register_loader(_TYPE, UtcLoader)


connection_created.connect(_register)
