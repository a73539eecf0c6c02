"""Compares planning a notification to a whole channel with caps, and without.

The channel has two caps that leave nobody out. In each round, three notifications are planned in
turn: one that ignores the caps, one that makes the contact of every device, and one that adds to
it. One process of worker-plan plans; no worker delivers.
"""

import time
from collections.abc import Mapping
from typing import Any, Final

from bench import filling
from bench.database import own_database
from bench.planning import key_of, warm_up
from bench.processes import running_worker
from bench.results import Options, Result, ResultRow, ratio
from bench.service import send
from pushsvc.common.platforms import Platform

_LOOK_SECONDS: Final = 0.02
_CAPS: Final = [{"limit": 50, "hours": 24}, {"limit": 50, "hours": 720}]
_KINDS: Final[dict[str, dict[str, Any]]] = {
    "ignores caps": {"cap": "ignore"},
    "first contact of each device": {},
    "second contact of each device": {},
}


def measure(options: Options) -> Result:
    return measure_planning(options, _KINDS, "≤ 2.5", caps=_CAPS)


def measure_planning(
    options: Options,
    kinds: Mapping[str, Mapping[str, Any]],
    aim: str,
    *,
    caps: list[dict[str, int]] | None = None,
) -> Result:
    """Compares how long sends to a whole channel are planned. `kinds`: their fields by name; the
    others are compared with the first. `caps`: of the channel."""
    result = Result(remarks=[f"{options.recipients:,} recipients in one channel."])
    taken: dict[str, list[float]] = {name: [] for name in kinds}
    with own_database(durable=True):
        channel = filling.channel_with(options.recipients, platforms=[Platform.WEB])
        channel.caps = caps
        channel.save(update_fields=["caps"])
        key = key_of(channel)
        with running_worker("worker-plan"):
            warm_up()
            for _ in range(options.rounds):
                with result.load.round():
                    for name, fields in kinds.items():
                        taken[name].append(_planned(key, fields))
                _forget()
    plain, *others = kinds
    result.rows = [
        ResultRow(plain, "s", taken[plain]),
        *(
            ResultRow(name, "s", taken[name], ratio(taken[name], taken[plain]), aim, plain)
            for name in others
        ),
    ]
    return result


def _planned(key: str, fields: Mapping[str, Any]) -> float:
    """Sends, and waits for the end of the plan. Returns the seconds since its start."""
    from notifications_app.models import Plan

    began = time.perf_counter()
    plan = Plan.objects.filter(notification_id=send(key, Platform.WEB, **fields))
    while not plan.exclude(status="planning").exists():
        time.sleep(_LOOK_SECONDS)
    return time.perf_counter() - began


def _forget() -> None:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("TRUNCATE notifications_app_contact")
    filling.forget_notifications()
