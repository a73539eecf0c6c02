"""Measures how long it takes to plan a notification to a whole channel, and until the first batch
can be sent.

The time runs from just before the request, which this process answers. One process of worker-plan
plans, and then several do. No worker delivers; the bench claims the first batch, as a worker would.
"""

import time
from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING, Final

from bench import filling
from bench.database import own_database
from bench.meter import Spent, spending
from bench.processes import running_worker
from bench.results import Options, Result, ResultRow
from bench.service import send
from pushsvc.common.platforms import Platform

if TYPE_CHECKING:
    from channels_app.models import Channel

_LOOK_SECONDS: Final = 0.01
_PLATFORM: Final = Platform.WEB
_PROCESSES: Final = 4  # as many as the ranges of a large plan


def measure(options: Options) -> Result:
    result = Result(remarks=[f"{options.recipients:,} recipients in one channel."])
    with own_database(durable=True) as postgres:
        key = key_of(filling.channel_with(options.recipients, platforms=[_PLATFORM]))
        one, several = (
            _measured(key, postgres, processes, options, result) for processes in (1, _PROCESSES)
        )
    seconds = median(several.seconds)
    result.rows = [
        ResultRow("all recipients planned", "s", one.seconds, aim="10"),
        ResultRow("first batch claimed", "s", one.first, aim="0.3"),
        ResultRow("CPU of worker-plan", "s", [spent.cpu for spent in one.planner]),
        ResultRow("CPU of PostgreSQL", "s", [spent.cpu for spent in one.database]),
        ResultRow(
            f"all planned by {_PROCESSES} processes; ratio: times as fast",
            "s",
            several.seconds,
            ratio=median(one.seconds) / seconds,
            aim="2.5, with a core for each",
        ),
        ResultRow("first batch claimed", "s", several.first, aim="0.3"),
        ResultRow("CPU of worker-plan", "s", [spent.cpu for spent in several.planner]),
        ResultRow("CPU of PostgreSQL", "s", [spent.cpu for spent in several.database]),
    ]
    return result


@dataclass(frozen=True)
class _Measured:
    """Values of each round. `first`: seconds until a batch was claimed."""

    first: list[float] = field(default_factory=list)
    planner: list[Spent] = field(default_factory=list)
    database: list[Spent] = field(default_factory=list)

    @property
    def seconds(self) -> list[float]:
        return [spent.elapsed for spent in self.planner]


def _measured(
    key: str, postgres: int, processes: int, options: Options, result: Result
) -> _Measured:
    measured = _Measured()
    with running_worker("worker-plan", processes=processes) as planner:
        warm_up()
        for _ in range(options.rounds):
            with (
                result.load.round(),
                spending(postgres) as of_database,
                spending(planner.pid) as of_planner,
            ):
                measured.first.append(_planned(key))
            measured.planner.append(of_planner)
            measured.database.append(of_database)
    return measured


def warm_up() -> None:
    """Sends to an empty channel, so that this process loads its views, and both processes connect
    to their servers, as processes in production have done."""
    send(key_of(filling.channel_with(0, platforms=[_PLATFORM])), _PLATFORM)


def key_of(channel: "Channel") -> str:
    from channels_app.services import api_key_issue

    return api_key_issue(channel=channel, name="bench")[1]


def _planned(key: str) -> float:
    """Sends, and waits for the end of the plan. Returns seconds until a batch could be claimed."""
    from notifications_app.models import Plan
    from notifications_app.pipeline import batches

    began = time.perf_counter()
    notification_id = send(key, _PLATFORM)
    while not batches.claim(_PLATFORM, most=1, skip=[], processes=1):
        time.sleep(_LOOK_SECONDS)
    first = time.perf_counter() - began
    plan = Plan.objects.filter(notification_id=notification_id)
    while plan.filter(status="planning").exists():
        time.sleep(10 * _LOOK_SECONDS)
    filling.forget_notifications()
    return first
