"""Names of fields that do not exist, and the field that a misspelt name means."""

from collections.abc import Iterable
from typing import Final

from django.utils.translation import gettext

_LONGEST_NAME: Final = 60  # that is compared with known names


def no_such_field(name: str, known: Iterable[str]) -> str:
    """What to say of a field that does not exist."""
    meant = meant_name(name, known)
    return (
        gettext("There is no such field. Did you mean `%(meant)s`?") % {"meant": meant}
        if meant
        else gettext("There is no such field.")
    )


def meant_name(name: str, known: Iterable[str]) -> str | None:
    """The known name of which this is a misspelling, or None: the same name in another case or
    with other separators (`providerToken`), or with one character that is missing, added or wrong,
    or two that are swapped (`atributes`). Takes little time, whatever the name."""
    if len(name) > _LONGEST_NAME:
        return None
    folded = _folded(name)
    near = [each for each in known if _is_near(folded, _folded(each))]
    return min(near, key=lambda each: (_folded(each) != folded, each), default=None)


def _folded(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "")


def _is_near(one: str, other: str) -> bool:
    """Whether at most one edit makes one text of the other."""
    short, long = sorted((one, other), key=len)
    at = next((place for place, char in enumerate(short) if char != long[place]), len(short))
    short, long = short[at:], long[at:]
    if len(short) != len(long):
        return short == long[1:]
    is_swapped = short[:2] == long[1::-1] and short[2:] == long[2:]
    return short[1:] == long[1:] or is_swapped
