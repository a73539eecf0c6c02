"""How the console writes numbers, shares and durations."""

from django import template

register = template.Library()


@register.filter
def grouped(number: int) -> str:
    """1234567 → 1,234,567"""
    return f"{number:,}"


@register.filter
def signed(number: int) -> str:
    """1234 → +1,234; a loss has a real minus sign; 0 → 0"""
    return f"{number:+,}".replace("-", "\N{MINUS SIGN}") if number else "0"


@register.filter
def percent(share: float | None) -> str:
    """0.1234 → 12.3 %; a dash where there is nothing to have a share of."""
    return "\N{EN DASH}" if share is None else f"{100 * share:.1f} %"


@register.filter
def duration(seconds: float) -> str:
    """90 → 2 min. Rounded up: nobody minds if it is over sooner."""
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= length:
            return f"{-int(-seconds // length)} {unit}"
    return f"{max(1, -int(-seconds // 1))} s"
