"""Empties the database after tests that commit. Most tests write few rows, to few tables."""

from django.db import connection, transaction

# Migrations write their rows, which never change.
_KEPT_TABLES = {"django_content_type", "auth_permission", "django_migrations"}
_MANY_BYTES = 1_000_000


def empty_tables():
    """Deletes all rows. Django's flush truncates every table, which takes half a second, and
    creates every content type and permission again, whose ids running processes have cached.

    No trigger runs, so foreign keys are not checked, and rows of the audit log can be deleted. This
    requires a superuser of PostgreSQL.
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
# Includes tables whose rows are deleted, until the next vacuum.
_USED_TABLES = """
SELECT relname, pg_relation_size(oid) FROM pg_class
WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace
  AND pg_relation_size(oid) > 0 AND relname <> ALL(%s)
ORDER BY relname
"""
