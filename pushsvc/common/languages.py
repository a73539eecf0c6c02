"""Language tags (BCP 47), and their look-up (RFC 4647)."""

import re
from collections.abc import Iterator
from typing import Final

MAX_LANGUAGE: Final = 35  # RFC 5646 section 4.4.1
# RFC 5646 section 2.1, without the tags that were registered before it.
_TAG: Final = re.compile(
    r"""
    (?:[a-z]{2,3}(?:-[a-z]{3}){0,3}|[a-z]{4,8})  # language, such as "zh"
    (?:-[a-z]{4})?                               # script, such as "Hant"
    (?:-(?:[a-z]{2}|[0-9]{3}))?                  # region, such as "TW"
    (?:-(?:[a-z0-9]{5,8}|[0-9][a-z0-9]{3}))*     # variants
    (?:-[0-9a-wyz](?:-[a-z0-9]{2,8})+)*          # extensions
    (?:-x(?:-[a-z0-9]{1,8})+)?                   # private use
    """,
    re.VERBOSE | re.IGNORECASE | re.ASCII,
)


def is_language(text: str) -> bool:
    """Whether the text is a well-formed tag."""
    return _TAG.fullmatch(text) is not None


def usual_spelling(language: str) -> str:
    """The usual form of a well-formed tag (RFC 5646 section 2.1.1): "ZH-hant-tw" is
    "zh-Hant-TW"."""
    parts = language.lower().split("-")
    is_after_singleton = False
    for place, part in enumerate(parts[1:], start=1):
        is_after_singleton = is_after_singleton or len(parts[place - 1]) == 1
        if not is_after_singleton and len(part) in (2, 4) and part.isalpha():
            parts[place] = part.upper() if len(part) == 2 else part.title()
    return "-".join(parts)


def lookup_order(language: str) -> Iterator[str]:
    """The tags to look for, in lower case, the most specific first (RFC 4647 section 3.4):
    "zh-Hant-TW" is looked up as "zh-hant-tw", then "zh-hant", then "zh"."""
    parts = language.lower().split("-")
    while parts:
        yield "-".join(parts)
        parts.pop()
        if parts and len(parts[-1]) == 1:  # only introduces what followed
            parts.pop()
