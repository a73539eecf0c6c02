"""Statements that the session of a direct connection keeps, and none of a pooler's sessions."""

import psycopg
import pytest
from django.db import OperationalError, close_old_connections, connection

from pushsvc.common.store import sql

pytestmark = pytest.mark.django_db(transaction=True)

SAID = "SELECT %(number)s + 1 AS of_a_test"
KEPT = "SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE '%%of_a_test'"


@pytest.fixture(autouse=True)
def _own_connection():
    connection.close()
    yield
    connection.close()


def say(number):
    return sql.rows(SAID, {"number": number}, is_prepared=True)[0][0]


def kept():
    return sql.rows(KEPT, {})[0][0]


def test_a_direct_connection_keeps_the_statement():
    assert [say(number) for number in range(5)] == [1, 2, 3, 4, 5]

    assert kept() == 1


def test_through_a_pooler_nothing_is_kept_in_a_session_of_others(monkeypatch):
    """A pooler tells a client another id than that of the process that serves it."""
    monkeypatch.setattr(psycopg.ConnectionInfo, "backend_pid", 4_123)

    assert [say(number) for number in range(5)] == [1, 2, 3, 4, 5]

    assert kept() == 0


def test_after_a_migration_of_a_column_the_next_task_works_again():
    """PostgreSQL refuses a kept statement whose result has another type than before."""
    sql.execute("CREATE TABLE of_a_test (number int)", {})
    read = "SELECT number FROM of_a_test"
    try:
        for _ in range(3):
            sql.rows(read, {}, is_prepared=True)
        with psycopg.connect(connection.connection.info.dsn, password=_password()) as other:
            other.execute("ALTER TABLE of_a_test ALTER COLUMN number TYPE text")

        with pytest.raises(OperationalError):
            sql.rows(read, {}, is_prepared=True)
        close_old_connections()

        assert sql.rows(read, {}, is_prepared=True) == []
    finally:
        sql.execute("DROP TABLE of_a_test", {})


def test_a_query_log_shows_the_values(django_assert_num_queries):
    with django_assert_num_queries(1) as captured:
        say(41)

    assert [each["sql"] for each in captured] == ["SELECT 41 + 1 AS of_a_test"]


def _password():
    return connection.settings_dict["PASSWORD"]


def test_a_plan_for_a_small_table_is_soon_replaced_after_it_has_grown():
    sql.execute("CREATE TABLE of_a_test (number int PRIMARY KEY)", {})
    read = "SELECT number FROM of_a_test WHERE number = %(number)s"
    try:
        sql.execute("INSERT INTO of_a_test VALUES (1)", {})
        sql.execute("ANALYZE of_a_test", {})
        for _ in range(3):
            sql.rows(read, {"number": 1}, is_prepared=True)
        assert "Seq Scan" in plan_of("FROM of_a_test WHERE")
        sql.execute("INSERT INTO of_a_test SELECT generate_series(2, 50000)", {})
        assert "Seq Scan" in plan_of("FROM of_a_test WHERE")

        connection._planned_until = 0.0  # ten seconds later
        sql.rows(read, {"number": 1}, is_prepared=True)

        assert "Index" in plan_of("FROM of_a_test WHERE")
    finally:
        sql.execute("DROP TABLE of_a_test", {})


def plan_of(part):
    """The plan of the only kept statement that contains the part."""
    found = "SELECT name FROM pg_prepared_statements WHERE strpos(statement, %(part)s) > 0"
    names = [name for (name,) in sql.rows(found, {"part": part}) if name]
    return str(sql.rows(f"EXPLAIN EXECUTE {names[0]}(1)", {}))
