"""Shares and durations, for code and for people. Pure."""

import math
from typing import Final

_UNITS: Final = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))


def share(part: int, whole: int) -> float | None:
    """None if `whole` is 0."""
    return part / whole if whole else None


def duration(seconds: float) -> str:
    """7500 → 2 h 5 min: the two largest units, rounded up to seconds."""
    left = math.ceil(seconds)
    parts = []
    for name, length in _UNITS:
        count, left = divmod(left, length)
        if count:
            parts.append(f"{count} {name}")
    return " ".join(parts[:2]) or "0 s"
