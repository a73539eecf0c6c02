"""`manage.py doctor` names what is wrong with the database."""

import json
import os
import re
import subprocess
import sys

import pytest
from django.db import connection

from bench.ports import own_port
from pushsvc.ops.doctor import database
from tests.forked import CHECKOUT
from tests.ops.doctor.findings import errors, report

pytestmark = pytest.mark.django_db


def test_an_unreachable_database_is_the_only_finding_about_it():
    """In a separate process, because this one's connection is the test's."""
    environment = {**os.environ, "DATABASE_URL": f"postgresql://127.0.0.1:{own_port()}/away"}
    command = [sys.executable, "manage.py", "doctor", "--json"]
    ended = subprocess.run(
        command, cwd=CHECKOUT, env=environment, capture_output=True, text=True, check=False
    )

    assert ended.returncode == 1, ended.stderr
    found = {each["code"]: each for each in json.loads(ended.stdout)["findings"]}
    assert "Check DATABASE_URL" in found["database_unavailable"]["remedy"]
    assert not found.keys() & {"work", "unexamined", "migrations_missing", "planner_missing"}


def test_settings_that_lose_data_are_errors(healthy):
    found, _ = report()

    (finding,) = [each for each in found if each["title"] == "The setting fsync is off"]
    assert finding["severity"] == "error"
    assert "ALTER SYSTEM SET fsync = on" in finding["remedy"]


def test_a_missing_migration_is_named_with_the_command(healthy):
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM django_migrations WHERE app = 'sessions'")

    remedy = errors()["Migrations that are not applied: 1"]
    assert "sessions.0001_initial" in remedy
    assert "manage.py migrate" in remedy


def test_a_database_that_is_newer_than_the_code_is_explained(healthy):
    """After going back by one version, which is allowed. A newer version may remove an index."""
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO django_migrations (app, name, applied)"
            " VALUES ('notifications_app', '9999_of_tomorrow', now())"
        )
        cursor.execute("DROP INDEX batch_breaking")

    assert errors() == {}
    (finding,) = [each for each in report()[0] if each["code"] == "migrations_newer"]
    assert finding["title"] == "Applied migrations that this code does not have: 1"
    assert finding["severity"] == "info"
    assert "notifications_app.9999_of_tomorrow" in finding["remedy"]
    assert "While two versions run" in finding["remedy"]


def test_a_table_that_is_not_there_yet_does_not_end_the_report(healthy):
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE channels_app_providercredential RENAME TO elsewhere")

    found = errors("--send")
    for what in ("Some of the work", "The stored credentials"):
        assert "providercredential" in found[f"{what} could not be examined"]


def test_an_invalid_index_of_an_applied_migration_is_built_again(healthy):
    """If it were dropped, no migration would make it again."""
    _break("batch_breaking")

    remedy = errors()["The index batch_breaking is invalid"]
    assert "Run REINDEX INDEX CONCURRENTLY batch_breaking." in remedy


def test_an_invalid_index_that_no_applied_migration_made_is_dropped(healthy):
    """A rebuilding that was cut off leaves it, or a migration."""
    with connection.cursor() as cursor:
        cursor.execute("CREATE INDEX batch_breaking_ccnew ON notifications_app_batch (id)")
    _break("batch_breaking_ccnew")

    remedy = errors()["The index batch_breaking_ccnew is invalid"]
    assert "DROP INDEX CONCURRENTLY batch_breaking_ccnew, then manage.py migrate" in remedy


def _break(index):
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE pg_index SET indisvalid = false WHERE indexrelid = %s::regclass", [index]
        )


def test_a_missing_index_is_named_with_the_statement_that_makes_it(healthy):
    with connection.cursor() as cursor:
        cursor.execute("DROP INDEX batch_breaking")
        (remedy,) = errors().values()
        statement = remedy.partition("Run ")[2].removesuffix(".")
        assert statement.startswith('CREATE INDEX CONCURRENTLY "batch_breaking" ON ')

        cursor.execute(statement.replace(" CONCURRENTLY", ""))  # impossible in a transaction

    assert errors() == {}


def test_a_missing_unique_constraint_is_bad(healthy):
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE notifications_app_plan DROP CONSTRAINT plan_part_once")
        ((title, remedy),) = errors().items()
        assert title == "The index plan_part_once is missing"
        assert "Duplicates" in remedy

        cursor.execute(remedy.partition("Run ")[2].removesuffix("."))

    assert errors() == {}


def test_clocks_that_differ_are_named(healthy, monkeypatch):
    """The question takes time, and half of it is the most by which the figure can be wrong."""
    real = database.time.time
    monkeypatch.setattr(database.time, "time", lambda: real() + 90)

    began = real()
    found, status = report()
    took = real() - began

    (finding,) = [each for each in found if each["code"] == "clocks_differ"]
    assert (finding["severity"], status) == ("error", 1)
    told = re.fullmatch(r"The clocks .* differ by (\d+) s", finding["title"])
    assert abs(int(told[1]) - 90) <= took / 2 + 0.5


def test_connections_that_run_out_are_named_with_who_has_them(healthy, monkeypatch):
    monkeypatch.setattr(database, "FEW_CONNECTIONS", 1.0)

    (title,) = [title for title in errors() if "connections are in use" in title]
    assert re.fullmatch(r"\d+ of \d+ connections are in use, \d+ of them by pushsvc", title)
