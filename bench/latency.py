"""The time from a send to the first receipt at the push service, on an idle system.

It runs from just before the HTTP request until the sandbox has the encrypted message, on one
machine's clock. For comparison, the bench measures the least that such a path needs on this machine
in the same minute: an HTTP round trip, a commit in PostgreSQL and a round trip to Redis.
"""

import argparse
import random
import time
from statistics import median

from bench.system import System, report, running_system


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sends", type=int, default=50)
    sends = parser.parse_args().sends
    with running_system() as system:
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
    taken = [receipts[notification_id] - before for notification_id, before in began.items()]
    report("send to first receipt", taken)
    report("HTTP + commit + Redis", floors)
    print(f"ratio of the medians: {median(taken) / median(floors):.1f}")


def _floor(system: System) -> float:
    """Seconds for one HTTP round trip, one commit that reaches the disk, and one round trip to
    Redis."""
    began = time.perf_counter()
    system.service.request("GET", "/healthz")
    system.database.execute("SELECT pg_logical_emit_message(true, 'bench', 'x')")
    system.redis.ping()
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
