"""PgBouncer accepts connections also while PostgreSQL is away."""

import json

from tests import forked
from tests.faults.exactness import assert_exact


def test_a_send_is_refused_in_time_while_postgresql_is_away(system, channel):
    """In less time than the client waits, and PgBouncer's own 120 s."""
    channel.subscribe(5)
    system.stop_postgres()
    refused = channel.ask("a key", target_platforms=["web"])
    system.revive_servers()

    assert (refused.status, refused.body["code"]) == (503, "database_unavailable")
    assert_exact(channel, [channel.send()])


def test_the_doctor_advises_no_pgbouncer_where_there_is_one(system):
    """Processes may open more connections to it than PostgreSQL allows."""
    many = system.environment | {"WEB_CONCURRENCY": "200"}
    _, said = forked.run("python manage.py doctor --json", many, timeout=300)

    report, _ = json.JSONDecoder().raw_decode(said, said.index("{\n"))  # after lines of the log
    findings = report["findings"]
    titles = [each["title"] for each in findings if each["subject"] == "database"]
    assert any(title.startswith("PostgreSQL ") for title in titles)
    assert not any("max_connections" in title for title in titles)
