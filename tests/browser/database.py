"""A database that processes outside the tests use, too."""

from contextlib import contextmanager

from tests.tables import empty_tables


@contextmanager
def emptied_at_the_end(django_db_blocker):
    """Tests of the block may use the database and need not empty it."""
    with django_db_blocker.unblock():
        yield
        empty_tables()
