"""Sends the occurrences of schedules, fires automations, and sends what newsfeeds found.

Each occurrence becomes an ordinary scheduled notification, AHEAD of its time, so that the planner
starts it to the second. One transaction writes the notification, the occurrence and the time of the
next one while it holds the schedule. So an occurrence has one notification, however many processes
fire, and wherever they are killed.
"""

import time
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import takewhile
from typing import Final, cast

import structlog
from celery import shared_task
from django.db import DatabaseError, InterfaceError, OperationalError, transaction

from channels_app.selectors import ChannelDeleted
from notifications_app.errors import TooManyPending
from notifications_app.models import AHEAD, Occurrence, OccurrenceCode, Schedule
from notifications_app.pipeline import wakeup
from notifications_app.sends import automation_firing
from notifications_app.sends.disabling import code_of, disable
from notifications_app.sends.publishing import publish_next
from notifications_app.sends.schedules import following, open_after
from notifications_app.sends.services import notification_accept
from notifications_app.sends.stored_sends import loaded
from pushsvc.common import correlation, worker
from pushsvc.common.errors import PushsvcError, TooManyRequests, Unavailable
from pushsvc.common.store import sql
from pushsvc.common.telemetry import spans

logger = structlog.stdlib.get_logger(__name__)

LATE: Final = timedelta(hours=1)  # an occurrence that was missed for so long is not sent
_TURN_SECONDS: Final = 0.5  # ticks share the planner's processes and expire if they wait
_MOST_NOTED: Final = 1_000  # occurrences that were missed


@shared_task(name="notifications_app.tasks.fire")
def fire() -> None:
    """Fires until nothing is due or the turn is over."""
    with spans.span("turn", correlation.woken_by(), queue="plan"):
        is_more = work(seconds=_TURN_SECONDS)
    if is_more and not worker.is_stopping():
        wakeup.request_firing()


def work(*, seconds: float) -> bool:
    """Fires what is due. Returns False when nothing is left, True when the time is over or the
    worker must stop."""
    until = time.monotonic() + seconds
    while time.monotonic() < until and not worker.is_stopping():
        # Schedules first, because each occurrence has its second.
        if not (fire_next() or _fire_others()):
            return False
    return True


def _fire_others() -> bool:
    """Fires one automation and one newsfeed, so that neither kind waits until the other has no
    more. Returns False if nothing is due."""
    is_fired, is_published = automation_firing.fire_next(), publish_next()
    return is_fired or is_published


def fire_next() -> bool:
    """Fires one occurrence of one schedule. Returns False if none is due. A schedule that cannot be
    fired for a reason that nobody expected is disabled, so that it delays no other."""
    with sql.brief_transaction():
        due = Schedule.objects.due_within(AHEAD).select_related("channel").order_by("next_at")
        schedule = due.select_for_update(skip_locked=True, no_key=True, of=("self",)).first()
        if schedule is None:
            return False
        try:
            with transaction.atomic():
                _fire(schedule)
        except (OperationalError, InterfaceError, Unavailable):
            raise
        except ChannelDeleted:
            pass  # asked for at this moment, so that the schedule is no longer due
        except Exception as error:
            # Without the traceback of an error of the database, which would quote the row.
            quotes = isinstance(error, DatabaseError)
            logger.error(
                "schedule.failed",
                schedule=schedule.pk,
                error=type(error).__name__,
                exc_info=not quotes,
            )
            detail = f"{type(error).__name__}: the log has more."
            disable(schedule, PushsvcError.code, detail, next_at=None)
    return True


def _fire(schedule: Schedule) -> None:
    now = sql.now()
    missed, wanted = _due(schedule, now)
    Occurrence.objects.bulk_create(
        [
            Occurrence(schedule=schedule, occurs_at=each, code=OccurrenceCode.SKIPPED_LATE)
            for each in missed[-_MOST_NOTED:]
        ],
        ignore_conflicts=True,
    )
    if wanted is None or _send(schedule, wanted):
        schedule.next_at = following(schedule, wanted or missed[-1])
        schedule.save(update_fields=["next_at", "last_notification_id"])


def _due(schedule: Schedule, now: datetime) -> tuple[list[datetime], datetime | None]:
    """The occurrences that were missed, and the one to send: the latest that is less than LATE, or
    else one that comes. Leaves out those that staff skipped."""
    first = cast("datetime", schedule.next_at)
    due = [first, *takewhile(lambda each: each <= now, open_after(schedule, first))]
    latest = due[-1]
    return (due, None) if latest <= now - LATE else (due[:-1], latest)


def _send(schedule: Schedule, occurs_at: datetime) -> bool:
    """Returns whether the schedule goes on."""
    local_at = schedule.recurs.local_at(occurs_at)
    when = {"local_at": local_at} if local_at else {"scheduled_at": occurs_at}
    request = replace(loaded(schedule.send), **when)
    occurrence = Occurrence(schedule=schedule, occurs_at=occurs_at, code=OccurrenceCode.SENT)
    refusal: PushsvcError | None = None
    try:
        with transaction.atomic():
            notification = notification_accept(
                channel=schedule.channel,
                request=request,
                sent_by=schedule.changed_by,
                once=schedule.once,
            )
    except (Unavailable, ChannelDeleted):
        raise
    except PushsvcError as error:
        refusal, occurrence.code = error, code_of(error)
    else:
        occurrence.notification_id = schedule.last_notification_id = notification.pk
    occurrence.save(force_insert=True)
    if refusal is None:
        return True
    logger.warning("schedule.refused", schedule=schedule.pk, code=occurrence.code)
    if isinstance(refusal, TooManyPending | TooManyRequests):
        return True  # the channel's limits, which the next occurrence may keep
    disable(schedule, occurrence.code, refusal.detail, next_at=None)
    return False
