"""Measures the processor time of a piece of work, and how busy the machine was meanwhile."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from typing_extensions import override

_SIGNING_SECONDS = 0.3
_CORES = psutil.cpu_count() or 1


@dataclass
class Spent:
    """Seconds of processor time, and seconds of wall-clock time."""

    cpu: float = 0.0
    elapsed: float = 0.0


@contextmanager
def spending(*pids: int) -> Iterator[Spent]:
    """Measures the processes and their descendants during the block."""
    spent = Spent()
    before, began = _trees_cpu(pids), time.perf_counter()
    yield spent
    spent.elapsed = time.perf_counter() - began
    spent.cpu = _trees_cpu(pids) - before


def tree_cpu(pid: int) -> float:
    """Processor seconds of the process and its descendants. Ended ones count for their parent."""
    used = 0.0
    for process in [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]:
        try:
            used += sum(process.cpu_times()[:4])
        except psutil.NoSuchProcess:
            continue
    return used


def proportional_memory(pid: int) -> float:
    """PSS in MB: pages that processes share are counted in parts."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) / 1000
    raise RuntimeError(f"/proc/{pid}/smaps_rollup names no Pss")


@dataclass
class Load:
    """How busy the machine was in each round, so that a reader can judge the figures.

    `others`: the part of all cores' time, from 0 to 1, that processes outside of the bench used.
    `signatures`: how many P-256 signatures one core made in a second before the round.
    """

    others: list[float] = field(default_factory=list)
    signatures: list[float] = field(default_factory=list)

    @contextmanager
    def round(self) -> Iterator[None]:
        self.signatures.append(_signatures_per_second())
        busy, own, began = _machine_cpu(), tree_cpu(os.getpid()), time.perf_counter()
        yield
        elapsed = time.perf_counter() - began
        foreign = _machine_cpu() - busy - (tree_cpu(os.getpid()) - own)
        self.others.append(min(1.0, max(0.0, foreign) / (elapsed * _CORES)))

    @override
    def __str__(self) -> str:
        if not self.others:
            return "The load of the machine was not measured."
        return (
            f"Other processes had {min(self.others):.0%} to {max(self.others):.0%} of the machine;"
            f" one core made {min(self.signatures):,.0f} to {max(self.signatures):,.0f}"
            " P-256 signatures a second."
        )


def _signatures_per_second() -> float:
    key = ec.generate_private_key(ec.SECP256R1())
    made, end = 0, time.perf_counter() + _SIGNING_SECONDS
    while time.perf_counter() < end:
        key.sign(b"pushsvc", ec.ECDSA(hashes.SHA256()))
        made += 1
    return made / _SIGNING_SECONDS


def _trees_cpu(pids: tuple[int, ...]) -> float:
    return sum(tree_cpu(pid) for pid in pids)


def _machine_cpu() -> float:
    times = psutil.cpu_times()
    return float(times.user + times.system + times.nice + times.softirq + times.irq)
