"""How certain the rates of variants are. Pure functions.

Newcombe, R. G. (1998): Two-sided confidence intervals for the single proportion, method 3.
Holm, S. (1979): A simple sequentially rejective multiple test procedure.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

ALPHA: Final = 0.05
LEAST_TRIALS: Final = 100
LEAST_EXPECTED: Final = 5

_Z: Final = 1.959963984540054  # of 95 % on both sides


def wilson(successes: int, trials: int) -> tuple[float, float]:
    """The interval of 95 % for a rate. Without trials, any rate."""
    if not trials:
        return 0.0, 1.0
    rate, square = min(successes, trials) / trials, _Z * _Z
    middle = rate + square / (2 * trials)
    spread = _Z * math.sqrt(rate * (1 - rate) / trials + square / (4 * trials * trials))
    whole = 1 + square / trials
    return max(0.0, (middle - spread) / whole), min(1.0, (middle + spread) / whole)


@dataclass(frozen=True, slots=True)
class Comparison:
    """`best`: the place of the highest rate. `p_value`: how likely a difference as large to every
    other rate is by chance, by Holm's correction; None if there are too few numbers. `is_certain`:
    whether it is smaller than ALPHA."""

    best: int
    p_value: float | None

    @property
    def is_certain(self) -> bool:
        return self.p_value is not None and self.p_value < ALPHA


def compared(counts: Sequence[tuple[int, int]]) -> Comparison:
    """Compares the best rate with each other one. `counts`: successes and trials of each.

    Two-proportion z-tests with a pooled rate. They need LEAST_TRIALS of each, and of each
    LEAST_EXPECTED successes and as many failures, if all rates were equal. Look once, at a moment
    that was fixed before: the more often you look, the more often chance looks like a difference.
    """
    own = [(min(successes, trials), trials) for successes, trials in counts]
    rates = [successes / trials if trials else 0.0 for successes, trials in own]
    best = max(range(len(own)), key=rates.__getitem__)
    if not _are_enough(own):
        return Comparison(best, None)
    others = (each for place, each in enumerate(own) if place != best)
    p_values = sorted(_p_value(own[best], each) for each in others)
    # Holm: the largest of the corrected values, which decides whether all differences are certain.
    corrected = [p * (len(p_values) - place) for place, p in enumerate(p_values)]
    return Comparison(best, min(1.0, max(corrected)))


def _are_enough(counts: Sequence[tuple[int, int]]) -> bool:
    successes, trials = (sum(each) for each in zip(*counts, strict=True))
    fewest = min(trials for _, trials in counts)
    if fewest < LEAST_TRIALS:
        return False
    expected: float = min(successes, trials - successes) / trials * fewest
    return expected >= LEAST_EXPECTED


def _p_value(one: tuple[int, int], other: tuple[int, int]) -> float:
    """Of both sides."""
    (successes, trials), (its_successes, its_trials) = one, other
    pooled = (successes + its_successes) / (trials + its_trials)
    variance = pooled * (1 - pooled) * (1 / trials + 1 / its_trials)
    if not variance:
        return 1.0
    z = (successes / trials - its_successes / its_trials) / math.sqrt(variance)
    return math.erfc(abs(z) / math.sqrt(2))
