"""Formats numbers, shares, durations and times for the console.

For templates (`load figures`) and for Python code.
"""

import math
from datetime import UTC, datetime
from typing import Final

from django import template
from django.utils.html import format_html

from pushsvc.common.platforms import PLATFORM_NAMES

NOTHING: Final = "\N{EN DASH}"
_UNITS: Final = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))
_TO_THE_MINUTE: Final = "%Y-%m-%d %H:%M"
_FORMATS: Final = {"seconds": "%Y-%m-%d %H:%M:%S", "clock": "%H:%M:%S", "minute": "%H:%M"}

register = template.Library()


def share(part: int, whole: int) -> float | None:
    """None if `whole` is 0."""
    return part / whole if whole else None


@register.filter
def grouped(number: int) -> str:
    """1234567 → 1,234,567"""
    return f"{number:,}"


@register.filter
def signed(number: int) -> str:
    """1234 → +1,234; 0 → 0. A negative number gets a real minus sign."""
    return f"{number:+,}".replace("-", "\N{MINUS SIGN}") if number else "0"


@register.filter
def platform_name(platform: str) -> str:
    """ios → iOS"""
    return PLATFORM_NAMES[platform]


@register.filter
def rate(a_second: float) -> str:
    """4.2; without a fraction from 10 on."""
    return f"{a_second:,.1f}" if a_second < 10 else f"{a_second:,.0f}"


@register.filter
def percent(of: float | None) -> str:
    """0.1234 → 12.3 %"""
    return NOTHING if of is None else f"{100 * of:.1f} %"


@register.filter
def width(of: float | None) -> str:
    """0.1234 → 12.34%, for CSS; None → 0.00%"""
    return f"{100 * (of or 0):.2f}%"


@register.filter
def duration(seconds: float) -> str:
    """7500 → 2 h 5 min: the two largest units, rounded up to seconds."""
    left = math.ceil(seconds)
    parts = []
    for name, length in _UNITS:
        count, left = divmod(left, length)
        if count:
            parts.append(f"{count} {name}")
    return " ".join(parts[:2]) or "0 s"


@register.filter
def moment(at: datetime | None, how: str = "") -> str:
    """The time in UTC, which `console/times.js` converts to the reader's own time.

    `how`: "seconds", "clock" and "minute" (no day), "both" (own time and UTC). By default to the
    minute.
    """
    if at is None:
        return NOTHING
    in_utc = f"{at.astimezone(UTC):{_FORMATS.get(how, _TO_THE_MINUTE)}} UTC"
    return format_html('<time data-local="{}" datetime="{}">{}</time>', how, at.isoformat(), in_utc)
