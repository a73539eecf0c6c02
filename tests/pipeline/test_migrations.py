"""Migrations that run while workers are at work."""

import re

import pytest
from django.db import connection
from django.db.migrations.loader import MigrationLoader

APP = "notifications_app"


@pytest.mark.parametrize(
    "name",
    [
        "0013_pause_and_stop",
        "0014_expiry_and_edit",
        "0015_plan_halted_at",
        "0017_plan_parts",
        "0019_plan_part_once",
        "0026_notification_template",
        "0034_notification_defaults",
    ],
)
def test_a_migration_locks_one_table_and_does_not_read_it(name, db):
    """Planners lock a plan and then its notification: a migration that locks both could deadlock
    with them. A CHECK reads the whole table."""
    loader = MigrationLoader(connection)
    statements = loader.collect_sql([(loader.graph.nodes[APP, name], False)])

    text = "\n".join(statements)
    assert len(set(re.findall(r'ALTER TABLE "(\w+)"', text))) == 1
    assert "CHECK" not in text
