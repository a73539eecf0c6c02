"""`manage.py doctor` as a role of PostgreSQL that lacks rights, connections or settings."""

import pytest

from tests.ops.doctor.installation import as_role


@pytest.mark.parametrize(
    ("name", "value", "severity"),
    [
        ("default_transaction_isolation", "repeatable read", "error"),
        ("statement_timeout", "850ms", "warning"),
        ("lock_timeout", "850ms", "warning"),
        ("idle_session_timeout", "850ms", "warning"),
    ],
)
def test_a_setting_of_the_role_that_pushsvc_cannot_work_with_is_named(
    installation, role, name, value, severity
):
    installation.sql(f"ALTER ROLE app SET {name} = '{value}'")

    title = f"The setting {name} is {value}"
    installation.expect(title, severity, f"RESET {name}", DATABASE_URL=role)


def test_a_role_that_may_only_read_is_named(installation, role):
    installation.sql("ALTER ROLE app SET default_transaction_read_only = on")

    way = "set default_transaction_read_only to off"
    installation.expect("The database accepts no writes", "error", way, DATABASE_URL=role)


def test_a_role_without_temporary_tables_is_no_finding(installation, role):
    installation.sql("REVOKE TEMP ON DATABASE pushsvc FROM PUBLIC")
    try:
        found = installation.doctor(DATABASE_URL=role)
    finally:
        installation.sql("GRANT TEMP ON DATABASE pushsvc TO PUBLIC")

    assert not [title for title in found if "Disk" in title]


def test_a_role_without_connections_left_is_not_told_to_start_the_server(installation, role):
    installation.sql("ALTER ROLE app CONNECTION LIMIT 0")

    way = "All connections are in use"
    found = installation.expect("PostgreSQL cannot be reached", "error", way, DATABASE_URL=role)
    assert "is running" not in found["PostgreSQL cannot be reached"][1]


def test_a_wrong_password_is_not_told_to_start_the_server(installation):
    nobody = as_role(installation, "nobody")

    way = "The server is running and refuses the connection"
    installation.expect("PostgreSQL cannot be reached", "error", way, DATABASE_URL=nobody)


@pytest.mark.parametrize(
    ("hide", "show"),
    [
        ("REVOKE USAGE ON SCHEMA public FROM PUBLIC", "GRANT USAGE ON SCHEMA public TO PUBLIC"),
        ("ALTER ROLE app SET search_path = app", "ALTER ROLE app RESET search_path"),
    ],
    ids=["it may not use the schema", "it does not look there"],
)
def test_tables_that_the_role_does_not_see_are_not_called_missing(installation, role, hide, show):
    installation.sql(hide, "REVOKE pg_read_all_data FROM app")
    try:
        found = installation.expect(
            "The tables are in the schema public",
            "error",
            "GRANT USAGE ON SCHEMA public TO app",
            "ALTER ROLE app SET search_path = public",
            DATABASE_URL=role,
        )
    finally:
        installation.sql(show)

    assert not [title for title in found if "not applied" in title]


def test_a_role_with_all_rights_is_no_finding(installation, worker_role):
    found = installation.doctor(DATABASE_URL=worker_role)

    assert not [title for title in found if "rights" in title or "examined" in title]


@pytest.mark.parametrize(
    ("revoked", "lacking", "named"),
    [
        (
            "INSERT, UPDATE ON notifications_app_notification",
            ": 1",
            "notifications_app_notification (INSERT, UPDATE)",
        ),
        ("ALL ON ALL TABLES IN SCHEMA public", ": ", "and more"),
    ],
    ids=["each send gets 500, while reads succeed", "another role restored a dump"],
)
def test_rights_that_are_missing_are_one_finding(
    installation, worker_role, revoked, lacking, named
):
    installation.sql(f"REVOKE {revoked} FROM app")

    ways = (named, "OWNER TO app", "--no-owner --role=app")
    title = f"Tables on which the role app lacks rights{lacking}"
    found = installation.expect(title, "error", *ways, DATABASE_URL=worker_role)
    assert not [title for title in found if "examined" in title or "migrations" in title]
