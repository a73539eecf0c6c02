"""The processes that `make run` starts, each in its own session and with its own log file.

They have no pipe to the supervisor. So if the supervisor is killed, they are neither blocked nor
killed in the middle of their work. The next start finds them by their records and ends them.
"""

import os
import subprocess
import sys
import time
from collections import deque
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

from local.embedded.home import EmbeddedError, Home
from local.embedded.processes import ProcessRecord, end_groups, kill_groups
from local.embedded.server import last_lines

_RECORDS = "run/children.json"
_LEFTOVER_SECONDS = 3.0
_RESTARTS = 3  # within _RESTART_SECONDS; after that, restarting does not help
_RESTART_SECONDS = 60.0


@dataclass
class Child:
    name: str
    command: str
    without: Collection[str]
    log: Path
    process: subprocess.Popen[bytes]
    record: ProcessRecord
    restarts: deque[float] = field(default_factory=lambda: deque(maxlen=_RESTARTS))

    def how_it_ended(self) -> str:
        code = self.process.returncode
        return f"signal {-code}" if code < 0 else f"exit code {code}"


class Children:
    """The running processes, and their records in the home."""

    def __init__(self, home: Home, checkout: Path) -> None:
        self._home = home
        self._checkout = checkout
        self._children: dict[str, Child] = {}

    def end_leftovers(self) -> int:
        """Ends processes of a killed supervisor. Returns the number of process groups."""
        saved = self._home.read_json(_RECORDS)
        records = (
            [ProcessRecord(pid, started) for _, pid, started in saved]
            if isinstance(saved, list)
            else []
        )
        left = [record for record in records if record.group()]
        end_groups(left, seconds=_LEFTOVER_SECONDS)
        self._write_records()
        return len(left)

    def start(self, name: str, command: str, *, without: Collection[str] = ()) -> None:
        """Starts a shell command, as in the Procfile, with its own log. It gets this process's
        environment except for the settings `without`."""
        log = self._home.new_log(name)
        process = self._spawn(command, without, log)
        record = ProcessRecord.of(process.pid)
        self._children[name] = Child(name, command, without, log, process, record)
        self._write_records()

    def ended(self) -> list[Child]:
        return [child for child in self._children.values() if child.process.poll() is not None]

    def require_alive(self) -> None:
        """Raises EmbeddedError if a process has ended, with the last lines of its log."""
        for child in self.ended():
            raise EmbeddedError(
                f"{child.name} ended with {child.how_it_ended()}; the end of {child.log}:\n"
                + last_lines(child.log, 12)
            )

    def revive(self) -> list[str]:
        """Restarts the processes that ended. Returns a line for each.

        Raises EmbeddedError if one ends repeatedly.
        """
        return [self._revive(child) for child in self.ended()]

    def stop(self, names: list[str], *, seconds: float) -> None:
        """Tells these processes to finish their work and end. Kills them after `seconds`."""
        chosen = [self._children.pop(name) for name in names if name in self._children]
        end_groups([child.record for child in chosen], seconds=seconds)
        for child in chosen:
            child.process.wait()
        self._write_records()

    def names(self) -> list[str]:
        return list(self._children)

    def _revive(self, child: Child) -> str:
        now = time.monotonic()
        if len(child.restarts) == _RESTARTS and now - child.restarts[0] < _RESTART_SECONDS:
            self.require_alive()
        # its children may still hold its port or its tasks
        kill_groups([child.record])
        how = child.how_it_ended()
        child.restarts.append(now)
        child.process = self._spawn(child.command, child.without, child.log)
        child.record = ProcessRecord.of(child.process.pid)
        self._write_records()
        return f"{child.name} ended with {how} and was restarted (see {child.log})"

    def _spawn(self, command: str, without: Collection[str], log: Path) -> subprocess.Popen[bytes]:
        with log.open("ab") as output:
            return subprocess.Popen(
                ["/bin/sh", "-c", f"exec {command}"],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=self._checkout,
                env=_environment(without),
                # only the supervisor gets Ctrl-C, and stops the others in order
                start_new_session=True,
            )

    def _write_records(self) -> None:
        """Writes each record as [name, pid, start time]."""
        records = {name: child.record for name, child in self._children.items()}
        rows = [[name, record.pid, record.started] for name, record in records.items()]
        self._home.write_json(_RECORDS, rows)


def _environment(without: Collection[str]) -> dict[str, str]:
    """This process's environment without these settings (and NAME_FILE). Our programs are first in
    PATH."""
    kept = {k: v for k, v in os.environ.items() if k.removesuffix("_FILE") not in without}
    programs = str(Path(sys.executable).parent)
    return kept | {"PATH": f"{programs}{os.pathsep}{kept.get('PATH', '')}"}
