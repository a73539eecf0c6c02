"""The connection that a thread keeps from request to request. It is asked whether it still works
once in a second at most, unless the server says something."""

import time
from datetime import UTC, datetime, timedelta

import psycopg
import pytest
from django.db import OperationalError, close_old_connections, connection, connections

from pushsvc.common.store.postgresql import base
from tests.api.test_statistics import ended, read, text

pytestmark = pytest.mark.django_db(transaction=True)

SAID = "SELECT 'of a request'"
CHECKED = "SELECT 1"


@pytest.fixture
def other():
    """A second connection to the database."""
    with connections["default"].copy().cursor() as cursor:
        yield cursor
        cursor.connection.close()


@pytest.fixture
def last_statement(other):
    """What this thread's connection sent last."""
    pid = backend_pid()

    def last():
        other.execute("SELECT query FROM pg_stat_activity WHERE pid = %s", [pid])
        return other.fetchone()[0]

    return last


def backend_pid():
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        return cursor.fetchone()[0]


def ask(statement=SAID):
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return cursor.fetchone()[0]


def end_request():
    """A request whose connection was asked and answered."""
    ask()
    assert connection.is_usable()
    ask()


def begin_request():
    """As Django does before a request, up to its first statement."""
    connection.health_check_enabled, connection.health_check_done = True, False
    connection.close_if_health_check_failed()


def test_a_second_request_in_the_same_second_sends_nothing_before_its_own(
    last_statement, monkeypatch
):
    monkeypatch.setattr(base, "_TRUSTED_SECONDS", 600.0)  # however slow this machine is
    end_request()

    begin_request()

    assert last_statement() == SAID


def test_a_request_after_more_than_a_second_asks_first(last_statement):
    end_request()
    time.sleep(1.1)

    begin_request()

    assert last_statement() == CHECKED


def test_a_connection_that_the_server_ended_is_replaced_at_once(other):
    end_request()
    pid = backend_pid()
    other.execute("SELECT pg_terminate_backend(%s, 10000)", [pid])

    begin_request()

    assert ask("SELECT pg_backend_pid()") != pid


def test_a_connection_that_is_closed_here_is_replaced(other):
    end_request()
    connection.connection.close()

    begin_request()

    assert ask() == "of a request"


def test_a_connection_that_failed_is_not_trusted_because_it_worked_before(other):
    end_request()
    other.execute("SELECT pg_terminate_backend(%s, 10000)", [backend_pid()])
    with pytest.raises(psycopg.OperationalError), connection.connection.cursor() as cursor:
        cursor.execute(SAID)

    begin_request()

    assert ask() == "of a request"


def test_a_session_that_was_read_only_from_its_begin_is_replaced():
    """Its role may write again since, or its server is a standby now: the session never learns."""
    before = backend_pid()
    with connection.cursor() as cursor:
        cursor.execute("SET default_transaction_read_only = on")  # as ALTER ROLE … SET for new ones
        with pytest.raises(OperationalError):
            cursor.execute("CREATE TABLE of_a_test ()")

    close_old_connections()

    with connection.cursor() as cursor:
        cursor.execute("CREATE TEMPORARY TABLE of_a_test ()")
    assert backend_pid() != before


@pytest.mark.parametrize(
    ("name", "value"), [("DateStyle", "German, DMY"), ("IntervalStyle", "sql_standard")]
)
def test_a_role_whose_sessions_begin_with_other_formats_gets_the_same_answers(
    alice, other, name, value
):
    """The statistics have times, and durations of hand-overs."""
    at = datetime(2024, 11, 20, 12, tzinfo=UTC)
    ended(alice.channel, at, first=1, last=2)
    period = {"from": text(at), "to": text(at + timedelta(hours=1))}
    expected = read(alice, **period)
    role = f"ALTER ROLE CURRENT_USER IN DATABASE {connection.settings_dict['NAME']}"
    other.execute(f"{role} SET {name} = '{value}'")
    try:
        connection.close()

        assert read(alice, **period) == expected
    finally:
        other.execute(f"{role} RESET {name}")
        connection.close()

    assert expected["hand_over"]
