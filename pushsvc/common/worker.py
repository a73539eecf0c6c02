"""What worker processes have in common: whether to stop, and how many are alive.

The parent of a prefork worker gets SIGTERM, but its children, which do the work, do not. So the
flag is a byte of shared memory that is allocated before the fork.
"""

import gc
import mmap
import os
import signal
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple

import redis
import structlog
from celery import bootsteps
from celery.signals import (
    task_postrun,
    task_prerun,
    worker_before_create_process,
    worker_process_init,
    worker_process_shutdown,
    worker_shutting_down,
)
from typing_extensions import override

from pushsvc.common import fingerprints, metrics
from pushsvc.common.platforms import Platform
from pushsvc.common.store import metric_reports, presence
from pushsvc.common.store.redis_client import Script, ScriptCall, redis_client, try_to_write

logger = structlog.stdlib.get_logger(__name__)

QUEUES: Final = ("tick", "plan", *Platform, "hooks")

_POOLS: Final = ("prefork", "solo")
_STOPPING = mmap.mmap(-1, 1)
_STDOUT: Final = 1
_SHORTEST_GAP = 0.025
_LONGEST_GAP = 0.1
_ANNOUNCE_SECONDS = 5.0
_ALIVE_SECONDS = 15.0
_FORGOTTEN_SECONDS = 3600.0
_TICKED = "pushsvc:ticked"
_CLOCKS = "pushsvc:clocks"
# By Redis's clock, because clocks of machines may differ; by how much, is written too. Forgets all
# machines when there are many, because most of them are gone then.
_ANNOUNCE = Script(
    """
local time = redis.call('TIME')
redis.call('HSET', nodes, node, time[1] .. ':' .. processes)
if redis.call('HLEN', clocks) > 1000 then redis.call('DEL', clocks) end
redis.call('HSET', clocks, machine, time[1] .. ':' .. (own_time - time[1] - time[2] / 1000000))
""",
    keys=("nodes", "clocks"),
    texts=("node", "machine"),
    numbers=("processes", "own_time"),
)
_READ = Script("return {redis.call('TIME')[1], redis.call('HGETALL', written)}", keys=("written",))


class Liveness(NamedTuple):
    """`processes`: how many served each queue in the last 15 s. `has_ticked`: whether a tick ended
    in the last 15 s."""

    processes: dict[str, int]
    has_ticked: bool


def is_stopping() -> bool:
    """Whether this worker was told to stop. If so, it must begin no further work."""
    return _STOPPING[0] != 0


@worker_shutting_down.connect(weak=False)
def _remember_stopping(**_: Any) -> None:
    """Prints a line, after which no child begins further work. It does not log, because it runs in
    the handler of a signal, which may have interrupted the log."""
    _STOPPING[0] = 1
    with suppress(OSError):
        os.write(_STDOUT, b"worker: begins no further work\n")


@worker_before_create_process.connect(weak=False)
def _share_memory(**_: Any) -> None:
    """Freezes loaded objects. Processes share memory from before the fork until one writes to it,
    and the garbage collector would write to every object that it visits."""
    fingerprints.code()
    gc.collect()
    gc.freeze()


@worker_process_init.connect(weak=False)
def _collect_less_often(**_: Any) -> None:
    """Runs the garbage collector less often. Messages leave few cycles, and a run after each 700
    new objects, as in Python, took 2 % of a worker's time."""
    gc.set_threshold(10_000)


@worker_process_init.connect(weak=False)
def _outlive_signals_to_the_group(**_: Any) -> None:
    """Ignores SIGTERM in children. Service managers and terminals send signals to every process of
    a group, and a killed child would lose its calls in flight. The parent also gets the signal, and
    ends the child after its task."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # billiard replaces any other handler


@worker_process_init.connect(weak=False)
def _show_presence(**_: Any) -> None:
    presence.start()


@worker_process_init.connect(weak=False)
def _report_metrics(**_: Any) -> None:
    reporter = metric_reports.start("worker")
    worker_process_shutdown.connect(lambda **_: reporter.report_rest(), weak=False)


class _Busy:
    """Counts how long a process spends on tasks, which run one after the other."""

    def __init__(self) -> None:
        self._began = 0.0

    def begin(self, **_: Any) -> None:
        self._began = time.monotonic()

    def end(self, task: Any, **_: Any) -> None:
        queue = (task.request.delivery_info or {}).get("routing_key", "")
        if queue in QUEUES:
            metrics.WORKER_SECONDS.add(time.monotonic() - self._began, queue)


_busy = _Busy()
task_prerun.connect(_busy.begin, weak=False)
task_postrun.connect(_busy.end, weak=False)


class Pace:
    """Delays turns of a task in this process while each finds several small things to do, so that
    more of them share a turn. After a turn with several, the next begins 25 ms later than that one
    did, then 50, at most 100. After a turn with one or none, half of it."""

    def __init__(self) -> None:
        self._began = self._gap = 0.0
        self._found = 0

    def begin(self) -> None:
        """Waits until the next turn may begin."""
        if self._found > 1:
            self._gap = min(max(2 * self._gap, _SHORTEST_GAP), _LONGEST_GAP)
        else:
            self._gap = self._gap / 2 if self._gap > _SHORTEST_GAP else 0.0
        self._found = 0
        wait = self._began + self._gap - time.monotonic()
        if wait > 0:
            time.sleep(wait)
            _busy.begin()  # the wait was no work
        self._began = time.monotonic()

    def found(self, count: int) -> None:
        """Adds to what this turn found."""
        self._found += count


class Announce(bootsteps.StartStopStep):
    """Writes to Redis every five seconds which queues this node serves, with how many processes,
    until it is told to stop.

    Refuses threads instead of processes, before the worker connects to anything: a process has one
    event loop and one client for each platform, which its tasks use one after the other.
    """

    requires = ("celery.worker.components:Timer", "celery.worker.components:Pool")

    def __init__(self, parent: Any, **kwargs: Any) -> None:
        super().__init__(parent, **kwargs)
        pool = parent.pool_cls.__module__.rpartition(".")[2]
        if pool not in _POOLS:
            sys.exit(
                f"A worker's tasks need processes of their own. Start it without --pool={pool}."
            )

    @override
    def start(self, parent: Any) -> None:
        self._announce(parent)
        parent.timer.call_repeatedly(_ANNOUNCE_SECONDS, self._announce, (parent,))

    def _announce(self, worker: Any) -> None:
        if is_stopping():  # its timer goes on until the last call has ended
            return
        try:
            for queue in worker.app.amqp.queues.consume_from:
                call = _ANNOUNCE(
                    nodes=_key(queue),
                    clocks=_CLOCKS,
                    node=worker.hostname,
                    machine=worker.hostname.rpartition("@")[2],
                    processes=worker.pool.num_processes,
                    own_time=time.time(),
                )
                redis_client().run(call)
                _forget_dead(queue)
        except redis.RedisError:
            logger.debug("worker.unannounced")


def _forget_dead(queue: str) -> None:
    """Deletes nodes that no longer report. Nodes have names of hosts, and each deployment may bring
    new hosts."""
    dead = [node for node, age, _ in _nodes(queue) if age > _FORGOTTEN_SECONDS]
    if dead:
        redis_client().hdel(_key(queue), *dead)


def live_processes(queue: str) -> int:
    """How many worker processes served the queue in the last 15 s; 0 while Redis is away."""
    try:
        return live(redis_client().run(live_call(queue))[0])
    except redis.RedisError:
        return 0


def live_call(queue: str) -> ScriptCall:
    """The call of `live_processes`."""
    return _READ(written=_key(queue))


def live(result: Sequence[Any]) -> int:
    """What `live_processes` returns, from the result of its call."""
    return _live((node, age, int(processes)) for node, age, processes in _ages(result))


def announced() -> dict[str, int]:
    """How many processes each worker has, by its name (worker@machine). Only workers with a
    heartbeat in the last 10 s, because the last reports of their processes may be 5 s older, and
    count for 15 s. Empty while Redis is away."""
    try:
        return {
            node: processes
            for queue in QUEUES
            for node, age, processes in _nodes(queue)
            if age <= 2 * _ANNOUNCE_SECONDS
        }
    except redis.RedisError:
        return {}


def clocks() -> dict[str, float]:
    """By how many seconds the clock of each machine with workers was ahead of Redis's in the last
    15 s. Empty while Redis is away."""
    try:
        found = list(_read(_CLOCKS))
    except redis.RedisError:
        return {}
    return {machine: float(ahead) for machine, age, ahead in found if age <= _ALIVE_SECONDS}


def note_tick() -> None:
    """Writes to Redis that a tick ended."""
    try:
        redis_client().set(_TICKED, 1, px=int(1000 * _ALIVE_SECONDS))
    except redis.RedisError:
        logger.debug("tick.unannounced")


def liveness(queues: Sequence[str]) -> Liveness | None:
    """Which workers reported, and whether a tick ended, in the last 15 s. None while Redis is away
    or accepts no writes, because heartbeats do not arrive then."""
    try:
        try_to_write(redis_client())
        has_ticked = bool(redis_client().exists(_TICKED))
        return Liveness({queue: _live(_nodes(queue)) for queue in queues}, has_ticked)
    except redis.RedisError:
        return None


def _live(nodes: Iterable[tuple[str, float, int]]) -> int:
    return sum(processes for _, age, processes in nodes if age <= _ALIVE_SECONDS)


def _nodes(queue: str) -> Iterator[tuple[str, float, int]]:
    """(name, seconds since its last heartbeat, processes)"""
    for node, age, processes in _read(_key(queue)):
        yield node, age, int(processes)


def _read(key: str) -> Iterator[tuple[str, float, str]]:
    """(name, seconds since it was written, what was written)"""
    return _ages(redis_client().run(_READ(written=key))[0])


def _ages(result: Sequence[Any]) -> Iterator[tuple[str, float, str]]:
    now, found = result
    for name, value in zip(found[::2], found[1::2], strict=True):
        at, _, written = str(value).partition(":")
        yield str(name), float(now) - float(at), written


def _key(queue: str) -> str:
    return f"pushsvc:workers:{queue}"
