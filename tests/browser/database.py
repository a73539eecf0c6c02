"""A database that processes outside the tests use, too."""

from contextlib import contextmanager

from django.db import OperationalError
from psycopg.errors import DeadlockDetected

from tests.tables import empty_tables

_MOST_DEADLOCKS = 5


@contextmanager
def emptied_at_the_end(django_db_blocker):
    """Tests of the block may use the database and need not empty it."""
    with django_db_blocker.unblock():
        yield
        _empty()


def _empty():
    """A process may still answer a page that was closed. It locks rows in another order."""
    for _ in range(_MOST_DEADLOCKS):
        try:
            return empty_tables()
        except OperationalError as error:
            if not isinstance(error.__cause__, DeadlockDetected):
                raise
    return empty_tables()
