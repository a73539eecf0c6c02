"""Measures claims of plans and batches while parts wait for their release.

Nothing is due, so each claim does the same work and finds nothing.
"""

import time
from collections.abc import Callable
from statistics import median
from typing import Final

from bench import filling
from bench.database import own_database
from bench.results import Options, Result, ResultRow
from pushsvc.common.platforms import Platform

_PLATFORM: Final = Platform.ANDROID
_PARTS: Final = 10_000
_CLAIMS: Final = 200


def measure(options: Options) -> Result:
    result = Result(remarks=[f"{_PARTS:,} parts wait for their release."])
    spent: dict[str, list[float]] = {}
    with own_database():
        _fill()
        for waiting in [False, True] * options.rounds:
            _wait(_PARTS if waiting else 0)
            with result.load.round():
                for name, claim in _claims().items():
                    key = f"{name}, with parts that wait" if waiting else name
                    spent.setdefault(key, []).append(_milliseconds(claim))
    for name in _claims():
        beside = f"{name}, with parts that wait"
        ratio = median(spent[beside]) / median(spent[name])
        result.rows += [
            ResultRow(name, "ms", spent[name]),
            ResultRow(beside, "ms", spent[beside], ratio, "1.2"),
        ]
    return result


def _claims() -> dict[str, Callable[[], object]]:
    from notifications_app.pipeline import batches, plan_queue

    return {
        "claim of a plan": lambda: plan_queue.claim_plans(most=1),
        "claim of a batch": lambda: batches.claim(_PLATFORM, most=1, skip=[], processes=1),
        "batches out of time": batches.overdue,
        "count of due batches": lambda: batches.due_counts(16),
    }


def _fill() -> None:
    """Creates twenty notifications with a batch each, and one whose parts wait."""
    from django.db import connection

    from notifications_app.models import Notification
    from notifications_app.pipeline import planning

    channel = filling.channel_with(20, platforms=[_PLATFORM])
    for _ in range(20):
        Notification.objects.create(
            channel=channel, body="bench", ttl=3600, target_platforms=[_PLATFORM]
        )
    while planning.work(seconds=3600):
        pass
    with connection.cursor() as cursor:
        cursor.execute("UPDATE notifications_app_batch SET due_at = now() + '1 day'::interval")


def _wait(parts: int) -> None:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM notifications_app_plan WHERE part > 0")
        cursor.execute(_PARTS_THAT_WAIT, {"parts": parts})
        cursor.execute("VACUUM ANALYZE")


def _milliseconds(claim: Callable[[], object]) -> float:
    """The shortest of all times, because other processes use the machine."""
    seconds = []
    for _ in range(_CLAIMS):
        began = time.perf_counter()
        claim()
        seconds.append(time.perf_counter() - began)
    return 1000 * min(seconds)


_PARTS_THAT_WAIT: Final = """
INSERT INTO notifications_app_plan
  (notification_id, channel_id, platform, part, release_at, due_at, deadline_at)
SELECT id, channel_id, 'android', part, release_at, release_at, release_at + '1 hour'::interval
FROM (SELECT * FROM notifications_app_notification LIMIT 1) AS notification,
  (SELECT now() + '1 day'::interval AS release_at) AS later,
  generate_series(1, %(parts)s) AS part
"""
