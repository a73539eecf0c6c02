"""What a batch's outcomes say about the push service and about the channel's keys. Pure."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from notifications_app.delivery.registry import TRANSPORTS, is_at
from notifications_app.delivery.types import INTERNAL_ERROR, Accepted, Deferred, Outcome, Target

_MANY_REFUSED: Final = 10
_NEVER_ASKED: Final = frozenset({INTERNAL_ERROR}).union(
    *(each.never_asked_codes for each in TRANSPORTS.values())
)
# A fifth of all answers says that the channel's keys may be wrong. Nothing is paused.
_REFUSAL_EVENTS: Final = {
    code: event for each in TRANSPORTS.values() for code, event in each.refusal_events.items()
}


class Evidence(NamedTuple):
    """How many calls the push service answered in any way, and how many met an outage."""

    answered: int
    outages: int


def is_outage(outcome: Outcome) -> bool:
    return isinstance(outcome, Deferred) and outcome.outage


def sample(
    targets: Sequence[Target], most: int, *, is_first: Callable[[Target], bool]
) -> list[Target]:
    """The targets of a probe: first attempts, and retries only if nothing else is left. A retry
    that is answered is evidence, too."""
    first = [target for target in targets if is_first(target)]
    return list(first or targets)[:most]


def evidence_of(
    answers: Iterable[tuple[Target, Outcome]],
    *,
    service: str,
    trusted_origins: frozenset[str],
    is_first: Callable[[Target], bool],
) -> Evidence:
    """The evidence in the calls for a batch of the service. `is_first` recognises first attempts.

    Three kinds of calls are no evidence: retries that fail, because they are the service's worst
    recipients and not a sample of it; calls to hosts that are not the service's, which old rows may
    name; and calls that were never made.
    """
    answered = outages = 0
    for target, outcome in answers:
        if _was_never_asked(outcome) or not is_at(target, service, trusted_origins):
            continue
        if not is_outage(outcome):
            answered += 1
        elif is_first(target):
            outages += 1
    return Evidence(answered, outages)


def refused_by_many(outcomes: Iterable[Outcome]) -> Iterator[tuple[str, int]]:
    """(event to log, how many were refused), if the channel's keys may be wrong."""
    codes = Counter("" if isinstance(each, Accepted) else each.code for each in outcomes)
    for code, event in _REFUSAL_EVENTS.items():
        if codes[code] >= _MANY_REFUSED and codes[code] * 5 >= codes.total():
            yield event, codes[code]


def _was_never_asked(outcome: Outcome) -> bool:
    return not isinstance(outcome, Accepted) and outcome.code in _NEVER_ASKED
