"""A backup is restored as docs/upgrade.md says, while a send is in progress in it."""

import os
import re
import subprocess
from collections import Counter
from uuid import uuid4

from django.conf import settings

from tests.faults.exactness import assert_exact, codes, wait_ended
from tests.faults.processes import EVERYTHING, PLATFORMS, until
from tests.faults.support import (
    assert_called_once,
    audience,
    is_planned,
    many,
    requests,
    send_later,
    status,
)


def test_a_restored_backup_sends_what_is_new_and_nothing_twice(system, channel, tmp_path):
    dump, restore, statements = commands_of_the_docs()
    audience(channel, many(50))
    ended, ahead = channel.send(*PLATFORMS), send_later(channel, *PLATFORMS)
    before_the_loss, after_the_loss = (send_later(channel, *PLATFORMS) for _ in range(2))
    assert_exact(channel, [ended])
    system.pause("worker-web")
    running = channel.send("web")
    until(lambda: is_planned(channel, running), "it is planned")
    in_shell(system, dump, tmp_path)
    system.wake("worker-web")
    assert_exact(channel, [running])
    before = requests(channel)
    system.tell_to_stop(*EVERYTHING)
    lost_at = system.value("SELECT now()")

    system.use_database(empty_database(system))
    in_shell(system, restore, tmp_path)
    for notification, seconds in ((before_the_loss, -1), (after_the_loss, 0)):
        system.rows(_WAS_DUE, [lost_at, seconds, notification])
    system.rows(statements.replace(_EXAMPLE_OF_A_LOSS, lost_at.isoformat()))
    system.run_all()
    wait_ended(channel, [running])
    new = channel.send(*PLATFORMS)

    assert_exact(channel, [ended, new, after_the_loss])
    assert codes(channel, running) == Counter(expired=many(50))
    assert status(channel, before_the_loss) == "cancelled"
    assert status(channel, ahead) == "pending"
    assert_called_once(channel, before + 2 * 3 * many(50))


def commands_of_the_docs():
    """How to save, to restore, and what to do before the processes start."""
    page = (settings.BASE_DIR / "docs" / "upgrade.md").read_text(encoding="utf-8")
    section = page.partition("\n## Back up and restore\n")[2].partition("\n## ")[0]
    dump, restore = re.findall(r"```sh\n(.*?)```", section, re.DOTALL)
    (statements,) = re.findall(r"```sql\n(.*?)```", section, re.DOTALL)
    assert _EXAMPLE_OF_A_LOSS in statements
    return dump, restore, statements


def in_shell(system, command, folder):
    """Runs it with the programs of the server's own version."""
    programs = system.value("SELECT setting FROM pg_config WHERE name = 'BINDIR'")
    environment = system.environment | {"PATH": f"{programs}:{os.environ['PATH']}"}
    subprocess.run(["/bin/sh", "-ec", command], cwd=folder, env=environment, check=True)


def empty_database(system):
    """The name of a new database on the same server."""
    name = f"restored_{uuid4().hex}"
    system.rows(f"CREATE DATABASE {name}")
    return name


_EXAMPLE_OF_A_LOSS = "2026-11-24 03:00+00"
_WAS_DUE = """
UPDATE notifications_app_notification
SET scheduled_at = %s + make_interval(secs => %s) WHERE id = %s
"""
