"""Stops the processes and servers that a killed pytest leaves behind.

A watcher process reads from a pipe that only pytest writes to. The pipe closes when pytest ends,
for whatever reason. The watcher then stops everything that was named on the pipe and still runs.
After a run that stopped everything itself, nothing is left to stop.
"""

import atexit
import functools
import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path

from local.embedded.home import Home
from local.embedded.processes import ProcessRecord, kill_groups, wait_ended

CHECKOUT = Path(__file__).resolve().parent.parent


def end_group_with_us(pid):
    """Registers the process group that this process leads."""
    record = ProcessRecord.of(pid)
    _tell({"pid": record.pid, "started": record.started})


def end_home_with_us(home):
    """Registers the embedded servers of this home, and its folder."""
    _tell({"home": str(home)})


def end_network_with_us():
    """Registers the network of `tests.faults.cluster`."""
    _tell({"network": True})


def _tell(thing):
    _watcher().stdin.write(json.dumps(thing).encode() + b"\n")


@functools.cache
def _watcher():
    watcher = subprocess.Popen(
        [sys.executable, "-m", "tests.leftovers"],
        cwd=CHECKOUT,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        bufsize=0,
        # A signal that kills pytest's process group does not reach the watcher.
        start_new_session=True,
    )
    atexit.register(watcher.communicate)
    return watcher


def _watch():
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    things = [json.loads(line) for line in sys.stdin]
    homes = [Path(thing["home"]) for thing in things if "home" in thing]
    kill_groups(ProcessRecord(thing["pid"], thing["started"]) for thing in things if "pid" in thing)
    servers = [record for home in homes for record in _servers(Home(home))]
    for number in (signal.SIGCONT, signal.SIGINT):
        for server in servers:
            server.signal(number)
    for server in wait_ended(servers, seconds=5.0):
        server.signal(signal.SIGKILL)
    for home in homes:
        shutil.rmtree(home, ignore_errors=True)
    if any("network" in thing for thing in things):
        from tests.faults.cluster import network  # seldom there, and it imports this module

        network.remove()


def _servers(home):
    for file in home.root.glob("run/*.json"):
        saved = home.read_json(f"run/{file.name}")
        if isinstance(saved, dict) and "started" in saved:
            yield ProcessRecord(saved["pid"], saved["started"])


if __name__ == "__main__":
    _watch()
