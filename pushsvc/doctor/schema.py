"""PostgreSQL's tables: migrations and indexes."""

from collections.abc import Iterator
from typing import Final

from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from pushsvc.doctor.finding import Finding, Tone
from pushsvc.doctor.statements import query

_SUBJECT: Final = "database"


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
