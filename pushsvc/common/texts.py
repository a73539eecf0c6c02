"""Whether a text shows anything, and whether a name is a misspelling of another."""

import re
from collections.abc import Iterable
from typing import Final

# Control characters and white space; the code points with Default_Ignorable_Code_Point (Unicode 16,
# DerivedCoreProperties.txt), such as ZERO WIDTH SPACE and HANGUL FILLER; and BRAILLE PATTERN BLANK.
_NOTHING: Final = re.compile(
    "["
    r"\s\x00-\x20\x7f-\xa0\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    r"\u202a-\u202e\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8"
    r"\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
    "]*"
)
_LONGEST_NAME: Final = 60  # that is compared with known names


def shows_nothing(text: str) -> bool:
    """Whether the text is empty, or only has blanks and characters that cannot be seen."""
    return _NOTHING.fullmatch(text) is not None


def no_such_field(name: str, known: Iterable[str]) -> str:
    """What to say of a field that does not exist."""
    meant = meant_name(name, known)
    return (
        f"There is no such field. Did you mean `{meant}`?" if meant else "There is no such field."
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
