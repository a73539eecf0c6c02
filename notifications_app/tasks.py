"""What workers hear: thin entry points. Every task may be run twice, or never."""

import logging
from collections.abc import Callable
from typing import Any

from celery import shared_task
from celery.signals import worker_process_shutdown
from django.conf import settings
from django.db import InterfaceError, OperationalError

from notifications_app import retention
from notifications_app.pipeline import (
    batches,
    connections,
    dispatch,
    expiry,
    outcomes,
    planning,
    wakeup,
)
from pushsvc.common import worker
from pushsvc.common.platforms import Platform

logger = logging.getLogger(__name__)

_TURN_SECONDS = 30.0
_PLAN_TURN_SECONDS = 0.5  # ticks share the planner's processes, and expire while they wait
_SETTLING_STEPS = 20
_TIME_LIMIT = 300  # seconds, past every limit of a batch: only what hangs is killed


@worker_process_shutdown.connect(weak=False)
def _close_connections(**_: Any) -> None:
    connections.shut_down()


def ring_planner() -> None:
    """Says that a notification was accepted. Never raises; the tick finds it anyway."""
    wakeup.ring("plan")


@shared_task(time_limit=_TIME_LIMIT)
def plan() -> None:
    """Starts due notifications and plans slices until there is nothing to plan."""
    if planning.work(seconds=_PLAN_TURN_SECONDS) and not worker.is_stopping():
        wakeup.ring("plan")


@shared_task(time_limit=_TIME_LIMIT)
def deliver_web() -> None:
    _deliver(Platform.WEB)


@shared_task(time_limit=_TIME_LIMIT)
def deliver_android() -> None:
    _deliver(Platform.ANDROID)


@shared_task(time_limit=_TIME_LIMIT)
def deliver_ios() -> None:
    _deliver(Platform.IOS)


def _deliver(platform: Platform) -> None:
    """Until nothing is due; a worker that has more to do than a turn rings for itself."""
    if dispatch.deliver(platform, seconds=_TURN_SECONDS) and not worker.is_stopping():
        wakeup.ring(platform)


@shared_task(time_limit=_TIME_LIMIT)
def tick() -> None:
    """Every second: whatever a lost message, a dead worker or the clock made due."""
    worker.note_tick()
    _attempt(batches.free_lapsed)
    _attempt(batches.unpark)
    _attempt(_bounce_overdue)
    _attempt(outcomes.finish_forgotten)
    _attempt(expiry.close_delivered_plans)
    _attempt(_settle)
    _ring()


def _bounce_overdue() -> None:
    for batch_id, code in batches.overdue():
        _attempt(outcomes.bounce_overdue, batch_id, code)


def _attempt(step: Callable[..., Any], *arguments: Any) -> None:
    """One row that cannot be written must not silence every bell; a database that is away may."""
    try:
        step(*arguments)
    except (OperationalError, InterfaceError):
        raise
    except outcomes.RowsRefused:
        pass  # logged, without the row that its traceback would quote
    except Exception:
        logger.exception("tick.step_failed", extra={"step": step.__name__})


def _settle() -> None:
    for _ in range(_SETTLING_STEPS):
        if not expiry.settle_next():
            break


def _ring() -> None:
    if planning.anything_to_plan():
        wakeup.ring("plan", settings.WORKER_CONCURRENCY)
    for platform, due in batches.due_counts(most=wakeup.MOST_WAITING).items():
        if due:
            wakeup.ring(platform, due)


@shared_task(time_limit=_TIME_LIMIT)
def housekeeping() -> None:
    """Every minute: deletes what is past its retention, in small steps; tells who is crowded."""
    retention.purge()
    retention.warn_of_crowds()
