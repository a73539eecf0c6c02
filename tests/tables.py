"""Empties the database after tests that commit. Most of them write few rows, to few tables."""

from django.db import connection, transaction

# What migrations write there never changes.
_KEPT_TABLES = {"django_content_type", "auth_permission", "django_migrations"}
_MANY_BYTES = 1_000_000


def empty_tables():
    """Deletes all rows. Django truncates every table, which takes half a second, and creates every
    content type and permission again, which running processes know by their ids.

    No trigger runs, so foreign keys of deleted rows are not looked for, and the audit log lets its
    rows go. Only a superuser of PostgreSQL may ask for that.
    """
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        cursor.execute(_USED_TABLES, [list(_KEPT_TABLES)])
        used = cursor.fetchall()
        if large := [table for table, size in used if size > _MANY_BYTES]:
            cursor.execute(f"TRUNCATE {', '.join(large)} CASCADE")
        if small := [table for table, size in used if size <= _MANY_BYTES]:
            cursor.execute("; ".join(map(_DELETION.format, small)))


_DELETION = "DELETE FROM {}"
# Also those whose rows are deleted, until the next vacuum.
_USED_TABLES = """
SELECT relname, pg_relation_size(oid) FROM pg_class
WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace
  AND pg_relation_size(oid) > 0 AND relname <> ALL(%s)
ORDER BY relname
"""
