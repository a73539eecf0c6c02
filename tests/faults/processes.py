"""The processes of the Procfile, started as in production. They may be killed, paused or told to
stop."""

import contextlib
import json
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

from local.embedded.processes import ProcessRecord
from local.supervisor.http import UnreachableError
from tests import forked
from tests.faults.scale import patience

PLATFORMS = ("web", "android", "ios")
DELIVERING = tuple(f"worker-{platform}" for platform in PLATFORMS)
WORKERS = ("worker-plan", *DELIVERING)
EVERYTHING = ("web", *WORKERS, "beat")
HOOKS = "worker-hooks"  # started by the tests that need it
CONCURRENCY = 2
_TOO_LONG = 50.0
_STOP_SECONDS = 60.0
_IS_STOPPING = "worker: begins no further work"


class Processes:
    """`service` is where web answers. `unclean_ends`: the names of processes that were killed or
    lost their lease since `begin_log`, once for each time. They bound the duplicates that a test
    may see."""

    def __init__(self, home, environment, service):
        self.environment = environment
        self.service: Any = service
        self.unclean_ends = []
        self._log_path = home / "log" / "processes.log"
        self._log = self._log_path.open("ab")
        self._log_begins = 0
        self._started_at = {}
        self._running = {name: [] for name in (*EVERYTHING, HOOKS)}
        self._one_stop_at_a_time = threading.Lock()

    # What they say

    def begin_log(self):
        """From now on, `logged` begins here."""
        self.unclean_ends = []
        self._log.flush()
        self._log_begins = self._log_path.stat().st_size

    def logged(self, event):
        """The lines of all processes about the event since the test began."""
        with self._log_path.open("rb") as log:
            log.seek(self._log_begins)
            text = log.read().decode(errors="replace")
        return [line for line in text.splitlines() if event in line]

    def fields(self, event):
        """Those of each of these lines that is whole."""
        return [json.loads(line)["fields"] for line in self.logged(event) if line.endswith("}")]

    # Start and end

    def run_all(self):
        for name in EVERYTHING:
            if not self.alive(name):
                self.start(name)

    def start(self, name, checkout=forked.CHECKOUT, **changed):
        """One more process of this name; `changed`: variables of its environment."""
        command = forked.procfile(checkout)[name]
        # Nodes of one kind on one host need different names.
        if self._running[name] and name in WORKERS:
            command += f" --name {name}-{len(self._running[name]) + 1}"
        process = forked.start(command, self.environment | changed, self._log, checkout)
        self._running[name].append(process)
        self._started_at[name] = time.time()
        return process

    def alive(self, name):
        self._running[name] = [each for each in self._running[name] if each.poll() is None]
        return list(self._running[name])

    def kill(self, *names):
        """SIGKILL to all processes of these names and to their children."""
        for name in names:
            for process in self.alive(name):
                self.unclean_ends.append(name)
                self._signal(process, signal.SIGKILL)
                process.wait()

    def tell_to_stop(self, *names):
        """SIGTERM to the processes themselves, as at a deploy; their exit codes."""
        processes = [process for name in names for process in self.alive(name)]
        for process in processes:
            self._terminate(process)
        return self.exit_codes(processes)

    def begin_to_stop(self, name):
        """SIGTERM to a worker. On return it begins no further work, and has not ended."""
        (process,) = self.alive(name)
        with self._one_stop_at_a_time:
            before = len(self.logged(_IS_STOPPING))
            self._terminate(process)
            until(lambda: len(self.logged(_IS_STOPPING)) > before, f"{name} heard SIGTERM")
        return process

    @staticmethod
    def exit_codes(processes):
        return [process.wait(timeout=patience(_STOP_SECONDS)) for process in processes]

    def pause(self, name):
        """Stops the processes; on return no thread of theirs runs."""
        for process in self.alive(name):
            self._signal(process, signal.SIGSTOP)
            until(lambda pid=process.pid: _is_stopped(pid), f"{name} has stopped")

    def wake(self, name):
        for process in self.alive(name):
            self._signal(process, signal.SIGCONT)

    def replace(self, *names, checkout=forked.CHECKOUT):
        """A deploy: old processes finish while new ones start, which run the checkout's code."""
        for name in names:
            old = self.alive(name)
            if name != "web":  # its port is in use for as long as it runs
                self.start(name, checkout)
            for process in old:
                self._terminate(process)
            for process in old:
                assert process.wait(timeout=patience(_STOP_SECONDS)) == 0, (
                    f"{name} did not end well"
                )
            if name == "web":
                self.start(name, checkout)
                until(self.is_up, "the service is up again")

    @staticmethod
    def _terminate(process):
        """SIGTERM. A process that is still being loaded would die of it, so this waits."""
        until(lambda: process.poll() is not None or _catches_sigterm(process.pid), "it has begun")
        process.send_signal(signal.SIGTERM)

    @staticmethod
    def _signal(process, number):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)

    def end_all(self):
        processes = [process for name in EVERYTHING for process in self.alive(name)]
        for process in processes:
            self._signal(process, signal.SIGCONT)
            self._signal(process, signal.SIGKILL)
            process.wait()
        self._log.close()

    def is_up(self):
        try:
            return self.service.request("GET", "/readyz").status == 200
        except UnreachableError:
            return False


def until(is_so, what, *, seconds=_TOO_LONG):
    """Waits for what other processes do; the limit is for what never happens."""
    end = time.monotonic() + patience(seconds)
    while not (value := is_so()):
        assert time.monotonic() < end, f"it did not happen: {what}"
        time.sleep(0.03)
    return value


def _catches_sigterm(pid):
    status = Path(f"/proc/{pid}/status").read_text()  # proc_pid_status(5)
    (caught,) = [line.split()[1] for line in status.splitlines() if line.startswith("SigCgt:")]
    return int(caught, 16) >> (signal.SIGTERM - 1) & 1


def _is_stopped(leader):
    """Whether every thread of the process group is stopped; proc_pid_stat(5)."""
    members = ProcessRecord.of(leader).group()
    stats = [each for m in members for each in Path(f"/proc/{m.pid}/task").glob("*/stat")]
    return all(each.read_text().rpartition(") ")[2].startswith("T") for each in stats)
