"""Measures the cost of an idle worker: processor time until it is ready, and memory.

The pool's process delivers; its parent takes tasks from the broker. Shared pages are counted in
parts (PSS), and only while all run.
"""

from statistics import mean

from bench.database import own_database
from bench.meter import proportional_memory
from bench.processes import running_worker
from bench.results import Options, Result, ResultRow

_WORKERS = ("worker-web", "worker-android", "worker-ios", "worker-plan")
_PROCESSES = 2  # as without WORKER_CONCURRENCY


def measure(options: Options) -> Result:
    result = Result(remarks=[f"Pools of {_PROCESSES} processes."])
    memory: dict[str, list[float]] = {}
    cpu: dict[str, list[float]] = {}
    with own_database():
        for _ in range(options.rounds):
            with result.load.round():
                for name in _WORKERS:
                    with running_worker(name, processes=_PROCESSES) as worker:
                        own = [proportional_memory(pid) for pid in worker.pool]
                        parents = proportional_memory(worker.pid)
                    memory.setdefault(f"{name}, process of the pool", []).append(mean(own))
                    memory.setdefault(f"{name}, its parent", []).append(parents)
                    cpu.setdefault(name, []).append(worker.start.cpu)
    result.rows = [
        *(
            ResultRow(f"PSS of {name}", "MB", values, aim=_aim(name))
            for name, values in memory.items()
        ),
        *(
            ResultRow(f"start to ready, {name}", "CPU-s", each, aim="1.15")
            for name, each in cpu.items()
        ),
    ]
    return result


def _aim(name: str) -> str:
    return "38" if name.endswith("pool") else ""
