"""`manage.py doctor` as a role of PostgreSQL that lacks rights, connections or settings."""

import pytest

from tests.ops.doctor.installation import as_role, the


@pytest.mark.parametrize(
    ("setting", "words", "way"),
    [
        (
            "default_transaction_read_only = on",
            "The database accepts no writes",
            "set default_transaction_read_only to off",
        ),
        (
            "default_transaction_isolation = 'repeatable read'",
            "Transactions are repeatable read",
            "RESET default_transaction_isolation",
        ),
    ],
)
def test_a_setting_of_the_role_that_pushsvc_cannot_work_with_is_named(
    installation, role, setting, words, way
):
    installation.sql(f"ALTER ROLE app SET {setting}")

    found, status = installation.doctor(DATABASE_URL=role)

    _, tone, remedy = the(found, words)
    assert (tone, status) == ("bad", 1)
    assert way in remedy


@pytest.mark.parametrize("limit", ["statement_timeout", "lock_timeout", "idle_session_timeout"])
def test_a_short_limit_of_the_role_is_named(installation, role, limit):
    installation.sql(f"ALTER ROLE app SET {limit} = '850ms'")

    found, _ = installation.doctor(DATABASE_URL=role)

    _, _, remedy = the(found, f"The limit {limit} is only 850ms")
    assert f"RESET {limit}" in remedy


def test_a_role_without_temporary_tables_is_no_finding(installation, role):
    installation.sql("REVOKE TEMP ON DATABASE pushsvc FROM PUBLIC")
    try:
        found, _ = installation.doctor(DATABASE_URL=role)
    finally:
        installation.sql("GRANT TEMP ON DATABASE pushsvc TO PUBLIC")

    assert not [title for title in found if "Disk" in title]


def test_a_role_without_connections_left_is_not_told_to_start_the_server(installation, role):
    installation.sql("ALTER ROLE app CONNECTION LIMIT 0")

    found, status = installation.doctor(DATABASE_URL=role)

    _, _, remedy = the(found, "PostgreSQL cannot be reached")
    assert "All connections are in use" in remedy
    assert "is running" not in remedy
    assert status == 1


def test_a_wrong_password_is_not_told_to_start_the_server(installation):
    found, _ = installation.doctor(DATABASE_URL=as_role(installation, "nobody"))

    _, _, remedy = the(found, "PostgreSQL cannot be reached")
    assert remedy.endswith("The server runs and refuses the connection. Check DATABASE_URL.")


def test_a_schema_that_the_role_may_not_use_is_named(installation, role):
    installation.sql(
        "REVOKE USAGE ON SCHEMA public FROM PUBLIC", "REVOKE pg_read_all_data FROM app"
    )
    try:
        found, status = installation.doctor(DATABASE_URL=role)
    finally:
        installation.sql("GRANT USAGE ON SCHEMA public TO PUBLIC")

    _, tone, remedy = the(found, "The tables are in the schema public")
    assert (tone, status) == ("bad", 1)
    assert "GRANT USAGE ON SCHEMA public TO app" in remedy
    assert not [title for title in found if "not applied" in title]


def test_tables_where_the_role_does_not_look_are_not_called_missing(installation, role):
    installation.sql("ALTER ROLE app SET search_path = app")

    found, status = installation.doctor(DATABASE_URL=role)

    _, tone, remedy = the(found, "The tables are in the schema public")
    assert (tone, status) == ("bad", 1)
    assert "ALTER ROLE app SET search_path = public" in remedy
    assert not [title for title in found if "not applied" in title]


def test_a_role_with_all_rights_is_no_finding(installation, worker_role):
    found, _ = installation.doctor(DATABASE_URL=worker_role)

    assert not [title for title in found if "rights" in title or "read" in title]


@pytest.mark.parametrize(
    ("revoked", "lacking", "named"),
    [
        (
            "INSERT, UPDATE ON notifications_app_notification",
            "rights on 1 table",
            "notifications_app_notification (INSERT, UPDATE)",
        ),
        ("ALL ON ALL TABLES IN SCHEMA public", "rights on ", "and more"),
    ],
    ids=["each send gets 500, while reads succeed", "another role restored a dump"],
)
def test_rights_that_are_missing_are_one_finding(
    installation, worker_role, revoked, lacking, named
):
    installation.sql(f"REVOKE {revoked} FROM app")

    found, status = installation.doctor(DATABASE_URL=worker_role)

    _, tone, remedy = the(found, f"The role app lacks {lacking}")
    assert (tone, status) == ("bad", 1)
    assert named in remedy
    assert "OWNER TO app" in remedy
    assert "--no-owner --role=app" in remedy
    assert not [title for title in found if "could not be read" in title or "migrations" in title]
