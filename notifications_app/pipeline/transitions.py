"""Computes transitions of recipients from outcomes and limits. Pure functions."""

import math
import random
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple, assert_never
from uuid import UUID

from notifications_app.delivery.messages import NOT_PERSONALIZABLE, PAYLOAD_TOO_LARGE
from notifications_app.delivery.types import (
    Accepted,
    Deferred,
    Gone,
    Misconfigured,
    Outcome,
    Rejected,
    is_throttled,
)
from notifications_app.states import DeliveryStatus

EXPIRED = "expired"
UNSUBSCRIBED = "unsubscribed"
CREDENTIALS_REFUSED = "credentials_refused"
INTERNAL_ERROR = "internal_error"
STOPPED = "stopped"
OPTED_OUT = "opted_out"
PERSON_CHANGED = "person_changed"
QUIET_HOURS = "quiet_hours"  # of recipients that wait
# Codes of bounces without a response of the push service about the device: most of these recipients
# were never called.
UNCALLED = (
    EXPIRED,
    UNSUBSCRIBED,
    CREDENTIALS_REFUSED,
    STOPPED,
    OPTED_OUT,
    PERSON_CHANGED,
    NOT_PERSONALIZABLE,
    PAYLOAD_TOO_LARGE,
)

_SHORTEST_WAIT = 1.0
_FIRST_WAIT = 5.0
_LONGEST_BACKOFF = 300.0
_LIMITED_WAIT = 15.0


class DueDelivery(NamedTuple):
    """A delivery row as it was read. `wanted_at`: the time from which the recipient was to get the
    message, moved by the duration of pauses and by quiet hours."""

    batch_id: int
    subscription_id: UUID
    attempts: int
    first_attempt_at: datetime | None
    solo_attempts: int
    wanted_at: datetime


@dataclass(frozen=True, slots=True)
class Limits:
    """When attempts end: after the deadline, this many attempts, or this many seconds since the
    first attempt."""

    deadline: datetime
    attempts: int
    seconds: int


class Transition(NamedTuple):
    """What to write to a delivery row. `attempts`: how many to add. `expires_as_of`: the
    subscription expires unless it registered after this time. `proves`: the call proves the
    subscription. `outcome`: of the call; None if no call was made."""

    delivery: DueDelivery
    status: DeliveryStatus
    code: str = ""
    detail: str = ""
    due_at: datetime | None = None
    attempts: int = 0
    expires_as_of: datetime | None = None
    is_suspect: bool = False
    proves: bool = False
    outcome: Outcome | None = None

    @property
    def subscription_id(self) -> UUID:
        return self.delivery.subscription_id


def bounce(
    delivery: DueDelivery,
    code: str,
    *,
    attempts: int = 0,
    detail: str = "",
    outcome: Outcome | None = None,
) -> Transition:
    return Transition(
        delivery, DeliveryStatus.BOUNCED, code, detail, attempts=attempts, outcome=outcome
    )


def postpone(delivery: DueDelivery, until: datetime, *, deadline: datetime) -> Transition:
    """The transition of a recipient that is not called now, because its quiet hours end `until`
    then. Its attempts begin anew, so that the night is not part of their hour."""
    if until >= deadline:
        return bounce(delivery, EXPIRED, detail=QUIET_HOURS)
    return Transition(
        delivery,
        DeliveryStatus.WAITING,
        QUIET_HOURS,
        due_at=until,
        attempts=-delivery.attempts,
    )


def transition_of(
    delivery: DueDelivery,
    outcome: Outcome,
    *,
    registered_at: datetime,
    now: datetime,
    limits: Limits,
    is_unproven: bool = False,
    is_limited: bool = False,
) -> Transition:
    """The transition for the outcome of a call. Misconfigured leaves the recipient waiting.

    `registered_at`, `is_unproven`: of the subscription when it was read. `is_limited`: the push
    service is known to limit the channel. Then a throttled call is no attempt, and only the
    deadline ends a waiting recipient.
    """
    match outcome:
        case Accepted():
            return Transition(
                delivery,
                DeliveryStatus.DELIVERED,
                attempts=1,
                proves=is_unproven,
                outcome=outcome,
            )
        case Rejected(code=code, detail=detail):
            return bounce(delivery, code, attempts=1, detail=detail, outcome=outcome)
        case Gone():
            return _confirm(delivery, outcome, now, limits) or _expire(
                delivery, outcome, registered_at
            )
        case Deferred():
            is_attempt = not (is_limited and is_throttled(outcome))
            last = limits.deadline if is_limited else _last_moment(delivery, now, limits)
            return _defer(delivery, outcome, now, limits, last=last, attempts=int(is_attempt))
        case Misconfigured(code=code, detail=detail):
            return Transition(delivery, DeliveryStatus.WAITING, code, detail, outcome=outcome)
        case _:
            assert_never(outcome)


def out_of_time(
    delivery: DueDelivery, *, now: datetime, limits: Limits, is_limited: bool = False
) -> bool:
    """Whether no further attempt may be made. `is_limited`: as in `transition_of`."""
    if is_limited:
        return now >= limits.deadline
    return delivery.attempts >= limits.attempts or now >= _last_moment(delivery, now, limits)


def _confirm(delivery: DueDelivery, gone: Gone, now: datetime, limits: Limits) -> Transition | None:
    """The transition of a recipient that is tried again; None if it is not."""
    if delivery.attempts + 1 >= gone.attempts:
        return None
    deferred, last = Deferred(gone.code, gone.detail), _last_moment(delivery, now, limits)
    again = _defer(delivery, deferred, now, limits, last=last, attempts=1)
    return again if again.status == DeliveryStatus.WAITING else None


def _expire(delivery: DueDelivery, gone: Gone, registered_at: datetime) -> Transition:
    as_of = min(gone.as_of or registered_at, registered_at)
    return Transition(
        delivery,
        DeliveryStatus.BOUNCED,
        gone.code,
        gone.detail,
        attempts=1,
        expires_as_of=None if gone.suspect else as_of,
        is_suspect=gone.suspect,
        outcome=gone,
    )


def _defer(
    delivery: DueDelivery,
    outcome: Deferred,
    now: datetime,
    limits: Limits,
    *,
    last: datetime,
    attempts: int,
) -> Transition:
    """`last`: when it bounces at the latest. `attempts`: 1, or 0 if the call does not count."""
    made = delivery.attempts + attempts
    wait = _wait(_backoff(made) if attempts else _LIMITED_WAIT, outcome.retry_after)
    earliest = now + timedelta(seconds=wait)
    if (attempts and made >= limits.attempts) or earliest >= last:
        detail = f"{outcome.code} {outcome.detail}".strip()
        return bounce(delivery, EXPIRED, attempts=attempts, detail=detail, outcome=outcome)
    rounded = _rounded_up(earliest, now)
    return Transition(
        delivery,
        DeliveryStatus.WAITING,
        outcome.code,
        outcome.detail,
        due_at=rounded if rounded < last else earliest,
        attempts=attempts,
        outcome=outcome,
    )


def _backoff(attempts: int) -> float:
    return min(_FIRST_WAIT * 2.0 ** (attempts - 1), _LONGEST_BACKOFF)


def _wait(backoff: float, retry_after: float | None) -> float:
    jittered = backoff * random.uniform(0.8, 1.2)  # noqa: S311 (spreads load; guards nothing)
    return max(jittered, retry_after or 0.0, _SHORTEST_WAIT)


def _last_moment(delivery: DueDelivery, now: datetime, limits: Limits) -> datetime:
    first = delivery.first_attempt_at or now
    return min(limits.deadline, first + timedelta(seconds=limits.seconds))


def _rounded_up(due_at: datetime, now: datetime) -> datetime:
    """Rounds up to a grid of about a quarter of the wait, so that a batch's deferred recipients
    become due together."""
    grid = max(1.0, (due_at - now).total_seconds() / 4)
    grid = 2.0 ** math.floor(math.log2(grid))
    seconds = math.ceil(due_at.timestamp() / grid) * grid
    return datetime.fromtimestamp(seconds, tz=due_at.tzinfo)
