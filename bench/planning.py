"""Measures how long it takes to plan a notification to a whole channel, and until the first batch
can be sent.

The time runs from just before the request, which this process answers. One process of worker-plan
plans. No worker delivers; the bench claims the first batch, as a worker would.
"""

import time
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


def measure(options: Options) -> Result:
    result = Result(remarks=[f"{options.recipients:,} recipients in one channel."])
    first: list[float] = []
    whole: list[Spent] = []
    database: list[Spent] = []
    with own_database(durable=True) as postgres:
        key = key_of(filling.channel_with(options.recipients, platforms=[_PLATFORM]))
        with running_worker("worker-plan") as planner:
            warm_up()
            for _ in range(options.rounds):
                with (
                    result.load.round(),
                    spending(postgres) as of_database,
                    spending(planner.pid) as of_planner,
                ):
                    first.append(_planned(key))
                whole.append(of_planner)
                database.append(of_database)
    result.rows = [
        ResultRow("all recipients planned", "s", [spent.elapsed for spent in whole], aim="10"),
        ResultRow("first batch claimed", "s", first, aim="0.3"),
        ResultRow("CPU of worker-plan", "s", [spent.cpu for spent in whole]),
        ResultRow("CPU of PostgreSQL", "s", [spent.cpu for spent in database]),
    ]
    return result


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
