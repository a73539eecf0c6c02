"""Shares and durations, for code and for people."""

import math

from django.utils.translation import gettext


def share(part: int, whole: int) -> float | None:
    """None if `whole` is 0."""
    return part / whole if whole else None


def duration(seconds: float) -> str:
    """7500 → 2 h 5 min: the two largest units, rounded up to seconds."""
    left = math.ceil(seconds)
    units = (
        (gettext("%(number)s d"), 86_400),
        (gettext("%(number)s h"), 3_600),
        (gettext("%(number)s min"), 60),
        (gettext("%(number)s s"), 1),
    )
    parts = []
    for words, length in units:
        count, left = divmod(left, length)
        if count:
            parts.append(words % {"number": count})
    return " ".join(parts[:2]) or gettext("%(number)s s") % {"number": 0}
