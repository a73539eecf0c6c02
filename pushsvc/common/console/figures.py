"""Formats numbers, shares, durations and times for the console, in the reader's language.

For templates (`load figures`) and for Python code. `width` is for CSS, in no language.
"""

from datetime import UTC, datetime
from typing import Final

from django import template
from django.utils.html import format_html
from django.utils.translation import gettext

from pushsvc.common.platforms import PLATFORM_NAMES
from pushsvc.common.quantities import duration
from pushsvc.common.texts import localized

NOTHING: Final = "\N{EN DASH}"
_TO_THE_MINUTE: Final = "%Y-%m-%d %H:%M"
_FORMATS: Final = {"seconds": "%Y-%m-%d %H:%M:%S", "clock": "%H:%M:%S", "minute": "%H:%M"}

register = template.Library()
register.filter(duration)


@register.filter
def translated(text: object) -> str:
    """A text that is marked elsewhere, such as the name of a model, in the reader's language."""
    return gettext(str(text))


@register.filter
def grouped(number: int) -> str:
    """1234567 → 1,234,567"""
    return localized(f"{number:,}")


@register.filter
def signed(number: int) -> str:
    """1234 → +1,234; 0 → 0. A negative number gets a real minus sign."""
    return localized(f"{number:+,}".replace("-", "\N{MINUS SIGN}")) if number else "0"


@register.filter
def platform_name(platform: str) -> str:
    """ios → iOS"""
    return PLATFORM_NAMES[platform]


@register.filter
def rate(a_second: float) -> str:
    """4.2; without a fraction from 10 on."""
    return localized(f"{a_second:,.1f}" if a_second < 10 else f"{a_second:,.0f}")


@register.filter
def percent(of: float | None) -> str:
    """0.1234 → 12.3 %"""
    return NOTHING if of is None else localized(f"{100 * of:.1f} %")


@register.filter
def width(of: float | None) -> str:
    """0.1234 → 12.34%, for CSS; None → 0.00%"""
    return f"{100 * (of or 0):.2f}%"


@register.filter
def moment(at: datetime | None, how: str = "") -> str:
    """The time in UTC, which `console/times.js` converts to the reader's own time.

    `how`: "seconds", "clock" and "minute" (no day). By default to the minute.
    """
    if at is None:
        return NOTHING
    in_utc = f"{at.astimezone(UTC):{_FORMATS.get(how, _TO_THE_MINUTE)}} UTC"
    return format_html('<time data-local="{}" datetime="{}">{}</time>', how, at.isoformat(), in_utc)
