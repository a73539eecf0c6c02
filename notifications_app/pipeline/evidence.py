"""What the outcomes of a pass show about the push service and the channel's keys. Pure
functions."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple, Protocol, TypeVar

from notifications_app.delivery.registry import TRANSPORTS, is_at
from notifications_app.delivery.types import Accepted, Deferred, Gone, Outcome, Target

_MANY_REFUSED: Final = 10
# If a fifth of all outcomes have such a code, the channel's keys may be wrong. Nothing is paused.
_REFUSAL_EVENTS: Final = {
    code: event for each in TRANSPORTS.values() for code, event in each.refusal_events.items()
}


class Called(Protocol):
    """The part of a recipient that this module reads."""

    @property
    def target(self) -> Target: ...

    @property
    def is_first_attempt(self) -> bool: ...


R = TypeVar("R", bound=Called)


class Evidence(NamedTuple):
    """How many calls the push service answered without an outage, and how many met an outage."""

    answered: int
    outages: int


def is_outage(outcome: Outcome) -> bool:
    return isinstance(outcome, Deferred) and outcome.outage


def sample(recipients: Sequence[R], most: int) -> list[R]:
    """The recipients of a probe, at most `most`: first attempts, or retries if there are no first
    attempts. An answered retry is evidence, too."""
    first = [each for each in recipients if each.is_first_attempt]
    return list(first or recipients)[:most]


def evidence_of(
    answers: Iterable[tuple[Called, Outcome]], *, service: str, trusted_origins: frozenset[str]
) -> Evidence:
    """The evidence in the calls for batches of the service.

    Three kinds of calls are no evidence: failed retries, because they are the worst recipients of
    the service and not a sample of all; calls to hosts of other services, which old rows may name;
    and calls that were never made.
    """
    answered = outages = 0
    for called, outcome in answers:
        if not _was_asked(outcome) or not is_at(called.target, service, trusted_origins):
            continue
        if not is_outage(outcome):
            answered += 1
        elif called.is_first_attempt:
            outages += 1
    return Evidence(answered, outages)


def refused_by_many(outcomes: Iterable[Outcome]) -> Iterator[tuple[str, int]]:
    """(event to log, how many were refused) for each sign that the channel's keys may be wrong."""
    codes = Counter("" if isinstance(each, Accepted) else each.code for each in outcomes)
    for code, event in _REFUSAL_EVENTS.items():
        if codes[code] >= _MANY_REFUSED and codes[code] * 5 >= codes.total():
            yield event, codes[code]


def _was_asked(outcome: Outcome) -> bool:
    return isinstance(outcome, Accepted | Gone) or outcome.was_asked
