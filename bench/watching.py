"""Watches a service while requests are made: its memory, and whether it says that it is healthy."""

import statistics
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Final

import psutil
from typing_extensions import override

from bench.meter import proportional_memory
from bench.system import System
from pushsvc.local.supervisor.http import UnreachableError

_EACH_SECONDS: Final = 1.0
_MEMORY_EACH_SECONDS: Final = 5.0


@dataclass
class Watch:
    """`memory`: (seconds since the start, MB of all processes). `health`: milliseconds that each
    200 of `/healthz` and `/readyz` took."""

    memory: list[tuple[float, float]] = field(default_factory=list)
    health: list[float] = field(default_factory=list)
    unhealthy: int = 0

    @property
    def growth(self) -> float:
        """MB a minute, of a straight line through the later half."""
        later = self.memory[len(self.memory) // 2 :]
        if len(later) < 2:
            return 0.0
        seconds, sizes = zip(*later, strict=True)
        return 60 * statistics.linear_regression(seconds, sizes).slope

    @override
    def __str__(self) -> str:
        slowest = max(self.health, default=0.0)
        return (
            f"Health: {len(self.health)} times 200, at most {slowest:.0f} ms;"
            f" {self.unhealthy} times another answer or none."
            f" Memory: {self.memory[0][1]:.0f} MB at first, {self.memory[-1][1]:.0f} MB at last;"
            f" {self.growth:+.2f} MB a minute in the later half."
        )


@contextmanager
def watching(system: System) -> Iterator[Watch]:
    watch, is_over = Watch(), threading.Event()
    threads = [
        threading.Thread(target=_look_at_health, args=(system, watch, is_over)),
        threading.Thread(target=_look_at_memory, args=(system.pids[0], watch, is_over)),
    ]
    for thread in threads:
        thread.start()
    try:
        yield watch
    finally:
        is_over.set()
        for thread in threads:
            thread.join()


def _look_at_health(system: System, watch: Watch, is_over: threading.Event) -> None:
    while not is_over.wait(_EACH_SECONDS):
        for path in ("/healthz", "/readyz"):
            began = time.perf_counter()
            try:
                status = system.service.request("GET", path).status
            except UnreachableError:
                status = None
            if status == 200:
                watch.health.append(1000 * (time.perf_counter() - began))
            else:
                watch.unhealthy += 1


def _look_at_memory(pid: int, watch: Watch, is_over: threading.Event) -> None:
    began = time.monotonic()
    while True:
        watch.memory.append((time.monotonic() - began, _memory(pid)))
        if is_over.wait(_MEMORY_EACH_SECONDS):
            break


def _memory(pid: int) -> float:
    """PSS in MB of the process and its descendants."""
    total = 0.0
    for process in [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]:
        with suppress(psutil.NoSuchProcess, FileNotFoundError, ProcessLookupError):
            total += proportional_memory(process.pid)
    return total
