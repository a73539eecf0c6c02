"""PostgreSQL's tables: the role's rights on them, migrations and indexes."""

from collections.abc import Iterator
from typing import Final

from django.apps import apps
from django.db import connection
from django.db.migrations import AddIndex
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from django.db.models import Index, Model, UniqueConstraint

from channels_app.models import Channel
from pushsvc.common.findings import Finding, Kind, Severity
from pushsvc.ops.doctor.statements import query

_NAMED: Final = 3  # tables; the others are counted


def is_readable() -> bool:
    """Whether the role may read all tables. If not, the other parts would only repeat it."""
    return not any("SELECT" in rights for _, _, rights in _missing_rights())


def rights() -> Iterator[Finding]:
    """Reads the rights on tables. The keys of tables are identity columns, which need no right on
    their sequences."""
    missing = _missing_rights()
    if missing:
        ((role, schema),) = query("SELECT current_user, current_schema()")
        tables = ", ".join(f"{table} ({lacking})" for table, _, lacking in missing[:_NAMED])
        yield Kind.RIGHTS_MISSING.found(
            role=role,
            schema=schema,
            number=len(missing),
            tables=f"{tables}{' and more' if len(missing) > _NAMED else ''}",
            owner=missing[0][1],
        )


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
    if hidden := list(_hidden_tables()):
        yield from hidden
        return
    executor = MigrationExecutor(connection)
    missing = executor.migration_plan(executor.loader.graph.leaf_nodes())
    if missing:
        yield Kind.MIGRATIONS_MISSING.found(number=len(missing), first=missing[0][0])
    if newer := _newer(executor.loader):
        yield Kind.MIGRATIONS_NEWER.found(number=len(newer), last=".".join(newer[-1]))


def _newer(loader: MigrationLoader) -> list[tuple[str, str]]:
    """Migrations of ours that are applied and that this code does not have."""
    applied = set(loader.applied_migrations) - set(loader.disk_migrations)
    return sorted(key for key in applied if key[0].endswith("_app"))


def _hidden_tables() -> Iterator[Finding]:
    """Looks for our tables in a schema that the role may not use, or where it does not look. To it
    they are tables that do not exist."""
    found = query(
        "SELECT relnamespace::regnamespace::text, current_user, current_setting('search_path'),"
        " pg_table_is_visible(oid) FROM pg_class WHERE relname = %s AND relkind IN ('r', 'p')",
        [Channel._meta.db_table],
    )
    if len(found) == 1 and not found[0][-1]:
        schema, role, path, _ = found[0]
        yield Kind.TABLES_HIDDEN.found(schema=schema, role=role, path=path)


def indexes() -> Iterator[Finding]:
    """Compares the indexes with those in the Meta of the models. An index can be missing only if
    exactly this code's migrations are applied."""
    executor, expected = MigrationExecutor(connection), _expected()
    pending = executor.migration_plan(executor.loader.graph.leaf_nodes())
    made = (each for migration, _ in pending for each in migration.operations)
    kept = expected.keys() - {each.index.name for each in made if isinstance(each, AddIndex)}
    for name, plain_name in query(
        "SELECT indexrelid::regclass::text, relname FROM pg_index"
        " JOIN pg_class ON pg_class.oid = indexrelid WHERE NOT indisvalid"
        " AND indexrelid NOT IN (SELECT index_relid FROM pg_stat_progress_create_index)"
    ):
        # A dropped index of an applied migration would never come back.
        yield Kind.INDEX_INVALID.found(
            name=name,
            statement=f"REINDEX INDEX CONCURRENTLY {name}"
            if plain_name in kept
            else f"DROP INDEX CONCURRENTLY {name}, then manage.py migrate --no-input",
        )
    if not pending and not _newer(executor.loader):
        names = "SELECT relname FROM pg_class WHERE relkind IN ('i', 'I') AND relname = ANY(%s)"
        there = {name for (name,) in query(names, [list(expected)])}
        for name in sorted(expected.keys() - there):
            yield _missing(*expected[name])


def _expected() -> dict[str, tuple[type[Model], Index | UniqueConstraint]]:
    return {
        made.name: (model, made)
        for model in apps.get_models()
        if model._meta.app_label.endswith("_app")
        for made in [*model._meta.indexes, *model._meta.constraints]
        if isinstance(made, Index | UniqueConstraint)
    }


def _missing(model: type[Model], made: Index | UniqueConstraint) -> Finding:
    """With the statement that creates it again."""
    editor = connection.schema_editor(collect_sql=True)
    if isinstance(made, UniqueConstraint):
        return Kind.INDEX_MISSING.found(
            name=made.name,
            harm="Duplicates are stored, or requests that rely on it get 500.",
            statement=made.create_sql(model, editor),
        )
    return Kind.INDEX_MISSING.found(
        severity=Severity.WARNING,
        name=made.name,
        harm="Statements that would use it read much more.",
        statement=made.create_sql(model, editor, concurrently=True),
    )
