"""What the outcomes of a pass show about the push service and the channel's keys. Pure
functions."""

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from notifications_app.delivery.registry import TRANSPORTS, is_at
from notifications_app.delivery.types import (
    MAX_RETRY_AFTER,
    Accepted,
    Deferred,
    Gone,
    Outcome,
    is_throttled,
)
from notifications_app.pipeline.reading import Recipient

_MANY_REFUSED: Final = 10
# How many of the last calls show whether a push service throttles a channel.
LEAST_RECENT: Final = 20
MOST_RECENT: Final = 40
# If a fifth of all outcomes have such a code, the channel's keys may be wrong. Nothing is paused.
_REFUSAL_EVENTS: Final = {
    code: event for each in TRANSPORTS.values() for code, event in each.refusal_events.items()
}


class Evidence(NamedTuple):
    """How many calls got a response without an outage, and how many met an outage."""

    responded: int
    outages: int


class Throttling(NamedTuple):
    """How many calls the push service accepted, how many count, and how many of these were
    throttled; the same two of the last MOST_RECENT calls. `retry_after`: the seconds that all of
    these throttled calls have to wait, or 0."""

    accepted: int
    calls: int
    throttled: int
    recent: int
    recent_throttled: int
    retry_after: float


def is_outage(outcome: Outcome) -> bool:
    return isinstance(outcome, Deferred) and outcome.outage


def sample(recipients: Sequence[Recipient], most: int) -> list[Recipient]:
    """The recipients of a probe, at most `most`: first attempts, or retries if there are no first
    attempts. A retry that gets a response is evidence, too."""
    first = [each for each in recipients if each.is_first_attempt]
    return list(first or recipients)[:most]


def trial_sample(recipients: Sequence[Recipient], most: int) -> list[Recipient]:
    """The recipients of a trial, at most `most`: any first attempts, but first those whose devices
    a push service accepted messages for, because nobody can subscribe such a device at will."""
    mixed = random.sample(recipients, len(recipients))
    mixed.sort(key=lambda each: (not each.is_first_attempt, not each.is_proven))
    return mixed[:most]


def evidence_of(
    results: Iterable[tuple[Recipient, Outcome]], *, service: str, trusted_origins: frozenset[str]
) -> Evidence:
    """The evidence in the calls for batches of the service.

    Three kinds of calls are no evidence: failed retries, because they are the worst recipients of
    the service and not a sample of all; calls to hosts of other services, which old rows may name;
    and calls that were never made.
    """
    responded = outages = 0
    for called, outcome in results:
        if not _was_called(outcome) or not is_at(called.destination, service, trusted_origins):
            continue
        if not is_outage(outcome):
            responded += 1
        elif called.is_first_attempt:
            outages += 1
    return Evidence(responded, outages)


def throttling_of(
    results: Sequence[tuple[Recipient, Outcome]],
    *,
    service: str,
    trusted_origins: frozenset[str],
    are_retries_counted: bool,
) -> Throttling:
    """What the calls, in their order, show about a limit of the service for the channel. Without a
    known limit, throttled retries do not count, because retries are the worst recipients."""
    if not any(is_throttled(outcome) for _, outcome in results):  # of most sends; costs least
        accepted = sum(isinstance(outcome, Accepted) for _, outcome in results)
        return Throttling(accepted, len(results), 0, min(len(results), MOST_RECENT), 0, 0.0)
    called_ones = [
        (called, outcome)
        for called, outcome in results
        if _was_called(outcome) and is_at(called.destination, service, trusted_origins)
    ]
    counted = [
        outcome
        for called, outcome in called_ones
        if are_retries_counted or called.is_first_attempt or not is_throttled(outcome)
    ]
    recent = counted[-MOST_RECENT:]
    # Bounded, because an error here would lose calls that are still in flight.
    waits = [min(each.retry_after or 0.0, MAX_RETRY_AFTER) for each in recent if is_throttled(each)]
    return Throttling(
        accepted=sum(isinstance(outcome, Accepted) for _, outcome in called_ones),
        calls=len(counted),
        throttled=sum(map(is_throttled, counted)),
        recent=len(recent),
        recent_throttled=len(waits),
        retry_after=min(waits, default=0.0),
    )


def refused_by_many(outcomes: Iterable[Outcome]) -> Iterator[tuple[str, int]]:
    """(event to log, how many were refused) for each sign that the channel's keys may be wrong."""
    codes = Counter("" if isinstance(each, Accepted) else each.code for each in outcomes)
    for code, event in _REFUSAL_EVENTS.items():
        if codes[code] >= _MANY_REFUSED and codes[code] * 5 >= codes.total():
            yield event, codes[code]


def _was_called(outcome: Outcome) -> bool:
    return isinstance(outcome, Accepted | Gone) or outcome.was_called
