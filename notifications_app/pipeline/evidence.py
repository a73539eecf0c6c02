"""What a batch's answers say of the push service, and of the channel's keys. Pure."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from notifications_app.delivery.fcm.answers import THIRD_PARTY_AUTH
from notifications_app.delivery.registry import Target, is_at
from notifications_app.delivery.types import (
    NEVER_ASKED_CODES,
    Accepted,
    Deferred,
    Outcome,
)
from notifications_app.delivery.webpush.answers import VAPID_REFUSED

_MANY_REFUSED: Final = 10
# One endpoint that answers so proves nothing, so nothing is paused: anyone may subscribe such. A
# fifth of them says that the channel's keys may be wrong.
_WARNINGS: Final = {
    VAPID_REFUSED: "vapid.refused_by_many",
    THIRD_PARTY_AUTH: "fcm.third_party_auth_by_many",
}


class Evidence(NamedTuple):
    """How many calls the push service answered, whatever it said, and how many met an outage."""

    answered: int
    outages: int


def is_outage(outcome: Outcome) -> bool:
    return isinstance(outcome, Deferred) and outcome.outage


def sample(
    targets: Sequence[Target], most: int, *, is_first: Callable[[Target], bool]
) -> list[Target]:
    """Whom to call to try the service: first attempts, and never retries beside them. Where only
    retries are left they are called, for one that is answered is as good a sign."""
    first = [target for target in targets if is_first(target)]
    return list(first or targets)[:most]


def evidence_of(
    answers: Iterable[tuple[Target, Outcome]],
    *,
    service: str,
    trusted_origins: frozenset[str],
    is_first: Callable[[Target], bool],
) -> Evidence:
    """Of calls for a batch of the service; `is_first` tells first attempts.

    A retry that fails says nothing: who is tried again is the service's worst recipient, not a
    sample of it. Nor does a call to a host that is not the service's, which a row may name from a
    time when the lists were others, nor one that was never made.
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
    """Events to log: the channel's keys may be wrong. And how many were refused."""
    codes = Counter("" if isinstance(each, Accepted) else each.code for each in outcomes)
    for code, event in _WARNINGS.items():
        if codes[code] >= _MANY_REFUSED and codes[code] * 5 >= codes.total():
            yield event, codes[code]


def _was_never_asked(outcome: Outcome) -> bool:
    return not isinstance(outcome, Accepted) and outcome.code in NEVER_ASKED_CODES
