"""PostgreSQL's tables: the role's rights on them, migrations and indexes."""

from collections.abc import Iterator
from typing import Final

from django.apps import apps
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.recorder import MigrationRecorder

from pushsvc.doctor.finding import Finding, Tone
from pushsvc.doctor.statements import query

_SUBJECT: Final = "database"
_NAMED: Final = 3  # tables; the others are counted


def is_readable() -> bool:
    """Whether the role may read all tables. If not, the other parts would only repeat it."""
    return not any("SELECT" in rights for _, _, rights in _missing_rights())


def rights() -> Iterator[Finding]:
    """Asks for the rights on tables. The keys of tables are identity columns, which need no right
    on their sequences."""
    missing = _missing_rights()
    if not missing:
        return
    ((role, schema),) = query("SELECT current_user, current_schema()")
    number = len(missing)
    named = ", ".join(f"{table} ({rights})" for table, _, rights in missing[:_NAMED])
    remedy = (
        f"{named}{' and more' if number > _NAMED else ''}. Requests and batches that need them "
        f"fail. As {missing[0][1]}, who owns them, run GRANT SELECT, INSERT, UPDATE, DELETE ON ALL "
        f"TABLES IN SCHEMA {schema} TO {role}. Migrations also need ALTER TABLE … OWNER TO {role} "
        f"for each table. Or restore the dump again, with pg_restore --no-owner --role={role}."
    )
    title = f"The role {role} lacks rights on {number} {'table' if number == 1 else 'tables'}"
    yield Finding(_SUBJECT, Tone.BAD, title, remedy)


def _missing_rights() -> list[tuple[str, str, str]]:
    """Table, owner and the rights on it that the role lacks. Only migrations write to the list of
    migrations, and another role may run them."""
    record = MigrationRecorder.Migration._meta.db_table
    models = apps.get_models(include_auto_created=True)
    tables = [record, *(model._meta.db_table for model in models if model._meta.managed)]
    found = query(
        "SELECT relname, pg_get_userbyid(relowner), string_agg(wanted, ', ' ORDER BY place)"
        " FROM pg_class CROSS JOIN unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE'])"
        " WITH ORDINALITY AS each(wanted, place)"
        " WHERE relname = ANY(%s) AND relkind IN ('r', 'p') AND pg_table_is_visible(pg_class.oid)"
        " AND (relname <> %s OR wanted = 'SELECT')"
        " AND NOT has_table_privilege(pg_class.oid, wanted) GROUP BY 1, 2 ORDER BY 1",
        [tables, record],
    )
    return [(table, owner, lacking) for table, owner, lacking in found]


def migrations() -> Iterator[Finding]:
    executor = MigrationExecutor(connection)
    missing = executor.migration_plan(executor.loader.graph.leaf_nodes())
    if missing:
        first = missing[0][0]
        remedy = f"The first is {first}. Run manage.py migrate --no-input."
        yield Finding(_SUBJECT, Tone.BAD, f"{len(missing)} migrations are not applied", remedy)


def indexes() -> Iterator[Finding]:
    invalid = query(
        "SELECT indexrelid::regclass::text FROM pg_index WHERE NOT indisvalid"
        " AND indexrelid NOT IN (SELECT index_relid FROM pg_stat_progress_create_index)"
    )
    for (name,) in invalid:
        remedy = (
            "Its build was cut off. Writes update it and no query uses it. Run DROP INDEX "
            f"CONCURRENTLY {name}, then manage.py migrate --no-input."
        )
        yield Finding(_SUBJECT, Tone.BAD, f"The index {name} is invalid", remedy)
