"""Measures what work costs with a large ledger, and the effect of retention on its size.

Work is measured twice: in small tables, and in tables that are a hundred times as large. One
channel has all subscribers, and each of the last 31 days has one notification to a part of them.
The figures are from PostgreSQL: processor time of the session, and how often it touched a page of a
table or an index, which does not depend on other work of the machine. Autovacuum is off, so VACUUM
runs only when it is measured.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import median
from threading import Thread
from typing import TYPE_CHECKING, Any, Final

from bench import filling, large, ledger, rows
from bench.costs import Cost, cost_of, row, run, without_autovacuum
from bench.database import own_database
from bench.results import Options, Result, ResultRow

if TYPE_CHECKING:
    from channels_app.models import Channel

_SMALLER: Final = 100
_DAYS: Final = 31  # one more than deliveries are kept
_NEWEST: Final = 0.1  # days ago, so that the oldest is past its retention
_PAGES: Final = 5
_CYCLES: Final = 3
_LEDGER: Final = ("notifications_app_delivery", "notifications_app_batch")


def measure(options: Options) -> Result:
    result = Result()
    sizes = [(options.subscribers // part, options.deliveries // part) for part in (_SMALLER, 1)]
    # A channel needs more subscribers than the default limit.
    with own_database(SUBSCRIPTIONS_PER_CHANNEL=str(10**9)):
        without_autovacuum()
        channels, works = [], []
        for size in sizes:
            channels.append(_filled(*size))
            with result.load.round():
                works.append(_work(channels[-1], size[0]))
        result.rows = _compared(*works)
        with result.load.round():
            result.rows += _retention(channels[-1], options.deliveries // _DAYS)
    small, whole = (f"{people:,} subscribers and {sent:,} deliveries" for people, sent in sizes)
    result.remarks.append(f"{whole}. The ratios of work are to the same with {small}.")
    return result


def _filled(subscribers: int, deliveries: int) -> "Channel":
    from channels_app.models import Channel

    with filling.in_bulk("subscriptions_app_subscription"):
        channel = filling.channel_with(subscribers, platforms=[rows.PLATFORM])
    Channel.objects.update(subscribes_per_minute=10**6)
    days = [number + _NEWEST for number in reversed(range(_DAYS))]
    ledger.prepare(channel)
    ledger.fill_days(channel, days, deliveries // _DAYS)
    large.mark(channel)
    run("VACUUM ANALYZE")
    return channel


def _work(channel: "Channel", subscribers: int) -> dict[str, Cost]:
    sending = large.sending(channel, subscribers)
    run("VACUUM ANALYZE")
    return sending | large.reading(channel) | large.console(channel) | large.few(channel)


def _compared(small: dict[str, Cost], whole: dict[str, Cost]) -> list[ResultRow]:
    """The compared costs; of the console's pages only the few that grew most."""

    def grown(name: str) -> float:
        return whole[name].touches / max(1, small[name].touches)

    console = [name for name in whole if name.startswith("console")]
    shown = sorted(console, key=grown, reverse=True)[:_PAGES]
    return [
        ResultRow(
            name,
            "CPU-ms",
            [1000 * cost.cpu],
            cost.cpu / small[name].cpu,
            note=f"touches of pages: {small[name].touches:,.1f}, now {cost.touches:,.1f}",
        )
        for name, cost in whole.items()
        if name not in console or name in shown
    ]


def _retention(channel: "Channel", daily: int) -> list[ResultRow]:
    """Deletes the oldest day and writes a new one, three times. The second time, a send runs
    meanwhile."""
    from django.conf import settings

    before = _size()
    found = [ResultRow("ledger with its indexes", "MB", [before])]
    for cycle in range(_CYCLES):
        if cycle == 1:
            found += _beside_a_send()
        else:
            with _timed("DELETE FROM notifications_app_delivery") as steps:
                purged = cost_of(purge_day)
            if not cycle:
                found += _shown("retention of a day", purged, daily)
                found.append(ResultRow("its longest statement", "ms", [1000 * max(steps)]))
        vacuumed = cost_of(_vacuum)
        if not cycle:
            found += _shown("VACUUM after it", vacuumed, daily)
        ledger.fill_days(channel, [0], daily)
        size = _size()
        found.append(
            ResultRow(f"ledger after {cycle + 1} of these days", "MB", [size], size / before)
        )
        settings.DELIVERY_RETENTION_DAYS -= 1
    return found


def _shown(what: str, cost: Cost, daily: int) -> list[ResultRow]:
    note = f"{cost.wal / 1e6:,.0f} MB of WAL, {cost.touches / 1e6:,.2f} million touches of pages"
    each = f"{1e6 * cost.cpu / daily:,.1f} µs for a delivery; {cost.elapsed:,.1f} s on the clock"
    return [ResultRow(what, "CPU-s", [cost.cpu], note=f"{each}; {note}")]


def purge_day() -> None:
    """Deletes all rows that are past their retention."""
    from django.conf import settings

    from notifications_app import retention

    while row(_IS_OLD, {"days": settings.DELIVERY_RETENTION_DAYS})[0]:
        retention.purge()


def _beside_a_send() -> list[ResultRow]:
    """Times flushes of outcomes while a day is deleted, and as many without other work."""
    day = Thread(target=_in_own_session, args=[purge_day])
    day.start()
    beside: list[float] = []
    while day.is_alive():
        beside += _flushes()
    day.join()
    alone: list[float] = []
    while len(alone) < len(beside):
        alone += _flushes()
    ratio = median(beside) / median(alone)
    return [
        ResultRow("flush of 300 outcomes", "ms", alone),
        ResultRow("the same during retention", "ms", beside, ratio),
    ]


def _in_own_session(step: Callable[[], None]) -> None:
    from django.db import connection

    try:
        step()
    finally:
        connection.close()


def _flushes() -> list[float]:
    """Milliseconds of each update of deliveries, while a batch is recorded."""
    with _timed("UPDATE notifications_app_delivery") as seconds:
        rows.deliver(large.claim(), rows.FLUSH)
    return [1000 * each for each in seconds]


@contextmanager
def _timed(word: str) -> Iterator[list[float]]:
    """A list that gets the wall-clock seconds of each statement with the word in the context."""
    from django.db import connection

    seconds: list[float] = []

    def time_one(execute: Any, statement: str, *rest: Any) -> Any:
        began = time.perf_counter()
        try:
            return execute(statement, *rest)
        finally:
            if word in statement:
                seconds.append(time.perf_counter() - began)

    with connection.execute_wrapper(time_one):
        yield seconds


def _vacuum() -> None:
    for table in _LEDGER:
        run(f"VACUUM {table}")


def _size() -> float:
    """MB of the ledger's tables and indexes."""
    return float(row(_SIZE, {"tables": list(_LEDGER)})[0]) / 1e6


_SIZE = "SELECT sum(pg_total_relation_size(name::regclass)) FROM unnest(%(tables)s::text[]) AS name"

_IS_OLD = """
SELECT EXISTS (SELECT FROM notifications_app_batch
               WHERE status = 'done' AND finished_at < now() - make_interval(days => %(days)s))
"""
