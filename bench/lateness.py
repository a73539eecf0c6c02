"""Measures how much later than its `scheduled_at` a notification reaches the push service.

First many for one second, then as many of schedules, then one at a time on an idle system. Each has
one recipient. The service and the bench have real-time priority where that is permitted. While
notifications are sent, the bench only asks the database now and then how many are left.
"""

import os
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial
from statistics import median
from typing import Final

from bench.priority import put_first
from bench.results import Options, Result, ResultRow
from bench.system import System, percentile, running_system, timestamp

_FIRST_SECONDS = 5.0
_SCHEDULE_SECONDS = 40.0  # more than schedules are fired ahead
_ACCEPT_SECONDS = 0.1  # for each of many, on a busy machine
_LOOK_SECONDS = 0.5
_STEP_SECONDS = 1.37  # not a multiple of a second, to start at all times between two ticks


def measure(options: Options) -> Result:
    result = Result(remarks=[f"{options.scheduled:,} for one second; {options.sends} alone."])
    many, repeated, alone = [], [], []
    with running_system() as system:
        result.remarks.append(put_first(os.getpid(), *system.pids.values()))
        system.database.execute("UPDATE channels_app_channel SET sends_per_second = 1000000")
        for _ in range(options.rounds):
            with result.load.round():
                many.append(_of_one_second(system, options.scheduled))
                repeated.append(_of_schedules(system, options.scheduled))
                alone.append(_alone(system, options.sends))
    result.rows = [
        ResultRow("many, median", "s", [median(late) for late in many]),
        ResultRow("many, p99", "s", [percentile(late, 99) for late in many], aim="under 1"),
        ResultRow("many of schedules, median", "s", [median(late) for late in repeated]),
        ResultRow(
            "many of schedules, p99",
            "s",
            [percentile(late, 99) for late in repeated],
            aim="at most 1.2 times many, p99",
        ),
        ResultRow("alone, median", "s", [median(late) for late in alone]),
        ResultRow("alone, p95", "s", [percentile(late, 95) for late in alone]),
    ]
    return result


def _of_one_second(system: System, count: int) -> list[float]:
    moment = int(time.time() + _FIRST_SECONDS + count * _ACCEPT_SECONDS)
    with ThreadPoolExecutor(4) as pool:
        sent = list(pool.map(partial(_schedule, system), [float(moment)] * count))
    if time.time() > moment:
        raise RuntimeError(f"{count} sends were not accepted before their time")
    return _lateness(system, dict.fromkeys(sent, float(moment)))


def _of_schedules(system: System, count: int) -> list[float]:
    moment = datetime.fromtimestamp(int(time.time() + _SCHEDULE_SECONDS), UTC)
    system.repeat(count, moment)
    time.sleep(max(0.0, moment.timestamp() - time.time()))
    while system.database.execute(_UNFIRED, [moment, count]).rowcount:
        time.sleep(_LOOK_SECONDS)
    made = system.database.execute(_FIRED, [moment]).fetchall()
    return _lateness(system, {str(row[0]): moment.timestamp() for row in made})


def _alone(system: System, count: int) -> list[float]:
    first = int(time.time() + _FIRST_SECONDS)
    moments = [round(first + number * _STEP_SECONDS, 3) for number in range(count)]
    return _lateness(system, {_schedule(system, moment): moment for moment in moments})


def _schedule(system: System, moment: float) -> str:
    text = datetime.fromtimestamp(moment, UTC).isoformat(timespec="milliseconds")
    assert abs(timestamp(text) - moment) < 0.001
    return system.send(scheduled_at=text, target_platforms=["web"])


def _lateness(system: System, due: dict[str, float]) -> list[float]:
    time.sleep(max(0.0, max(due.values()) - time.time()))
    while system.database.execute(_LEFT, [list(due)]).rowcount:
        time.sleep(_LOOK_SECONDS)
    receipts = system.receipts()
    return [receipts[notification_id] - moment for notification_id, moment in due.items()]


_UNFIRED: Final = """
SELECT FROM notifications_app_occurrence WHERE occurs_at = %s HAVING count(*) < %s
"""

_FIRED: Final = """
SELECT notification_id FROM notifications_app_occurrence WHERE occurs_at = %s
"""

_LEFT: Final = """
SELECT FROM notifications_app_notification WHERE id = ANY(%s::uuid[]) AND status <> 'sent' LIMIT 1
"""
