"""Text of HTML. Pure functions.

Their time grows with the length, unlike that of the standard library's parser.
"""

import re
from collections.abc import Iterator
from html import unescape
from typing import Final

_MOST: Final = 20_000  # characters of HTML that are read
_HIDDEN: Final = ("script", "style", "template", "noscript", "svg", "math")
_INLINE: Final = frozenset(
    {
        *("a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "code", "data", "del", "dfn"),
        *("em", "font", "i", "ins", "kbd", "mark", "q", "s", "samp", "small", "span", "strike"),
        *("strong", "sub", "sup", "time", "tt", "u", "var", "wbr"),
    }
)
_TAG: Final = re.compile(r"</?([a-zA-Z][a-zA-Z0-9:-]{0,30})")
_SOURCE: Final = re.compile(r"\ssrc\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s\"'>]+))", re.IGNORECASE)


def is_block(tag: str) -> bool:
    """Whether the element separates words."""
    return tag not in _INLINE


def one_line(text: str) -> str:
    """The text without line breaks, repeated blanks and signs that cannot be seen."""
    shown = "".join(each if each.isprintable() else " " for each in text)
    return " ".join(shown.split())


def text_of(html: str) -> str:
    """What people read of the HTML, on one line."""
    return one_line("".join(text for text, is_image in _parts(html[:_MOST]) if not is_image))


def image_of(html: str) -> str:
    """The address of the first image, as it is written, or ""."""
    for part, is_image in _parts(html[:_MOST]):
        if is_image and (found := _SOURCE.search(part)):
            return unescape(next(filter(None, found.groups()), "")).strip()
    return ""


def cut(text: str, most: int) -> str:
    """The text with at most `most` characters, and a sign if it is longer."""
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"


def _parts(html: str) -> Iterator[tuple[str, bool]]:
    """Texts, with a blank for each block, and tags of images, with whether it is one."""
    at, lower = 0, html.lower()
    if len(lower) != len(html):  # a character whose small form has another length
        lower = html
    while at < len(html):
        opening = html.find("<", at)
        if opening < 0:
            break
        yield unescape(html[at:opening]), False
        tag = _TAG.match(html, opening)
        if html.startswith("<!--", opening):
            at = _behind(html, "-->", opening)
        elif _is_text(html, opening, is_tag=tag is not None):
            yield "<", False
            at = opening + 1
        else:
            at = _behind(html, ">", opening)
            name = tag[1].lower() if tag else ""
            if name == "img":
                yield html[opening:at], True
            if name in _HIDDEN and html[opening + 1] != "/":
                at = _behind(html, ">", _behind(lower, f"</{name}", at))
            if is_block(name):
                yield " ", False
    yield unescape(html[at:]), False


def _is_text(html: str, opening: int, *, is_tag: bool) -> bool:
    """Whether the sign begins no tag, such as in `1 < 2`."""
    is_markup = is_tag or html[opening + 1 : opening + 2] in ("!", "?")
    return not is_markup or html.find(">", opening) < 0


def _behind(html: str, sign: str, at: int) -> int:
    """The place behind the next sign; the end if there is none."""
    found = html.find(sign, at)
    return len(html) if found < 0 else found + len(sign)
