"""PgBouncer accepts connections also while PostgreSQL is away."""

import http.client
import json
from contextlib import closing

from tests import forked
from tests.faults.exactness import assert_exact
from tests.faults.processes import WORKERS

_PATIENCE = 60  # seconds, of a client: half of what PgBouncer lets a request wait by default


def test_a_send_is_refused_long_before_its_client_gives_up_while_postgresql_is_away(
    system, channel
):
    """PgBouncer lets those wait that come first, and refuses others at once."""
    channel.subscribe(5)
    for name in (*WORKERS, "beat"):
        system.pause(name)  # they would come first
    system.stop_postgres()
    try:
        first, next_ = _send(channel), _send(channel)
    finally:
        system.revive_servers()
        for name in (*WORKERS, "beat"):
            system.wake(name)

    assert first == next_ == (503, "database_unavailable")
    assert_exact(channel, [channel.send()])


def _send(channel):
    """The answer's status and code."""
    service = http.client.HTTPConnection("127.0.0.1", channel.system.port, timeout=_PATIENCE)
    headers = {"Authorization": f"Key {channel.api_key}", "Content-Type": "application/json"}
    with closing(service):
        service.request("POST", "/send-notification", '{"body": "Fresh bread"}', headers)
        answer = service.getresponse()
        return answer.status, json.loads(answer.read())["code"]


def test_the_doctor_examines_the_database_behind_pgbouncer(system):
    _, said = forked.run("python manage.py doctor --json", system.environment, timeout=300)

    report, _ = json.JSONDecoder().raw_decode(said, said.index("{\n"))  # after lines of the log
    codes = {each["code"] for each in report["findings"]}
    assert "database" in codes
    assert not codes & {"database_unavailable", "database_silent", "unexamined"}
