"""Measures the time from a send to the first receipt at the push service, on an idle system.

It runs from just before the HTTP request until the sandbox has the encrypted message, on one
machine's clock. For comparison, the bench measures the least that such a path needs on this machine
in the same minute: an HTTP round trip, a commit in PostgreSQL and a round trip to Redis. Sends to a
person by external id take turns with sends to the channel. The service and the bench have real-time
priority where that is permitted.
"""

import os
import random
import time
from statistics import median

from bench.priority import put_first
from bench.results import Options, Result, ResultRow
from bench.system import System, percentile, running_system

_PERSON = "user-42"


def measure(options: Options) -> Result:
    result = Result(remarks=[f"{options.sends} sends in each round."])
    taken, direct, floors = [], [], []
    with running_system() as system:
        system.link(_PERSON)
        result.remarks.append(put_first(os.getpid(), *system.pids.values()))
        for _ in range(options.rounds):
            with result.load.round():
                seconds, to_person, least = _round(system, options.sends)
            taken.append([1000 * each for each in seconds])
            direct.append([1000 * each for each in to_person])
            floors.append([1000 * each for each in least])
    of_send = median(median(its) / median(mine) for mine, its in zip(taken, direct, strict=True))
    of_floor = median(median(mine) / median(its) for mine, its in zip(taken, floors, strict=True))
    result.rows = [
        ResultRow(
            "send to first receipt, median", "ms", [median(each) for each in taken], aim="40"
        ),
        ResultRow("send to first receipt, p95", "ms", [percentile(each, 95) for each in taken]),
        ResultRow(
            "to a person, median", "ms", [median(each) for each in direct], of_send, aim="1.1"
        ),
        ResultRow(
            "HTTP, commit and Redis, median", "ms", [median(each) for each in floors], of_floor
        ),
    ]
    return result


def _round(system: System, sends: int) -> tuple[list[float], list[float], list[float]]:
    """Seconds to each first receipt, for sends to the channel and for sends to a person, and
    seconds of each least path."""
    began: dict[str, float] = {}
    to_person: dict[str, float] = {}
    floors = []
    for _ in range(sends):
        _pause()
        floors.append(_floor(system))
        before = time.time()
        began[system.send()] = before
        _pause()
        before = time.time()
        to_person[system.send(external_ids=[_PERSON])] = before
    for notification_id in (*began, *to_person):
        system.wait_sent(notification_id)
    receipts = system.receipts()
    channel, person = (
        [receipts[id_] - before for id_, before in each.items()] for each in (began, to_person)
    )
    return channel, person, floors


def _pause() -> None:
    """Waits at random, because sends should occur at all times between two ticks."""
    time.sleep(random.uniform(0.5, 1.0))  # noqa: S311


def _floor(system: System) -> float:
    """Seconds for one HTTP round trip, one commit that reaches the disk, and one round trip to
    Redis."""
    began = time.perf_counter()
    system.service.request("GET", "/healthz")
    system.database.execute("SELECT pg_logical_emit_message(true, 'bench', 'x')")
    system.redis.ping()
    return time.perf_counter() - began
