"""What a killed test run leaves behind."""

import json

from local.embedded.processes import ProcessRecord
from tests.ops.helpers import eventually, eventually_none_running, kill, read_until, running, spawn

_RUN = """
import subprocess, sys
from pathlib import Path
from local import embedded
from tests import leftovers

home = Path(sys.argv[1])
leftovers.end_home_with_us(home)
servers = embedded.start(home, postgres=False, durable=False)
group = subprocess.Popen(
    ["/bin/sh", "-c", "sleep 1001 & wait"], stdout=subprocess.DEVNULL, start_new_session=True
)
leftovers.end_group_with_us(group.pid)
print("started", flush=True)
sys.stdin.readline()
"""


def test_a_killed_runs_servers_and_processes_end_and_its_home_is_deleted(home):
    run = spawn(["-c", _RUN, str(home)], home)
    read_until(run, "started")
    server = ProcessRecord.of(json.loads((home / "run" / "redis.json").read_text())["pid"])
    eventually(lambda: "sleep 1001" in running(home))

    kill(run.pid)

    assert eventually_none_running(home) == []
    eventually(lambda: not server.is_alive() and not home.exists())
    run.communicate()
