"""Measures flushes of 1, 4 and 16 connections to one notification, beside as many notifications.

Each connection is a process that records the outcomes of some batches. No push service is called.
Each commit reaches the disk, as in production. With as many notifications, each has its own channel
and connection, so that connections share no row.
"""

import multiprocessing
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from multiprocessing.synchronize import Barrier
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, Final

from bench import filling
from bench.database import own_database
from bench.results import Options, Result, ResultRow, ratio
from bench.rows import PLATFORM, plan

if TYPE_CHECKING:
    from channels_app.models import Channel
    from notifications_app.pipeline.lease import Lease

_CONNECTIONS: Final = (1, 4, 16)
_BATCHES: Final = 6  # of 1,000 recipients, for each connection
_FLUSH: Final = 250  # outcomes
_SAMPLE_SECONDS: Final = 0.01
_FORK: Final = multiprocessing.get_context("fork")


@dataclass(frozen=True)
class _Measured:
    """Flushes a second, and how many connections waited for a lock on average."""

    rate: float
    waiting: float


def measure(options: Options) -> Result:
    result = Result(
        remarks=[
            f"A flush records {_FLUSH} recipients. On a machine of few cores, connections wait for "
            "a processor. `waiting`: connections that wait for a lock, on average."
        ]
    )
    with own_database(durable=True):
        for connections in _CONNECTIONS:
            own = 1_000 * _BATCHES
            one = [filling.channel_with(own * connections, platforms=[PLATFORM])]
            many = [filling.channel_with(own, platforms=[PLATFORM]) for _ in range(connections)]
            measured: dict[str, list[_Measured]] = {"one": [], "many": []}
            for _ in range(options.rounds):
                with result.load.round():
                    measured["many"].append(_flushes(many, connections))
                    measured["one"].append(_flushes(one, connections))
            result.rows += _rows(connections, measured["one"], measured["many"])
    return result


def _rows(
    connections: int, one: Sequence[_Measured], many: Sequence[_Measured]
) -> Iterator[ResultRow]:
    plural = "s" if connections > 1 else ""
    of_one, of_many = [each.rate for each in one], [each.rate for each in many]
    about = f"{connections} connection{plural}"
    yield ResultRow(f"{about}, {connections} notification{plural}", "flushes/s", of_many)
    yield ResultRow(
        f"{about}, one notification", "flushes/s", of_one, ratio(of_one, of_many), "0.95"
    )
    yield ResultRow(
        f"{about}: waiting",
        "",
        [each.waiting for each in one],
        note=f"{max(each.waiting for each in many):.2f} at most with {connections}",
    )


def _flushes(channels: Sequence["Channel"], connections: int) -> _Measured:
    """Sends a notification to each channel, and records all its recipients."""
    from django.db import connection

    for channel in channels:
        plan(channel)
    shares = list(_shares(_claimed(), connections, is_one=len(channels) == 1))
    connection.close()  # before the process is copied
    barrier, results = _FORK.Barrier(connections + 1), _FORK.Queue()
    processes = [
        _FORK.Process(target=_record, args=(leases, barrier, results)) for leases in shares
    ]
    for each in processes:
        each.start()
    barrier.wait(timeout=120)
    with _ticks(), _lock_waits() as waits:
        spent = [results.get(timeout=120) for _ in processes]
    _join(processes)
    flushes = sum(count for count, _, _ in spent)
    seconds = max(end for *_, end in spent) - min(begin for _, begin, _ in spent)
    return _Measured(flushes / seconds, sum(waits) / max(1, len(waits)))


def _claimed() -> list["Lease"]:
    from notifications_app.pipeline import batches

    claimed: list[Lease] = []
    while leases := batches.claim(PLATFORM, most=1, skip=[], processes=1):
        claimed += leases
    return claimed


def _shares(
    leases: Sequence["Lease"], connections: int, *, is_one: bool
) -> Iterator[Sequence["Lease"]]:
    """Batches by connection: a share of one notification's, or those of one notification each."""
    if is_one:
        for place in range(connections):
            yield leases[place::connections]
        return
    for notification_id in {lease.notification_id for lease in leases}:
        yield [lease for lease in leases if lease.notification_id == notification_id]


def _record(leases: Sequence["Lease"], barrier: Barrier, results: Any) -> None:
    """Records the outcomes of these leases. Runs in a separate process."""
    from notifications_app.pipeline import outcomes

    flushes = [(lease, part) for lease in leases for part in _parts(lease)]
    barrier.wait(timeout=120)
    begun = time.monotonic()
    for lease, part in flushes:
        outcomes.record([lease], part)
    results.put((len(flushes), begun, time.monotonic()))


def _parts(lease: "Lease") -> Iterator[Sequence[Any]]:
    """What each flush of the batch writes: all recipients are delivered, but every fiftieth
    bounces."""
    from notifications_app.models import Delivery
    from notifications_app.pipeline.transitions import DueDelivery, Transition
    from notifications_app.states import DeliveryStatus

    due = Delivery.objects.due().filter(batch_id=lease.batch_id)
    changes = []
    for place, id_ in enumerate(due.values_list("subscription_id", flat=True)):
        row = DueDelivery(lease.batch_id, id_, 0, None, 0, lease.claimed_at)
        is_bounced = place % 50 == 0
        status = DeliveryStatus.BOUNCED if is_bounced else DeliveryStatus.DELIVERED
        code = "size_refused" if is_bounced else ""
        changes.append(Transition(row, status, code, attempts=1))
    for start in range(0, len(changes), _FLUSH):
        yield changes[start : start + _FLUSH]


@contextmanager
def _ticks() -> Iterator[None]:
    """Runs the tick's steps every second meanwhile, as worker-plan does."""

    def tick() -> None:
        from django.db import connection

        from notifications_app.pipeline import expiry, outcomes

        while not is_over.wait(1.0):
            outcomes.finish_forgotten()
            expiry.close_delivered_plans()
        connection.close()

    is_over = Event()
    with _beside(tick, is_over):
        yield


@contextmanager
def _lock_waits() -> Iterator[list[int]]:
    """How many connections wait for a lock, at each sample of the context."""
    samples: list[int] = []

    def sample() -> None:
        from django.db import connection

        with connection.cursor() as cursor:
            while not is_over.wait(_SAMPLE_SECONDS):
                cursor.execute(_WAITING)
                samples.append(cursor.fetchone()[0])
        connection.close()

    is_over = Event()
    with _beside(sample, is_over):
        yield samples


@contextmanager
def _beside(work: Callable[[], None], is_over: Event) -> Iterator[None]:
    """Runs `work`, which ends when the event is set, in a thread."""
    thread = Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def _join(processes: Sequence[BaseProcess]) -> None:
    for each in processes:
        each.join(timeout=60)


_WAITING: Final = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
