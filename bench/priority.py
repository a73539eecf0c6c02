"""Real-time priority for measured processes, so that a busy machine hardly delays them."""

import os
from contextlib import suppress
from pathlib import Path

import psutil


def put_first(*pids: int) -> str:
    """Gives real-time priority to the processes, their descendants, and processes that these start
    later. Returns a remark for the result."""
    try:
        for pid in pids:
            for process in [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]:
                _put_first(process.pid)
    except PermissionError:
        return "Without real-time priority, which this user may not give."
    return "With real-time priority over other processes."


def _put_first(pid: int) -> None:
    with suppress(FileNotFoundError):  # it has ended
        for thread in Path(f"/proc/{pid}/task").iterdir():
            with suppress(ProcessLookupError):
                os.sched_setscheduler(int(thread.name), os.SCHED_RR, os.sched_param(1))
