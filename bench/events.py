"""Measures how many clicks a second one web process counts. Each is its own request and recipient.

The time runs from the first request to the last answer, with as many requests in flight as browsers
would have. Afterwards every counter must contain each click once. For comparison, the same client
sends POSTs to an unknown path of the same process, on the same machine in the same minute.
"""

import argparse
import asyncio
import json
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from statistics import median

import aiohttp

from bench.meter import spending
from bench.system import System, report, running_system

_IN_FLIGHT = 32


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--devices", type=int, default=2_000)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    with running_system() as system:
        devices = system.subscribe(arguments.devices)
        rates, bare = [], []
        pids = system.processes()
        measured = {"web": pids["web"], "PostgreSQL": pids["postgres"]}
        for number in range(arguments.rounds):
            notification_id = system.send()
            system.wait_sent(notification_id)
            bodies = [_click(token) for token in _tokens(system, devices, number)]
            bare.append(asyncio.run(_posts(system, "/nothing-here", bodies, 404)))
            with ExitStack() as stack:
                spent = {name: stack.enter_context(spending(pid)) for name, pid in measured.items()}
                rates.append(asyncio.run(_posts(system, "/events", bodies, 204)))
            print(f"{rates[-1]:.0f} clicks/s; bare POSTs {bare[-1]:.0f}/s")
            for name, each in spent.items():
                print(f"  {name}: {1000 * each.cpu / len(bodies):.2f} CPU-ms for a click")
            _check(system, notification_id, len(bodies), number + 1)
    print(f"median: {median(rates):.0f} clicks/s")
    print(f"ratio to bare POSTs: {median(rates) / median(bare):.2f}")


def _tokens(system: System, devices: Sequence[str], number: int) -> list[str]:
    """The tokens that the devices got with their message of this number."""

    def token(device_id: str) -> str:
        path = f"/subscriptions/{device_id}/messages"
        message = system.sandbox.request("GET", path).body["messages"][number]
        return str(json.loads(message["payload"])["token"])

    with ThreadPoolExecutor(8) as pool:
        return list(pool.map(token, devices))


def _click(token: str) -> bytes:
    return json.dumps({"events": [{"token": token, "event": "clicked"}]}).encode()


async def _posts(system: System, path: str, bodies: Sequence[bytes], status: int) -> float:
    """Sends requests as a browser sends a beacon. Returns requests per second."""
    url = f"{system.service.public_url}{path}"
    headers = {"Content-Type": "text/plain;charset=UTF-8"}
    room = asyncio.Semaphore(_IN_FLIGHT)
    taken = []
    async with aiohttp.ClientSession(headers=headers) as session:

        async def post(body: bytes) -> None:
            async with room:
                sent = time.perf_counter()
                async with session.post(url, data=body) as response:
                    await response.read()
                    assert response.status == status, response.status
                taken.append(time.perf_counter() - sent)

        began = time.perf_counter()
        await asyncio.gather(*(post(body) for body in bodies))
        elapsed = time.perf_counter() - began
    report(f"POST {path}", taken)
    return len(bodies) / elapsed


def _check(system: System, notification_id: str, clicks: int, rounds: int) -> None:
    """Checks that the notification, the channel and the hourly rows count every click once."""
    shown = system.notification(notification_id)["clicked_count"]
    headers = {"Authorization": f"Key {system.api_key}"}
    channel = system.service.request("GET", f"/channel/{system.channel_id}", None, headers)
    total = channel.body["notification_stats"]["total_clicked"]
    hours = system.database.execute("SELECT sum(clicked) FROM notifications_app_hourlystat")
    counted = (shown, total, *(hours.fetchone() or ()))
    if counted != (clicks, clicks * rounds, clicks * rounds):
        raise RuntimeError(f"{clicks} clicks in each of {rounds} rounds were counted as {counted}")


if __name__ == "__main__":
    main()
