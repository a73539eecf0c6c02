"""The time from a send to the first receipt at the push service, on an idle system.

It runs from just before the HTTP request until the sandbox has the encrypted message, on one
machine's clock. For comparison, the bench measures the least that such a path needs on this machine
in the same minute: an HTTP round trip, a commit in PostgreSQL and a round trip to Redis.
"""

import random
import time
from statistics import median

from bench.results import Options, Result, Row
from bench.system import System, percentile, running_system


def measure(options: Options) -> Result:
    result = Result(remarks=[f"{options.sends} sends in each round."])
    taken, floors = [], []
    with running_system() as system:
        for _ in range(options.rounds):
            with result.load.round():
                seconds, least = _round(system, options.sends)
            taken.append([1000 * each for each in seconds])
            floors.append([1000 * each for each in least])
    of_floor = median(median(mine) / median(its) for mine, its in zip(taken, floors, strict=True))
    result.rows = [
        Row("send to first receipt, median", "ms", [median(each) for each in taken], aim="40"),
        Row("send to first receipt, p95", "ms", [percentile(each, 95) for each in taken]),
        Row("HTTP, commit and Redis, median", "ms", [median(each) for each in floors], of_floor),
    ]
    return result


def _round(system: System, sends: int) -> tuple[list[float], list[float]]:
    """Seconds to each first receipt, and of each least path."""
    began: dict[str, float] = {}
    floors = []
    for _ in range(sends):
        # The tick comes every second. The sends should meet every phase of it.
        time.sleep(random.uniform(0.5, 1.0))  # noqa: S311
        floors.append(_floor(system))
        before = time.time()
        began[system.send()] = before
    for notification_id in began:
        system.wait_sent(notification_id)
    receipts = system.receipts()
    return [receipts[id_] - before for id_, before in began.items()], floors


def _floor(system: System) -> float:
    """Seconds for one HTTP round trip, one commit that reaches the disk, and one round trip to
    Redis."""
    began = time.perf_counter()
    system.service.request("GET", "/healthz")
    system.database.execute("SELECT pg_logical_emit_message(true, 'bench', 'x')")
    system.redis.ping()
    return time.perf_counter() - began
