"""How certain the rates of variants are. Pure functions.

Newcombe, R. G. (1998): Two-sided confidence intervals for the single proportion, method 3.
"""

import math
from typing import Final

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
