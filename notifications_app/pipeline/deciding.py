"""Decides which variant of a notification goes to those who were not in the test.

The rest is a separate part. Its release is the latest moment at which it may begin. The decision
moves the release to now, in the transaction that stores the winner. So nobody is planned twice or
left out, whenever a process is killed, and the first decision is the only one.

`Notification.decision` has `variant` (its number), `by` (DecidedBy), `p_value` and `at`. A test on
hold has only `p_value` and `at`, of the moment when its numbers said nothing.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, Final
from uuid import UUID

import structlog
from django.db import transaction
from django.db.models import Min

from channels_app.feeds import EventKind, message_add
from notifications_app.content.values import HOLD, LEADER, TEST_METRICS
from notifications_app.models import Notification
from notifications_app.pipeline import wakeup
from notifications_app.pipeline.halting import Locked, Notifications, locked, time_to_live
from notifications_app.significance import Comparison, compared
from pushsvc.common.store import sql
from pushsvc.common.timestamps import format_timestamp

logger = structlog.stdlib.get_logger(__name__)


class DecidedBy(StrEnum):
    """`difference`: the numbers are certain. `leader`: they are not, so the highest rate counts.
    `default`: they are not, and the send named a variant for this. `choice`: somebody chose."""

    DIFFERENCE = "difference"
    LEADER = "leader"
    DEFAULT = "default"
    CHOICE = "choice"


def due(limit: int = 100) -> list[UUID]:
    """Ids of notifications whose test is to be decided by itself."""
    found = Notification.objects.deciding().order_by("decides_at")
    return list(found.values_list("pk", flat=True)[:limit])


def decide(pk: UUID) -> None:
    """Decides the test of a notification of `due`, or puts it on hold, unless somebody was
    first."""
    with sql.brief_transaction():
        found = locked(Notification.objects.deciding().filter(pk=pk))
        if found is None:
            return
        test = found.was.test
        numbers = compared(_counts(found.was, test["metric"]))
        number, by = _winner(found.was, numbers)
        if number is None:
            _hold(found, numbers)
        else:
            _settle(found, number, by, p_value=_first_p_value(found.was, numbers))


def choose(own: Notifications, number: int) -> None:
    """Decides the test of the only notification of `own` for the variant of this number, unless it
    is decided, or is not being sent any more."""
    with sql.brief_transaction():
        found = locked(own)
        if found is None or not found.was.is_deciding:
            return
        numbers = compared(_counts(found.was, found.was.test["metric"]))
        _settle(found, number, DecidedBy.CHOICE, p_value=_first_p_value(found.was, numbers))


def _winner(notification: Notification, numbers: Comparison) -> tuple[int | None, DecidedBy]:
    """None: on hold. Numbers are judged once, so that a test on hold ends with its leader."""
    if notification.decision is not None:
        return numbers.best, DecidedBy.LEADER
    if numbers.is_certain:
        return numbers.best, DecidedBy.DIFFERENCE
    match notification.test["inconclusive"]:
        case str(word) if word == LEADER:
            return numbers.best, DecidedBy.LEADER
        case str(word) if word == HOLD:
            return None, DecidedBy.LEADER
        case name:
            return _names(notification).index(name), DecidedBy.DEFAULT


def _first_p_value(notification: Notification, numbers: Comparison) -> float | None:
    held: Mapping[str, Any] = notification.decision or {"p_value": numbers.p_value}
    p_value: float | None = held["p_value"]
    return p_value


def _names(notification: Notification) -> list[str]:
    return [each["name"] for each in notification.content.variants]


def _hold(found: Locked, numbers: Comparison) -> None:
    """Waits for a choice until the rest is released."""
    rest = found.plans.filter(bucket_from__gt=0)
    until = rest.aggregate(until=Min("release_at"))["until"]
    decision = {"p_value": numbers.p_value, "at": format_timestamp(sql.now())}
    found.row.update(decision=decision, decides_at=until)
    logger.info("test.held", notification=found.was.pk)


def _settle(found: Locked, number: int, by: DecidedBy, *, p_value: float | None) -> None:
    one = found.was
    moment = sql.now()
    rest = found.plans.filter(bucket_from__gt=0)
    rest.update(release_at=moment, due_at=moment, deadline_at=moment + time_to_live(one.ttl))
    decision = {"variant": number, "by": by, "p_value": p_value, "at": format_timestamp(moment)}
    found.row.update(decision=decision, decides_at=None)
    found.move_deadlines()
    found.record_change()
    name = _names(one)[number]
    message_add(
        EventKind.DECIDED,
        one.channel_id,
        notification_id=str(one.pk),
        variant=name,
        decided_by=by,
        p_value=p_value,
    )
    about = {"notification": one.pk, "by": by, **one.correlation.fields}
    transaction.on_commit(lambda: logger.info("test.decided", variant=name, **about))
    transaction.on_commit(lambda: wakeup.wake("plan"))


def _counts(notification: Notification, metric: str) -> Sequence[tuple[int, int]]:
    """Successes and deliveries of each variant."""
    found = {
        variant: (successes, delivered)
        for variant, successes, delivered in sql.rows(
            COUNTS[metric], {"notification": notification.pk}
        )
    }
    return [found.get(number, (0, 0)) for number in range(len(_names(notification)))]


# Raw, because the ORM cannot add up rows of two tables. By metric.
COUNTS: Final = {
    metric: f"""
SELECT variant, sum(successes)::bigint, sum(delivered)::bigint FROM (
  SELECT variant, 0 AS successes, delivered_count AS delivered FROM notifications_app_batch
  WHERE notification_id = %(notification)s AND variant IS NOT NULL
  UNION ALL
  SELECT variant, {metric}, delivered FROM notifications_app_variantcount
  WHERE notification_id = %(notification)s) AS counted
GROUP BY variant
"""  # noqa: S608 - names of columns
    for metric in TEST_METRICS
}
