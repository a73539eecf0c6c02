"""Whether a text is blank: it shows nothing."""

import re
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


def is_blank(text: str) -> bool:
    """Whether the text is empty, or only has blanks and characters that cannot be seen."""
    return _NOTHING.fullmatch(text) is not None
