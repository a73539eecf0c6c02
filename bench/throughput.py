"""How many recipients a second one web worker with two processes serves, end to end.

The time runs from just before the HTTP request until the statistics say `sent`. The sandbox checks
and decrypts every message on the same machine. For comparison, one aiohttp client sends POSTs to
the same server, which answers them without reading them, on the same machine in the same minute.
"""

import argparse
import asyncio
import time
from statistics import median

import aiohttp
import psutil

from bench.system import System, running_system

_IN_FLIGHT = 100
_BODY = bytes(400)
# The part of its command line by which each process is recognised.
_PROCESSES = {
    "worker-web": "-Q web",
    "worker-plan": "-Q plan",
    "sandbox": "manage.py sandbox",
    "PostgreSQL": "postgres",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--devices", type=int, default=5_000)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    with running_system() as system:
        system.subscribe(arguments.devices)
        rates, loops = [], []
        for _ in range(arguments.rounds):
            rates.append(_round(system))
            loops.append(asyncio.run(_post_loop(system, arguments.devices)))
            print(f"{rates[-1]:.0f} recipients/s; bare POST loop {loops[-1]:.0f}/s")
    print(f"median: {median(rates):.0f} recipients/s")
    print(f"ratio to the POST loop: {median(rates) / median(loops):.2f}")


def _round(system: System) -> float:
    """Sends one notification to all devices; recipients a second."""
    before = _cpu_seconds(system.supervisor_pid)
    began = time.perf_counter()
    shown = system.wait_sent(system.send())
    elapsed = time.perf_counter() - began
    after = _cpu_seconds(system.supervisor_pid)
    recipients = int(shown["recipient_count"])
    print(f"delivered {shown['delivered_count']} of {recipients} in {elapsed:.2f} s; CPU ", end="")
    print(", ".join(f"{name} {after[name] - before[name]:.2f} s" for name in _PROCESSES))
    return recipients / elapsed


def _cpu_seconds(supervisor_pid: int) -> dict[str, float]:
    """CPU used so far by the running processes, by kind."""
    used = dict.fromkeys(_PROCESSES, 0.0)
    for process in psutil.Process(supervisor_pid).children(recursive=True):
        try:
            command, times = " ".join(process.cmdline()), process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        name = next((name for name, mark in _PROCESSES.items() if mark in command), None)
        if name is not None:
            # Of its children, only those that have ended: the others are in the list themselves.
            used[name] += sum(times[:4])
    return used


async def _post_loop(system: System, count: int) -> float:
    """POSTs a second to an unknown device, which the sandbox answers with 404."""
    url = f"{system.sandbox.public_url}/push/unknown"
    room = asyncio.Semaphore(_IN_FLIGHT)
    connector = aiohttp.TCPConnector(limit=_IN_FLIGHT)
    async with aiohttp.ClientSession(connector=connector) as session:

        async def post() -> None:
            async with room, session.post(url, data=_BODY) as response:
                await response.read()

        began = time.perf_counter()
        await asyncio.gather(*(post() for _ in range(count)))
        return count / (time.perf_counter() - began)


if __name__ == "__main__":
    main()
