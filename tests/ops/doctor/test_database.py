"""`manage.py doctor` names what is wrong with the database."""

import json
import os
import re
import subprocess
import sys
import time
from datetime import timedelta

import psycopg
import pytest
from django.db import connection

from bench.ports import own_port
from pushsvc.ops.doctor import database, statements
from tests.forked import CHECKOUT
from tests.ops.doctor.findings import faults, report

pytestmark = pytest.mark.django_db


def test_an_unreachable_database_is_the_only_finding_about_it():
    """In a process of its own, because this one's connection is the test's."""
    environment = {**os.environ, "DATABASE_URL": f"postgresql://127.0.0.1:{own_port()}/away"}
    command = [sys.executable, "manage.py", "doctor", "--json"]
    ended = subprocess.run(
        command, cwd=CHECKOUT, env=environment, capture_output=True, text=True, check=False
    )

    assert ended.returncode == 1, ended.stderr
    found = json.loads(ended.stdout)["findings"]
    (finding,) = [each for each in found if each["subject"] in {"database", "work"}]
    assert finding["title"] == "PostgreSQL cannot be reached"
    assert "Check DATABASE_URL" in finding["remedy"]


def test_settings_that_lose_data_are_bad(healthy):
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL synchronous_commit = off")
    found, _ = report()

    (finding,) = [each for each in found if "synchronous_commit" in each["title"]]
    assert finding["tone"] == "bad"
    assert "ALTER SYSTEM SET synchronous_commit = on" in finding["remedy"]


def test_a_missing_migration_is_named_with_the_command(healthy):
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM django_migrations WHERE app = 'sessions'")

    remedy = faults()["1 migrations are not applied"]
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

    assert faults() == {}
    (finding,) = [each for each in report()[0] if "newer than this code" in each["title"]]
    assert finding["title"] == "The database is newer than this code, by 1 migration"
    assert finding["tone"] == "info"
    assert "notifications_app.9999_of_tomorrow" in finding["remedy"]
    assert "While two versions run" in finding["remedy"]


def test_a_table_that_is_not_there_yet_does_not_end_the_report(healthy):
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE channels_app_providercredential RENAME TO elsewhere")

    found = faults()
    assert "providercredential" in found["Some of the work could not be examined"]
    assert "providercredential" in found["The stored credentials could not be read"]


def test_an_invalid_index_of_an_applied_migration_is_built_again(healthy):
    """If it were dropped, no migration would make it again."""
    _break("batch_breaking")

    remedy = faults()["The index batch_breaking is invalid"]
    assert "Run REINDEX INDEX CONCURRENTLY batch_breaking." in remedy


def test_an_invalid_index_that_no_applied_migration_made_is_dropped(healthy):
    """A rebuilding that was cut off leaves it, or a migration."""
    with connection.cursor() as cursor:
        cursor.execute("CREATE INDEX batch_breaking_ccnew ON notifications_app_batch (id)")
    _break("batch_breaking_ccnew")

    remedy = faults()["The index batch_breaking_ccnew is invalid"]
    assert "DROP INDEX CONCURRENTLY batch_breaking_ccnew, then manage.py migrate" in remedy


def _break(index):
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE pg_index SET indisvalid = false WHERE indexrelid = %s::regclass", [index]
        )


def test_a_missing_index_is_named_with_the_statement_that_makes_it(healthy):
    with connection.cursor() as cursor:
        cursor.execute("DROP INDEX batch_breaking")
        (remedy,) = faults().values()
        statement = remedy.partition("Run ")[2].removesuffix(".")
        assert statement.startswith('CREATE INDEX CONCURRENTLY "batch_breaking" ON ')

        cursor.execute(statement.replace(" CONCURRENTLY", ""))  # impossible in a transaction

    assert faults() == {}


def test_a_missing_unique_constraint_is_bad(healthy):
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE notifications_app_plan DROP CONSTRAINT plan_part_once")
        ((title, remedy),) = faults().items()
        assert title == "The index plan_part_once is missing"
        assert "Duplicates" in remedy

        cursor.execute(remedy.partition("Run ")[2].removesuffix("."))

    assert faults() == {}


def test_an_old_transaction_is_named_with_its_process(healthy, monkeypatch):
    monkeypatch.setattr(database, "OLD_TRANSACTION", timedelta(0))
    parameters = connection.get_connection_params()
    arguments = {name: parameters[name] for name in ("host", "port", "dbname", "user", "password")}
    with psycopg.connect(**arguments, application_name="forgotten") as other:
        other.execute("SELECT 1")
        found = faults()
        pid = other.info.backend_pid

    (title,) = [title for title in found if "A transaction of forgotten" in title]
    assert f"pg_terminate_backend({pid})" in found[title]


def test_clocks_that_differ_are_named(healthy, monkeypatch):
    """The question takes time, and half of it is the most by which the figure can be wrong."""
    real = database.time.time
    monkeypatch.setattr(database.time, "time", lambda: real() + 90)

    began = real()
    found, status = report()
    took = real() - began

    (finding,) = [each for each in found if "clocks" in each["title"]]
    assert (finding["tone"], status) == ("bad", 1)
    told = re.fullmatch(r"The clocks .* differ by (\d+) s", finding["title"])
    assert abs(int(told[1]) - 90) <= took / 2 + 0.5


def test_few_remaining_connections_are_a_finding(healthy, settings):
    settings.WEB_CONCURRENCY = 200

    (remedy,) = [text for title, text in faults().items() if title.startswith("max_connections")]
    assert "PgBouncer" in remedy


def test_connections_that_run_out_are_named_with_who_has_them(healthy, monkeypatch):
    monkeypatch.setattr(database, "FEW_CONNECTIONS", 1.0)

    (title,) = [title for title in faults() if "connections are in use" in title]
    assert re.fullmatch(r"\d+ of \d+ connections are in use, \d+ of them by pushsvc", title)


def test_a_replication_slot_that_nobody_reads_is_named(healthy, monkeypatch):
    monkeypatch.setattr(database, "MUCH_WAL", -1)
    slot = f"left_{os.getpid()}"
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_create_physical_replication_slot(%s, true)", [slot])
        try:
            found = faults()
        finally:
            cursor.execute("SELECT pg_drop_replication_slot(%s)", [slot])

    (title,) = [title for title in found if slot in title]
    assert title.startswith(f"The replication slot {slot} is not read and keeps 0.0 GB")
    assert f"pg_drop_replication_slot('{slot}')" in found[title]


def test_rows_that_are_not_frozen_are_named_before_writes_are_refused(healthy, monkeypatch):
    monkeypatch.setattr(database, "OLD_ROWS", 0)

    (title,) = [title for title in faults() if title.startswith("Rows were not frozen")]
    assert "run VACUUM" in faults()[title]


def test_a_doctor_that_works_long_does_not_take_the_server_for_silent(monkeypatch):
    monkeypatch.setattr(statements, "SILENCE_SECONDS", 1.0)

    with statements.limited():
        time.sleep(1.6)  # what is tested is a pause between two statements
        answer = statements.query("SELECT 1")

    assert answer == [(1,)]
