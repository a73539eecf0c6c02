"""Measures the whole bill of a direct send to one browser: from the request to the recorded
outcome, in processor time of every process, and in transactions of PostgreSQL.

In each round, sends are made one at a time, each after the message of the one before arrived; then
many are made as fast as one connection allows. A bare loop of pywebpush sends as many messages,
without any of that.
"""

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from bench import requests
from bench.costs import row
from bench.meter import Spent, spending
from bench.peers import PEERS, Missing, Peer
from bench.results import Options, Result, ResultRow
from bench.service import Service, running_service
from bench.sink import Sink, find_nginx, running_sink
from bench.web import Web, running_web
from bench.work import BODY, TITLE, Work, make_work
from pushsvc.common.platforms import Platform

_LOOP: Final = "pywebpush, one after the other"
_SECONDS: Final = 120.0


class _Bill:
    """What each process spent for a send, by name, in each round, and the sends in a second."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.spent: dict[str, list[float]] = {}
        self.rates: list[float] = []

    @contextmanager
    def of(self, pids: dict[str, int], count: int) -> Iterator[None]:
        before = _transactions()
        with ExitStack() as stack:
            spent = {name: stack.enter_context(spending(pid)) for name, pid in pids.items()}
            yield
        own = {f"CPU of {name}": 1000 * each.cpu / count for name, each in spent.items()}
        own["CPU of all"] = sum(own.values())
        own["transactions"] = (_transactions() - before) / count
        for name, value in own.items():
            self.spent.setdefault(name, []).append(value)

    @property
    def rows(self) -> list[ResultRow]:
        rate = ResultRow(f"{self.name}: sends", "/ s", self.rates)
        return [rate] + [
            ResultRow(f"{self.name}: {name}", "" if name == "transactions" else "CPU-ms", values)
            for name, values in self.spent.items()
        ]


def measure(options: Options) -> Result:
    result = Result(remarks=["For each send. Ticks are included, Redis and the broker are not."])
    single, many = _Bill("one at a time"), _Bill(f"{options.scheduled:,} at once")
    loop: list[Spent] = []
    with (
        tempfile.TemporaryDirectory(prefix="pushsvc-bench-") as folder,
        running_sink(find_nginx()) as sink,
    ):
        work = make_work(Path(folder), sink, options.scheduled)
        peer = _peer(result)
        with running_service(Platform.WEB, work, sink) as service:
            requests.prepare()
            with running_web() as web:
                send = _sender(service, web)
                pids = {
                    "web": web.pid,
                    "worker-plan": service.planner,
                    "worker-web": service.worker,
                    "PostgreSQL": service.database,
                }
                _one_at_a_time(send, sink, 20)
                for _ in range(options.rounds):
                    with result.load.round():
                        with single.of(pids, options.sends):
                            single.rates.append(_one_at_a_time(send, sink, options.sends))
                        with many.of(pids, options.scheduled):
                            many.rates.append(_at_once(send, sink, options.scheduled))
                        _loop(peer, work, sink, loop, result)
    result.rows = [*single.rows, *many.rows]
    if loop:
        count = len(work.content["web"])
        result.rows += [
            ResultRow(f"{_LOOP}: messages", "/ s", [count / each.elapsed for each in loop]),
            ResultRow(f"{_LOOP}: CPU", "CPU-ms", [1000 * each.cpu / count for each in loop]),
        ]
    return result


def _peer(result: Result) -> Peer | None:
    found = next((each for each in PEERS[Platform.WEB] if each.shown.startswith("pywebpush")), None)
    if found is None:
        result.remarks.append("pywebpush was skipped.")
    return found


def _loop(peer: Peer | None, work: Work, sink: Sink, spent: list[Spent], result: Result) -> None:
    if peer is None:
        return
    try:
        spent.append(peer.spend(work, sink, len(work.content["web"]), 1))
    except Missing as missing:
        result.remarks.append(f"{peer.shown} was skipped: {missing}.")


def _sender(service: Service, web: Web) -> Callable[[int], None]:
    """A function that sends to one browser, another one for each number."""
    from subscriptions_app.models import Subscription

    ids = [str(pk) for pk in Subscription.objects.order_by("id").values_list("id", flat=True)]
    headers = {"Authorization": f"Key {service.key}"}

    def send(number: int) -> None:
        body = {"title": TITLE, "body": BODY, "subscription_ids": [ids[number % len(ids)]]}
        web.ask(("POST", "/send-notification", body, headers))

    return send


def _one_at_a_time(send: Callable[[int], None], sink: Sink, count: int) -> float:
    """Returns the sends in a second."""
    began = time.perf_counter()
    for number in range(count):
        before = sink.count
        send(number)
        _until(lambda seen=before: sink.count > seen)  # type: ignore[misc]
    elapsed = time.perf_counter() - began
    _until(_are_all_sent)
    return count / elapsed


def _at_once(send: Callable[[int], None], sink: Sink, count: int) -> float:
    before, began = sink.count, time.perf_counter()
    for number in range(count):
        send(number)
    _until(lambda: sink.count >= before + count)
    elapsed = time.perf_counter() - began
    _until(_are_all_sent)
    return count / elapsed


def _are_all_sent() -> bool:
    from notifications_app.models import Notification

    return not Notification.objects.exclude(status="sent").exists()


def _until(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + _SECONDS
    while not condition():
        if time.monotonic() > until:
            raise RuntimeError("not all messages arrived")
        time.sleep(0.002)


def _transactions() -> float:
    name = "SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()"
    row("SELECT pg_stat_clear_snapshot()")
    return float(row(name)[0])
