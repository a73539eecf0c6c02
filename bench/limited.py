"""Measures a send to browsers whose push service accepts only some messages a minute of the
channel, as Chrome's does of sites with little engagement.

The sandbox accepts 600 messages a minute of each VAPID key and answers 429 to the others, without
and with `Retry-After`. The processes, their settings and their time are real. Then another channel
at the same push service sends beside a second such send, and while that is paused, in turn.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import median
from typing import Final

from bench.processes import CHECKOUT
from bench.results import Options, Result, ResultRow
from bench.system import System, running_system

_A_MINUTE: Final = 600
_OTHERS: Final = 5  # recipients of the other channel
_TURNS: Final = 20
_SENDS: Final = 3  # in each turn; all turns together are within the limit of a minute
_LONGEST_SECONDS: Final = 900.0


def measure(options: Options) -> Result:
    result = Result(
        remarks=[f"{options.limited:,} recipients, {_A_MINUTE} accepted a minute of each channel."]
    )
    with running_system() as system:
        other = other_channel(system)
        system.subscribe(options.limited)
        other.subscribe(_OTHERS)
        for retry_after in (False, True):
            rounds = []
            for _ in range(options.rounds):
                with result.load.round():
                    rounds.append(_round(system, other, retry_after=retry_after))
            how = "with Retry-After" if retry_after else "without Retry-After"
            result.rows += _rows(how, rounds)
    return result


def _rows(how: str, rounds: Sequence[Sequence[float]]) -> list[ResultRow]:
    seconds, calls, delivered, others = zip(*rounds, strict=True)
    return [
        ResultRow(f"{how}: until the end", "s", seconds, aim="under 360"),
        ResultRow(f"{how}: calls for each recipient", "", calls, aim="1.15"),
        ResultRow(f"{how}: delivered", "%", delivered, aim="100"),
        ResultRow(f"{how}: another channel, speed beside / alone", "", others, aim="0.97"),
    ]


def _round(
    system: System, other: System, *, retry_after: bool
) -> tuple[float, float, float, float]:
    """Seconds, calls for each recipient, percent delivered, and the other channel's speed beside
    this send as a share of its speed alone."""
    system.redis.flushdb()  # what an earlier round learned
    _set_limit(system, {"messages": _A_MINUTE, "retry_after": retry_after})
    before = _requests(system)
    began = time.monotonic()
    shown = _wait(system, system.send(target_platforms=["web"], ttl=3600))
    seconds = time.monotonic() - began
    calls = (_requests(system) - before) / shown["recipient_count"]
    delivered = 100 * shown["delivered_count"] / shown["recipient_count"]
    return seconds, calls, delivered, _speed_beside(system, other)


def _speed_beside(system: System, other: System) -> float:
    """The other channel's speed beside a limited send, as a share of its speed alone."""
    sent = system.send(target_platforms=["web"], ttl=3600)
    time.sleep(10.0)  # until the limit is met
    alone, beside = [], []
    for _ in range(_TURNS):
        system.change(sent, "pause")
        alone += _seconds_of_sends(other)
        system.change(sent, "resume")
        beside += _seconds_of_sends(other)
    system.change(sent, "stop")
    return median(alone) / median(beside)


def _seconds_of_sends(channel: System) -> list[float]:
    taken = []
    for _ in range(_SENDS):
        began = time.monotonic()
        channel.wait_sent(channel.send(target_platforms=["web"]))
        taken.append(time.monotonic() - began)
    return taken


def _wait(system: System, sent: str) -> dict[str, int]:
    until = time.monotonic() + _LONGEST_SECONDS
    while (shown := system.notification(sent))["status"] != "sent" and time.monotonic() < until:
        time.sleep(0.5)
    return shown


def _requests(system: System) -> int:
    return int(replace(system.sandbox, seconds=60.0).request("GET", "/messages").body["requests"])


def _set_limit(system: System, limit: Mapping[str, object]) -> None:
    if system.sandbox.request("PUT", "/limit", limit).status != 204:
        raise RuntimeError("the sandbox takes no such limit")


def other_channel(system: System) -> System:
    """Another channel of the same service."""
    command = [sys.executable, "manage.py", "create_channel", "Other", "--json"]
    environment = {**os.environ, "PUSHSVC_HOME": str(system.home.root)}
    made = json.loads(subprocess.check_output(command, cwd=CHECKOUT, env=environment))
    return replace(system, channel_id=made["channel_id"], api_key=made["api_key"])
