"""Every index is written with every row, so none is there twice. Flushes read rows by their key."""

import re
from itertools import product

import pytest
from django.db import connection, transaction

from notifications_app import events
from notifications_app.models import Batch
from notifications_app.pipeline import outcomes
from notifications_app.pipeline.transitions import Transition
from notifications_app.states import STATES, DeliveryStatus
from pushsvc.common.store import sql
from tests.factories import add_crowd, make_channel, make_notification
from tests.pipeline import support
from tests.pipeline.clicks import planned
from tests.pipeline.test_variants import VARIANTS

# Pairs of indexes of the whole table, of which one begins with all columns of the other.
COVERED = """
SELECT index.indexrelid::regclass::text, wider.indexrelid::regclass::text
FROM pg_index AS index JOIN pg_index AS wider USING (indrelid)
WHERE index.indrelid = %s::regclass AND index.indexrelid <> wider.indexrelid
  AND index.indpred IS NULL AND wider.indpred IS NULL
  AND NOT index.indisunique
  AND starts_with(wider.indkey::text || ' ', index.indkey::text || ' ')
"""
TABLES = [
    "notifications_app_batch",
    "notifications_app_delivery",
    "notifications_app_idempotencyrecord",
    "notifications_app_notification",
    "notifications_app_plan",
    "notifications_app_target",
    "subscriptions_app_person",
    "subscriptions_app_subscription",
    "subscriptions_app_tag",
]


@pytest.mark.parametrize("table", TABLES)
def test_no_index_of_a_large_table_begins_as_another_does(table, db):
    with connection.cursor() as cursor:
        cursor.execute(COVERED, [table])
        assert cursor.fetchall() == []


@pytest.mark.parametrize(
    ("others", "is_known"),
    [*product([0, 5_000, 200_000], [False, True]), (1_000_000, True)],
)
def test_a_flush_compares_no_recipient_with_all_outcomes(tampered_channel, others, is_known):
    """Whatever PostgreSQL expects: that it knows nothing of the table, or that no row waits."""
    sql.execute(_OTHERS, {"count": others})
    if is_known:
        sql.execute("ANALYZE notifications_app_delivery", {})
    add_crowd(tampered_channel, 3_000)
    support.plan(make_notification(tampered_channel))
    lease = support.claim()
    rows = support.due_rows(lease)
    transitions = [Transition(row, DeliveryStatus.DELIVERED, attempts=1) for row in rows[:300]]
    columns = outcomes._columns({lease.batch_id: Batch.objects.get(pk=lease.batch_id)}, transitions)

    statement = "EXPLAIN (ANALYZE, FORMAT JSON) " + outcomes.UPDATE_DELIVERIES
    ((plan,),) = sql.rows(statement, STATES | columns)

    assert _removed(plan[0]["Plan"]) == 0


def test_a_group_of_clicks_compares_no_click_with_all_others(transactional_db):
    """In the plan that a session keeps for any number of clicks, here of many channels."""
    fields = {"extras": {"actions": [{"id": "open", "title": "Open"}], "variants": VARIANTS}}
    clicks = [planned(make_channel(), 1, **fields)[1][0] for _ in range(12)]
    columns = events._columns([click._replace(action="open") for click in clicks])

    assert _removed(_kept_plan(events._RECORD, columns)) == 0


def _kept_plan(statement, columns):
    """The plan of the prepared statement for large tables. What it changes is undone."""
    given = {name: f"${number}" for number, name in enumerate(columns, 1)}
    prepared = re.sub(r"%\((\w+)\)s", lambda found: given[found[1]], statement)
    named = ", ".join(f"%({name})s" for name in columns)
    with transaction.atomic():
        sql.execute(_AS_IF_LARGE, {})
        sql.execute("SET LOCAL plan_cache_mode = force_generic_plan", {})
        sql.execute(f"PREPARE kept AS {prepared}", {})
        ((plan,),) = sql.rows(f"EXPLAIN (ANALYZE, FORMAT JSON) EXECUTE kept ({named})", columns)
        sql.execute("DEALLOCATE kept", {})
        transaction.set_rollback(True)
    return plan[0]["Plan"]


# A page of a table then has a million rows, as far as PostgreSQL knows.
_AS_IF_LARGE = """
UPDATE pg_class SET relpages = 1, reltuples = 1e6 WHERE relkind = 'r' AND relname ~ '_app_'
"""
_OTHERS = """
DELETE FROM pg_statistic WHERE starelid = 'notifications_app_delivery'::regclass;
INSERT INTO notifications_app_delivery (notification_id, subscription_id, batch_id, status)
SELECT gen_random_uuid(), gen_random_uuid(), -n / 1000, 1 FROM generate_series(1, %(count)s) AS n
"""


def _removed(node):
    """How many pairs of rows joins compared in vain."""
    own = node.get("Rows Removed by Join Filter", 0) * node["Actual Loops"]
    return own + sum(map(_removed, node.get("Plans", [])))
