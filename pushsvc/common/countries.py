"""The countries of time zones, as tzdata has them (ISO 3166-1 alpha-2)."""

from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Final

NOT_A_COUNTRY: Final = "Must be a country's code of two letters, such as DE."

# Older names that tzdata links to a zone of another country, or of none.
_OLD_NAMES: Final = {
    "Africa/Asmera": "ER",
    "Africa/Timbuktu": "ML",
    "America/Coral_Harbour": "CA",
    "America/Virgin": "VI",
    "Antarctica/South_Pole": "AQ",
    "Atlantic/Jan_Mayen": "SJ",
    "Iceland": "IS",
    "Pacific/Ponape": "FM",
    "Pacific/Truk": "FM",
    "Pacific/Yap": "FM",
    **dict.fromkeys(("CET", "EET", "EST", "HST", "MET", "MST", "WET"), ""),
}


def canonical_country(text: str) -> str | None:
    """The code in upper case. None if tzdata has no zone of such a country."""
    code = text.upper()
    return code if code in _zones_by_country() else None


def country_of(zone: str) -> str:
    """The country of a time zone; "" if it has none, such as UTC."""
    return _countries().get(zone, "")


def zones_of(country: str) -> Sequence[str]:
    """All names of the time zones of a country, by its canonical code."""
    return _zones_by_country().get(country, ())


@cache
def _zones_by_country() -> Mapping[str, Sequence[str]]:
    found: dict[str, list[str]] = {}
    for zone, country in sorted(_countries().items()):
        found.setdefault(country, []).append(zone)
    return found


@cache
def _countries() -> Mapping[str, str]:
    own = {columns[2]: columns[0] for columns in _lines("zone.tab", "\t") if len(columns) > 2}
    links = {words[2]: words[1] for words in _lines("tzdata.zi", " ") if words[0] == "L"}
    linked = {name: own.get(target, "") for name, target in links.items()}
    return {name: country for name, country in (linked | own | _OLD_NAMES).items() if country}


def _lines(name: str, separator: str) -> list[list[str]]:
    text = resources.files("tzdata").joinpath("zoneinfo", name).read_text(encoding="utf-8")
    return [line.split(separator) for line in text.splitlines() if line and line[0] != "#"]
