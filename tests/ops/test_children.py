"""The supervisor's children: which it starts again, gives up, and kills."""

import json

import psutil
import pytest

from local.embedded import EmbeddedError, Home
from local.supervisor.children import Children
from tests.ops.helpers import CHECKOUT, eventually, kill, set_clock

WITH_A_GRANDCHILD = "sh -c 'sleep 1001 & echo $! > {file}; exec sleep 1002'"
DEAF = """sh -c 'trap "" TERM; echo deaf; while true; do sleep 0.1; done'"""


@pytest.fixture
def children(home):
    children = Children(Home(home), CHECKOUT)
    yield children
    children.stop(children.names(), seconds=0)


def pid_of(home, name):
    records = json.loads((home / "run" / "children.json").read_text())
    return {child: pid for child, pid, _ in records}[name]


def is_running(pid):
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def start_family(children, home):
    """A process and a child of it; returns their pids."""
    file = home / "grandchild"
    children.start("parent", WITH_A_GRANDCHILD.format(file=file))
    eventually(lambda: file.exists() and file.read_text().endswith("\n"))
    return pid_of(home, "parent"), int(file.read_text())


def test_a_killed_child_is_started_again_without_its_orphans(children, home):
    parent, orphan = start_family(children, home)
    kill(parent)
    eventually(children.ended)
    (line,) = children.revive()
    assert line.startswith("parent ended with signal 9 and was restarted")
    assert not is_running(orphan)
    assert is_running(pid_of(home, "parent"))


def test_the_next_supervisor_ends_orphans_whose_leader_is_gone(children, home):
    parent, orphan = start_family(children, home)
    kill(parent)
    assert Children(Home(home), CHECKOUT).end_leftovers() == 1
    assert not is_running(orphan)


def test_records_of_processes_that_ended_long_ago_end_nothing(children, home):
    children.start("one", "sleep 1001")
    records = json.loads((home / "run" / "children.json").read_text())
    records[0][2] -= 100
    (home / "run" / "children.json").write_text(json.dumps(records))
    assert Children(Home(home), CHECKOUT).end_leftovers() == 0
    assert not children.ended()


def test_a_child_is_stopped_after_the_clock_was_set(children, home, monkeypatch):
    children.start("one", "sleep 1001")
    pid = pid_of(home, "one")
    set_clock(monkeypatch)
    children.stop(["one"], seconds=5)
    assert not is_running(pid)


def test_a_child_that_ends_repeatedly_is_given_up_with_the_end_of_its_log(children):
    children.start("broken", "sh -c 'echo the reason; exit 7'")
    for _ in range(3):
        eventually(children.ended)
        children.revive()
    eventually(children.ended)
    with pytest.raises(EmbeddedError, match=r"(?s)broken ended with exit code 7.*the reason"):
        children.revive()


def test_a_child_that_ignores_sigterm_is_killed_after_its_time(children, home):
    children.start("deaf", DEAF)
    eventually(lambda: (home / "log" / "deaf.log").read_text() == "deaf\n")
    deaf = pid_of(home, "deaf")
    children.stop(["deaf"], seconds=0.3)
    assert not is_running(deaf)


def test_a_child_that_drains_gets_its_time(children, home):
    done = home / "done"
    children.start(
        "slow", f"sh -c 'trap \"sleep 0.5; touch {done}; exit\" TERM; echo up; sleep 600 & wait'"
    )
    eventually(lambda: (home / "log" / "slow.log").read_text() == "up\n")
    children.stop(["slow"], seconds=30)
    assert done.exists()


def test_the_log_of_the_previous_start_is_kept(children, home):
    children.start("speaker", "echo first")
    eventually(children.ended)
    children.stop(["speaker"], seconds=1)
    children.start("speaker", "echo second")
    eventually(children.ended)
    assert (home / "log" / "speaker.log").read_text() == "second\n"
    assert (home / "log" / "speaker.log.1").read_text() == "first\n"
