"""The tasks that wakeups start. Each may run twice, or never."""

import random
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

import structlog
from celery import shared_task
from celery.signals import worker_init, worker_process_shutdown
from django.conf import settings
from django.db import InterfaceError, OperationalError

from channels_app.sign_in import mailing, mails
from notifications_app import deletion, retention
from notifications_app.models import AHEAD, Automation, Newsfeed, Schedule
from notifications_app.newsfeeds import checks
from notifications_app.pipeline import (
    batches,
    connections,
    credential_checks,
    deciding,
    dispatch,
    expiry,
    halting,
    outcomes,
    planning,
    wakeup,
)
from notifications_app.webhooks import attempts, turns
from pushsvc.common import correlation, worker
from pushsvc.common.platforms import Platform
from pushsvc.common.store import sql
from pushsvc.common.telemetry import spans

logger = structlog.stdlib.get_logger(__name__)

_TURN_SECONDS = 30.0
_AHEAD_SECONDS = 1.5  # until the next tick, which may be late
_PLAN_TURN_SECONDS = 0.5  # ticks share the planner's processes and expire if they wait
_EXPIRY_STEPS = 20
_BOUNCE_SECONDS = 0.8

_plan_pace, _deliver_pace = worker.Pace(), worker.Pace()


@worker_init.connect(weak=False)
def _load_transports(sender: Any, **_: Any) -> None:
    """Loads only the transports of the worker's queues, because it calls no other push service."""
    queues = sender.app.amqp.queues.consume_from
    connections.load(platform for platform in Platform if platform in queues)
    if "plan" in queues:  # registers a task that is above this module
        import_module("notifications_app.sends.firing")
    if "hooks" in queues:
        import_module("notifications_app.delivery.http_client")
    spans.load()


@worker_process_shutdown.connect(weak=False)
def _close_connections(**_: Any) -> None:
    connections.shut_down()
    spans.shut_down()


def wake_planner() -> None:
    """Wakes the planner up for an accepted notification. Never raises. If the wakeup is lost, a
    tick finds the row."""
    wakeup.wake("plan")


@shared_task
def plan() -> None:
    """Starts due notifications and plans slices until nothing is left or the turn is over."""
    _plan_pace.begin()
    with spans.span("turn", correlation.woken_by(), queue="plan"):
        is_more = planning.work(seconds=_PLAN_TURN_SECONDS, pace=_plan_pace)
    if is_more and not worker.is_stopping():
        wakeup.wake("plan")


@shared_task
def deliver(platform: str) -> None:
    """Delivers until nothing is due. Sends another wakeup if its turn ends before."""
    _deliver_pace.begin()
    with spans.span("turn", correlation.woken_by(), queue=platform):
        is_more = dispatch.deliver(Platform(platform), seconds=_TURN_SECONDS, pace=_deliver_pace)
    if is_more and not worker.is_stopping():
        wakeup.wake(platform)


@shared_task
def check_credentials(platform: str) -> None:
    """Checks new credentials, and tries paused ones again."""
    credential_checks.check_new(Platform(platform))
    credential_checks.retry_due(Platform(platform))


@shared_task
def send_mails() -> None:
    mailing.send_due()


@shared_task
def send_webhooks() -> None:
    """Turns facts into messages and sends them, and checks newsfeeds, until nothing is due or the
    turn ends."""
    with spans.span("turn", correlation.woken_by(), queue="hooks"):
        is_more = turns.work(seconds=_TURN_SECONDS)
    if is_more and not worker.is_stopping():
        wakeup.wake("hooks")


@shared_task
def tick() -> None:
    """Runs every second: does work that became due, or that a lost wakeup or a dead worker left."""
    _run_step(batches.shorten_dead)
    _run_step(batches.free_lost)
    _run_step(batches.unpark)
    _run_step(_bounce_overdue)
    _run_step(outcomes.finish_forgotten)
    _run_step(expiry.close_delivered_plans)
    _run_step(_decide_expiries)
    _run_step(_decide_tests)
    _run_step(_request_credential_checks)
    _run_step(_request_mails)
    _run_step(_request_firing)
    _wake_workers()
    worker.note_tick()  # last, so that ticks that wait or end with an error do not count


def _bounce_overdue() -> None:
    until = time.monotonic() + _BOUNCE_SECONDS
    for batch_id, code in batches.overdue():
        _run_step(outcomes.bounce_overdue, batch_id, code)
        if time.monotonic() >= until:
            break


def _run_step(step: Callable[..., Any], *arguments: Any) -> None:
    """Runs a step. A row that cannot be written, or a statement that PostgreSQL cancels, must not
    stop the other steps and the wakeups. If the database is away, the task ends."""
    try:
        step(*arguments)
    except (OperationalError, InterfaceError) as error:
        if not sql.is_cancelled(error):
            raise
        logger.exception("tick.step_failed", step=step.__name__)
    except outcomes.RowsRefused:
        pass  # already logged, without a traceback, which would quote the row
    except Exception:
        logger.exception("tick.step_failed", step=step.__name__)


def _decide_expiries() -> None:
    for _ in range(_EXPIRY_STEPS):
        if not expiry.decide_next():
            break


def _decide_tests() -> None:
    for notification_id in deciding.due():
        _run_step(deciding.decide, notification_id)


def _request_credential_checks() -> None:
    """Requests them from the platforms' workers, because only these may call push services."""
    for platform in credential_checks.platforms_with_work():
        wakeup.request_credential_checks(platform)


def _request_mails() -> None:
    if mails.is_any_due():
        wakeup.request_mails()


def _request_firing() -> None:
    automations, newsfeeds = Automation.objects.due(), Newsfeed.objects.found_some()
    if any(each.exists() for each in (Schedule.objects.due_within(AHEAD), automations, newsfeeds)):
        wakeup.request_firing()


def _wake_workers() -> None:
    # Coming notifications first, so that none becomes due unseen between the two statements.
    for seconds in planning.starts_within(_AHEAD_SECONDS):
        wakeup.wake("plan", after=seconds)
    if planning.anything_to_plan():
        wakeup.wake("plan", settings.WORKER_CONCURRENCY)
    due = list(batches.due_counts(most=wakeup.MOST_WAITING).items())
    random.shuffle(due)  # platforms that share the rate of a send are first in turn
    for platform, number in due:
        wakeup.wake(platform, number)
    if attempts.is_any_due() or checks.is_any_due():
        wakeup.wake("hooks", settings.WORKER_CONCURRENCY)


@shared_task
def housekeeping() -> None:
    """Runs every minute: applies retention, deletes channels, warns of channels that are nearly
    full, stops notifications that were paused for too long, and raises alerts."""
    _run_step(retention.purge)
    _run_step(deletion.halt_deleted)
    _run_step(deletion.purge_deleted)
    _run_step(retention.warn_of_full_channels)
    _run_step(_stop_long_paused)
    _run_step(_raise_alerts)


def _raise_alerts() -> None:
    # Imported here, so that only the planner's workers load what the findings need.
    from notifications_app import alerts

    alerts.raise_due()


def _stop_long_paused() -> None:
    for notification_id in halting.long_paused():
        _run_step(halting.stop_long_paused, notification_id)
