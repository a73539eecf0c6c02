"""Starts processes of the Procfile, with the servers and the settings of this process."""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil
from honcho.environ import parse_procfile

from bench.meter import Spent, spending

CHECKOUT: Final = Path(__file__).resolve().parents[1]
_READY: Final = "ready."  # in the log of a Celery worker


@dataclass(frozen=True)
class Worker:
    """`start`: the cost of the worker from its start until it was ready."""

    pid: int
    start: Spent

    @property
    def pool(self) -> list[int]:
        """The processes that run the tasks."""
        return [child.pid for child in psutil.Process(self.pid).children()]


@contextmanager
def running_worker(name: str, *, processes: int = 1) -> Iterator[Worker]:
    """Starts the Procfile's worker of this name and waits until it is ready. `processes`: how many
    its pool has."""
    with _started(name, WORKER_CONCURRENCY=str(processes)) as (process, log):
        with spending(process.pid) as start:
            while _READY not in log.read_text():
                if process.poll() is not None:
                    raise RuntimeError(f"{name} ended: {log.read_text()[-2000:]}")
                time.sleep(0.02)
        yield Worker(process.pid, start)


@contextmanager
def running_beat() -> Iterator[None]:
    with _started("beat"):
        yield


@contextmanager
def _started(name: str, **settings: str) -> Iterator[tuple["subprocess.Popen[bytes]", Path]]:
    command = parse_procfile((CHECKOUT / "Procfile").read_text()).processes[name]
    programs = f"{Path(sys.executable).parent}:{os.environ.get('PATH', os.defpath)}"
    environment = {**os.environ, **settings, "PATH": programs}
    with tempfile.NamedTemporaryFile("w", suffix=".log") as log:
        process = subprocess.Popen(
            ["/bin/sh", "-c", f"exec {command}"],
            cwd=CHECKOUT,
            env=environment,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        try:
            yield process, Path(log.name)
        finally:
            process.terminate()
            process.wait()
