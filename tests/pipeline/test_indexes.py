"""Every index is written with every row, so none is there twice."""

import pytest
from django.db import connection

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
