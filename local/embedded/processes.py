"""Processes that may outlive the process that started them, identified by pid and start time."""

import os
import signal
import time
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Self
from zlib import crc32

import psutil

_TOLERANCE_SECONDS = 2.0
_POLL_SECONDS = 0.02


@dataclass(frozen=True)
class ProcessRecord:
    """Identifies a process. A pid alone is not enough, because the system reuses pids."""

    pid: int
    started: float  # as of `_started`

    @classmethod
    def of(cls, pid: int) -> Self:
        """The record of a running process. Raises ProcessLookupError if there is none."""
        try:
            return cls(pid, _started(psutil.Process(pid)))
        except psutil.NoSuchProcess as error:
            raise ProcessLookupError(pid) from error

    def is_alive(self) -> bool:
        """Whether this same process still runs. A zombie does not count as running."""
        try:
            process = psutil.Process(self.pid)
            started = _started(process)
            has_ended: bool = process.status() == psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return False
        return abs(started - self.started) < _TOLERANCE_SECONDS and not has_ended

    def signal(self, number: signal.Signals) -> None:
        """Sends the signal if this same process still runs."""
        if self.is_alive():
            _kill(self.pid, number)

    def group(self) -> list["ProcessRecord"]:
        """The living processes of the group that this process leads or led."""
        members = [self._member(process) for process in psutil.process_iter()]
        alive = [member for member in members if member and member.is_alive()]
        reused = any(member.pid == self.pid and not self.is_alive() for member in alive)
        return [] if reused else alive

    def _member(self, process: psutil.Process) -> "ProcessRecord | None":
        try:
            if os.getpgid(process.pid) != self.pid:
                return None
            started = _started(process)
        except (ProcessLookupError, psutil.NoSuchProcess):
            return None
        is_later = started > self.started - _TOLERANCE_SECONDS
        return ProcessRecord(process.pid, started) if is_later else None


def _started(process: psutil.Process) -> float:
    """The start time in seconds, on a clock that cannot be set and that has another zero after each
    boot. On systems other than Linux it is psutil's, which moves with the system's clock."""
    created: float = process.create_time()
    begin = _begin()
    return created if begin is None else created - psutil.boot_time() + begin


@cache
def _begin() -> float | None:
    try:
        return float(crc32(Path("/proc/sys/kernel/random/boot_id").read_bytes()))
    except OSError:
        return None


def wait_ended(records: Iterable[ProcessRecord], *, seconds: float) -> list[ProcessRecord]:
    """Waits at most `seconds` until all have ended. Returns those that have not."""
    deadline = time.monotonic() + seconds
    alive = [record for record in records if record.is_alive()]
    while alive and time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)
        alive = [record for record in alive if record.is_alive()]
    return alive


def end_groups(leaders: Iterable[ProcessRecord], *, seconds: float) -> None:
    """Sends SIGTERM to the leaders, so that they can end their children, then SIGKILL to the rest.

    Returns after about `seconds` at most. Then no process of these groups is alive.
    """
    leaders = list(leaders)
    for leader in leaders:
        leader.signal(signal.SIGTERM)
    wait_ended(leaders, seconds=seconds)
    kill_groups(leaders)


def kill_groups(leaders: Iterable[ProcessRecord]) -> None:
    """Sends SIGKILL to all processes of these groups, and waits until they have ended."""
    members = [member for leader in leaders for member in leader.group()]
    for member in members:
        member.signal(signal.SIGKILL)
    wait_ended(members, seconds=1.0)


def _kill(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return
