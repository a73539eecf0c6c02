"""PostgreSQL's tables: the role's rights on them, migrations and indexes."""

from collections.abc import Iterator
from typing import Final

from django.apps import apps
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from django.db.migrations.state import ModelState
from django.db.models import Index, UniqueConstraint

from channels_app.models import Channel
from pushsvc.ops.doctor.finding import Finding, Tone
from pushsvc.ops.doctor.statements import query

_SUBJECT: Final = "database"
_APPS: Final = frozenset({"channels_app", "subscriptions_app", "notifications_app"})
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


def managed_tables() -> list[str]:
    models = apps.get_models(include_auto_created=True)
    return [model._meta.db_table for model in models if model._meta.managed]


def _missing_rights() -> list[tuple[str, str, str]]:
    """Table, owner and the rights on it that the role lacks. Only migrations write to the list of
    migrations, and another role may run them."""
    record = MigrationRecorder.Migration._meta.db_table
    tables = [record, *managed_tables()]
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
    elsewhere = list(_tables_elsewhere())
    if elsewhere:
        yield from elsewhere
        return
    executor = MigrationExecutor(connection)
    missing = executor.migration_plan(executor.loader.graph.leaf_nodes())
    if missing:
        first = missing[0][0]
        remedy = f"The first is {first}. Run manage.py migrate --no-input."
        yield Finding(_SUBJECT, Tone.BAD, f"{len(missing)} migrations are not applied", remedy)
    if newer := _newer(executor.loader):
        number = f"{len(newer)} {'migration' if len(newer) == 1 else 'migrations'}"
        remedy = (
            f"The last is {'.'.join(newer[-1])}. During an upgrade, and after going back by one "
            "version, that is right: docs/upgrade.md, While two versions run, says what not to "
            "use. Otherwise put the newer version here, too."
        )
        title = f"The database is newer than this code, by {number}"
        yield Finding(_SUBJECT, Tone.INFO, title, remedy)


def _tables_elsewhere() -> Iterator[Finding]:
    """Looks for our tables in a schema where the role does not look, or may not look. Without
    rights, and without its search_path, they read as tables that are not there."""
    found = query(
        "SELECT relnamespace::regnamespace::text, has_schema_privilege(relnamespace, 'USAGE'),"
        " pg_table_is_visible(oid), current_user, current_setting('search_path')"
        " FROM pg_class WHERE relname = %s AND relkind IN ('r', 'p')",
        [Channel._meta.db_table],
    )
    if len(found) != 1:
        return
    ((schema, may_look, is_visible, role, path),) = found
    warning = "Do not migrate before: that would make a second, empty set."
    if not may_look:
        remedy = f"Run GRANT USAGE ON SCHEMA {schema} TO {role}. {warning}"
        title = f"The tables are in the schema {schema}, which the role {role} may not use"
        yield Finding(_SUBJECT, Tone.BAD, title, remedy)
    elif not is_visible:
        remedy = (
            f"Its search_path is {path}. Run ALTER ROLE {role} SET search_path = {schema}, and "
            f"restart all processes. {warning}"
        )
        title = f"The tables are in the schema {schema}, where the role {role} does not look"
        yield Finding(_SUBJECT, Tone.BAD, title, remedy)


def indexes() -> Iterator[Finding]:
    """Compares the indexes with those that the applied migrations made. Knows those that have a
    name in the Meta of a model."""
    expected = _Expected()
    invalid = query(
        "SELECT indexrelid::regclass::text, relname FROM pg_index"
        " JOIN pg_class ON pg_class.oid = indexrelid WHERE NOT indisvalid"
        " AND indexrelid NOT IN (SELECT index_relid FROM pg_stat_progress_create_index)"
    )
    for name, plain_name in invalid:
        # A dropped index of an applied migration would never come back.
        way = (
            f"REINDEX INDEX CONCURRENTLY {name}"
            if plain_name in expected.names
            else f"DROP INDEX CONCURRENTLY {name}, then manage.py migrate --no-input"
        )
        remedy = f"Its build was cut off. Writes update it and no query uses it. Run {way}."
        yield Finding(_SUBJECT, Tone.BAD, f"The index {name} is invalid", remedy)
    yield from _missing(expected)


def _missing(expected: "_Expected") -> Iterator[Finding]:
    names = list(expected.names)
    query_names = "SELECT relname FROM pg_class WHERE relkind IN ('i', 'I') AND relname = ANY(%s)"
    there = {name for (name,) in query(query_names, [names])}
    for name in [name for name in names if name not in there]:
        tone, harm = (
            (Tone.BAD, "Duplicates are stored, or requests that rely on it get 500.")
            if expected.is_unique(name)
            else (Tone.WARN, "Statements that would use it read much more.")
        )
        remedy = f"{harm} Run {expected.statement(name)}."
        yield Finding(_SUBJECT, tone, f"The index {name} is missing", remedy)


class _Expected:
    """The indexes and unique constraints of our models after the migrations that are applied.
    `names` are theirs, in order."""

    def __init__(self) -> None:
        loader = MigrationLoader(connection)
        newer = {app for app, _ in _newer(loader)}  # may have removed an index
        applied = [key for key in loader.applied_migrations if key in loader.graph.nodes]
        self._state = loader.project_state(applied)
        self._found = {
            each.name: (key, each)
            for key, model in self._state.models.items()
            if key[0] in _APPS - newer
            for each in _of(model)
        }
        self.names = sorted(self._found)

    def is_unique(self, name: str) -> bool:
        return isinstance(self._found[name][1], UniqueConstraint)

    def statement(self, name: str) -> str:
        """Makes it again."""
        (app, model_name), made = self._found[name]
        model = self._state.apps.get_model(app, model_name)
        editor = connection.schema_editor(collect_sql=True)
        if isinstance(made, UniqueConstraint):
            return str(made.create_sql(model, editor))
        return str(made.create_sql(model, editor, concurrently=True))


def _of(model: ModelState) -> list[Index | UniqueConstraint]:
    constraints = model.options.get("constraints", [])
    unique = [each for each in constraints if isinstance(each, UniqueConstraint)]
    return [*model.options.get("indexes", []), *unique]


def _newer(loader: MigrationLoader) -> list[tuple[str, str]]:
    """Migrations of ours that are applied and that this code does not have."""
    applied = set(loader.applied_migrations) - set(loader.disk_migrations)
    return sorted(key for key in applied if key[0] in _APPS)
