"""What a push service's answer, or the lack of time, makes of a recipient. Writes nothing."""

import math
import random
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import assert_never
from uuid import UUID

from notifications_app.delivery.types import (
    Accepted,
    Deferred,
    Gone,
    Misconfigured,
    Outcome,
    Rejected,
)
from notifications_app.states import DeliveryStatus

EXPIRED = "expired"
UNSUBSCRIBED = "unsubscribed"
CREDENTIALS_REFUSED = "credentials_refused"
INTERNAL_ERROR = "internal_error"

_SHORTEST_WAIT = 1.0
_FIRST_WAIT = 5.0
_LONGEST_BACKOFF = 300.0


@dataclass(frozen=True, slots=True)
class Recipient:
    """What the delivery row said when the batch was read."""

    subscription_id: UUID
    attempts: int
    first_attempt_at: datetime | None
    solo_attempts: int


@dataclass(frozen=True, slots=True)
class Limits:
    """When handing-over ends for each recipient of a notification."""

    deadline: datetime
    attempts: int
    seconds: int


@dataclass(frozen=True, slots=True)
class Verdict:
    """What to write for one recipient, and how many attempts that adds. `expires_as_of`: the
    subscription is dead unless it has registered since. `proves`: it took its first message."""

    recipient: Recipient
    status: DeliveryStatus
    code: str = ""
    detail: str = ""
    due_at: datetime | None = None
    attempts: int = 0
    expires_as_of: datetime | None = None
    is_suspect: bool = False
    proves: bool = False

    @property
    def subscription_id(self) -> UUID:
        return self.recipient.subscription_id


def bounce(recipient: Recipient, code: str, *, attempts: int = 0, detail: str = "") -> Verdict:
    return Verdict(recipient, DeliveryStatus.BOUNCED, code, detail, attempts=attempts)


def judge(
    recipient: Recipient,
    outcome: Outcome,
    *,
    registered_at: datetime,
    now: datetime,
    limits: Limits,
    is_unproven: bool = False,
) -> Verdict:
    """What a push service's answer means for the row. Misconfigured leaves it waiting.

    `registered_at`: of the subscription as it was called; `is_unproven`: it never took a message.
    """
    match outcome:
        case Accepted():
            return Verdict(recipient, DeliveryStatus.DELIVERED, attempts=1, proves=is_unproven)
        case Rejected(code=code, detail=detail):
            return bounce(recipient, code, attempts=1, detail=detail)
        case Gone():
            return _expire(recipient, outcome, registered_at)
        case Deferred():
            return _defer(recipient, outcome, now, limits)
        case Misconfigured(code=code, detail=detail):
            return Verdict(recipient, DeliveryStatus.WAITING, code, detail)
        case _:
            assert_never(outcome)


def out_of_time(recipient: Recipient, *, now: datetime, limits: Limits) -> bool:
    """Whether nothing may be handed over for the recipient any more."""
    return recipient.attempts >= limits.attempts or now >= _last_moment(recipient, now, limits)


def _expire(recipient: Recipient, gone: Gone, registered_at: datetime) -> Verdict:
    as_of = min(gone.as_of or registered_at, registered_at)
    return Verdict(
        recipient,
        DeliveryStatus.BOUNCED,
        gone.code,
        gone.detail,
        attempts=1,
        expires_as_of=None if gone.suspect else as_of,
        is_suspect=gone.suspect,
    )


def _defer(recipient: Recipient, outcome: Deferred, now: datetime, limits: Limits) -> Verdict:
    attempts = recipient.attempts + 1
    due_at = _rounded_up(now + timedelta(seconds=_wait(attempts, outcome.retry_after)), now)
    if attempts >= limits.attempts or due_at >= _last_moment(recipient, now, limits):
        detail = f"{outcome.code} {outcome.detail}".strip()
        return bounce(recipient, EXPIRED, attempts=1, detail=detail)
    return Verdict(
        recipient,
        DeliveryStatus.WAITING,
        outcome.code,
        outcome.detail,
        due_at=due_at,
        attempts=1,
    )


def _wait(attempts: int, retry_after: float | None) -> float:
    backoff = min(_FIRST_WAIT * 2.0 ** (attempts - 1), _LONGEST_BACKOFF)
    jittered = backoff * random.uniform(0.8, 1.2)  # noqa: S311 (spreads load; guards nothing)
    return max(jittered, retry_after or 0.0, _SHORTEST_WAIT)


def _last_moment(recipient: Recipient, now: datetime, limits: Limits) -> datetime:
    first = recipient.first_attempt_at or now
    return min(limits.deadline, first + timedelta(seconds=limits.seconds))


def _rounded_up(due_at: datetime, now: datetime) -> datetime:
    """To a grid of a quarter of the wait, so that a batch's deferred rows come due together."""
    grid = max(1.0, (due_at - now).total_seconds() / 4)
    grid = 2.0 ** math.floor(math.log2(grid))
    seconds = math.ceil(due_at.timestamp() / grid) * grid
    return datetime.fromtimestamp(seconds, tz=due_at.tzinfo)
