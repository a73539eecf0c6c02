"""Empties the database after tests that commit. Most of them write few rows, to few tables."""

from django.db import connection, transaction

# What migrations write there never changes.
_KEPT_TABLES = {"django_content_type", "auth_permission", "django_migrations"}
# A trigger refuses to delete from it.
_TRUNCATED_TABLES = {"auditlog_logentry"}
_MANY_BYTES = 1_000_000


def empty_tables():
    """Deletes the rows of the tables that were written to. Django truncates every table, which
    takes half a second, and creates every content type and permission again, which running
    processes know by their ids."""
    with transaction.atomic(), connection.cursor() as cursor:
        written = _written_tables(cursor)
        truncated = {table for table, size in written.items() if size > _MANY_BYTES}
        truncated |= written.keys() & _TRUNCATED_TABLES
        if truncated:
            cursor.execute(f"TRUNCATE {', '.join(truncated)} CASCADE")
        for table in written.keys() - truncated:  # foreign keys are checked at the commit
            cursor.execute(f"DELETE FROM {table}")  # noqa: S608 (a name of the database's own)


def _written_tables(cursor):
    """Tables with a row in them, and their size in bytes; also those of deleted rows, until the
    next vacuum."""
    tables = set(connection.introspection.table_names(cursor)) - _KEPT_TABLES
    cursor.execute(" UNION ALL ".join(_IS_WRITTEN.format(table) for table in sorted(tables)))
    return dict(cursor.fetchall())


_IS_WRITTEN = "SELECT '{0}', pg_relation_size('{0}') WHERE EXISTS (SELECT FROM {0})"
