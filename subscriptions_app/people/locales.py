"""Time zones and languages, as devices report them. Pure functions."""

from functools import cache
from importlib import resources

from pushsvc.common.languages import is_language, usual_spelling
from subscriptions_app.models import MAX_LANGUAGE


def known_timezone(name: str | None) -> str:
    """The name, or "" if the installed tzdata does not know it: a browser may be newer."""
    return name if name in _timezones() else ""


def known_language(tag: str | None) -> str:
    """The tag as it is usually spelt, or "" if it is malformed or too long."""
    if tag is None or len(tag) > MAX_LANGUAGE or not is_language(tag):
        return ""
    return usual_spelling(tag)


@cache
def _timezones() -> frozenset[str]:
    """The names in tzdata. `zoneinfo.available_timezones` reads hundreds of files for the same
    names."""
    names = resources.files("tzdata").joinpath("zones").read_text(encoding="utf-8")
    return frozenset(names.split())
