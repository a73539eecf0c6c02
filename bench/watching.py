"""Watches a service during requests: its memory, and its health checks."""

import statistics
import threading
import time
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Final

import psutil
from typing_extensions import override

from bench.meter import proportional_memory
from bench.system import System
from local.supervisor.http import UnreachableError

_EACH_SECONDS: Final = 1.0
_MEMORY_EACH_SECONDS: Final = 5.0


@dataclass
class Memory:
    """The memory of one program with its processes. `samples`: (seconds since the start, MB)."""

    samples: list[tuple[float, float]] = field(default_factory=list)

    @property
    def growth(self) -> float:
        """MB per minute, from a straight line through the later half of the samples."""
        later = self.samples[len(self.samples) // 2 :]
        if len(later) < 2:
            return 0.0
        seconds, sizes = zip(*later, strict=True)
        return 60 * statistics.linear_regression(seconds, sizes).slope

    @override
    def __str__(self) -> str:
        _, sizes = zip(*self.samples, strict=True)
        shown = (sizes[0], sizes[len(sizes) // 2], sizes[-1])
        return " | ".join([*(f"{size:.1f}" for size in shown), f"{self.growth:+.2f}"])


@dataclass
class Watch:
    """`memory`: by the program's name. `health`: milliseconds of each 200 of `/healthz` and
    `/readyz`."""

    memory: dict[str, Memory] = field(default_factory=lambda: defaultdict(Memory))
    health: list[float] = field(default_factory=list)
    unhealthy: int = 0

    @override
    def __str__(self) -> str:
        slowest = max(self.health, default=0.0)
        rows = [f"| {name} | {memory} |" for name, memory in self.memory.items()]
        return "\n".join(
            [
                f"Health: {len(self.health)} times 200, at most {slowest:.0f} ms;"
                f" {self.unhealthy} times another answer or none.\n",
                "| memory | MB at first | at half time | at last | MB a minute in the later half |",
                "|---|--:|--:|--:|--:|",
                *rows,
            ]
        )


@contextmanager
def watching(system: System) -> Iterator[Watch]:
    watch, is_over = Watch(), threading.Event()
    threads = [
        threading.Thread(target=_look_at_health, args=(system, watch, is_over)),
        threading.Thread(target=_look_at_memory, args=(system, watch, is_over)),
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


def _look_at_memory(system: System, watch: Watch, is_over: threading.Event) -> None:
    began = time.monotonic()
    while True:
        for name, size in _memory(system.processes()).items():
            watch.memory[name].samples.append((time.monotonic() - began, size))
        if is_over.wait(_MEMORY_EACH_SECONDS):
            break


def _memory(programs: Mapping[str, int]) -> dict[str, float]:
    """PSS in MB of each program with its children."""
    return {
        name: sum(_size(each) for each in _tree(pid, programs.values()))
        for name, pid in programs.items()
    }


def _tree(pid: int, without: Collection[int]) -> Iterator[int]:
    """The process and its descendants, except for trees that begin at one of `without`."""
    yield pid
    with suppress(psutil.NoSuchProcess):
        for child in psutil.Process(pid).children():
            if child.pid not in without:
                yield from _tree(child.pid, without)


def _size(pid: int) -> float:
    """The memory of a process in MB; 0 if it has ended."""
    with suppress(FileNotFoundError, ProcessLookupError):
        return proportional_memory(pid)
    return 0.0
