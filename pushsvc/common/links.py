"""Judges the URLs of a notification. Pure functions.

Browsers and apps read a URL differently: some decode it, skip what precedes it, or pass on only
its end. So a URL is judged as it is written, and as further percent-decoding would make it.
"""

import re
from collections.abc import Iterator
from enum import Enum
from typing import Final
from urllib.parse import unquote, urlsplit


class LinkKind(Enum):
    """Which URLs a field takes, with the words for its errors."""

    WEB = "Must be an absolute http or https URL."
    SITE = "Must be an absolute http or https URL, or a path of the site such as /orders/1."
    APP = "Must be an absolute http or https URL, or one of an app such as myshop://orders/17."


# What a click in a browser does with a link of the site.
CLICK_DEFAULT: Final = "open"
CLICKS: Final = {
    CLICK_DEFAULT: "Open another tab, unless one shows the page",
    "navigate": "Open the page in a tab of the site",
    "focus": "Let the site's script open it in a tab of the site",
}
# They run code, hold a document, read files, or hide one of these. `android-app` is another
# spelling of `intent`.
REFUSED_SCHEMES: Final = frozenset(
    {
        *("javascript", "vbscript", "livescript", "data", "about", "view-source", "jar"),
        *("file", "filesystem", "content", "blob", "android-app"),
    }
)
_INTENT: Final = "intent"
_MOST_DECODINGS: Final = 5  # a URL that is encoded more often hides something
_WEB: Final = re.compile(r"https?:", re.IGNORECASE)
# RFC 3986 section 3.1, but not one letter, which is a drive of Windows.
_SCHEME: Final = re.compile(r"[a-z][a-z0-9+.-]+", re.IGNORECASE | re.ASCII)
# The scheme of what follows another scheme and signs that an app may remove: myshop://javascript:
_NESTED: Final = re.compile(r"[\W_]*([a-z][a-z0-9+.-]*):", re.IGNORECASE | re.ASCII)
_PATH: Final = re.compile(r"/(?!/)")  # `//` begins another host
_UNSAFE: Final = re.compile(r"[\\\x00-\x1f\x7f-\x9f]")
# Beginnings behind which a value changes neither scheme nor host.
_FIXED_ON_WEB: Final = re.compile(r"https?://[^/?#\\]+/", re.IGNORECASE)
_FIXED_IN_APP: Final = re.compile(
    rf"{_SCHEME.pattern}:(?://[^/?#]*[/?#]|/[^/]|(?!/))", re.IGNORECASE | re.ASCII
)
_FALLBACK: Final = "browser_fallback_url"  # of an intent, if there is no app
_EXTRA: Final = re.compile(r"[a-z]\.[\w.-]+=", re.IGNORECASE | re.ASCII)


def is_link(link: str, kind: LinkKind) -> bool:
    """Whether a field of this kind takes the URL."""
    if _UNSAFE.search(link) or " " in link:
        return False
    if is_of_web(link):
        return _is_web_link(link)
    if kind is LinkKind.SITE:
        return _is_path(link)
    return kind is LinkKind.APP and _is_app_link(link)


def is_of_web(link: str) -> bool:
    """Whether it begins as an http or https URL."""
    return _WEB.match(link) is not None


def may_be_opened(link: str) -> bool:
    """Whether a URL that was accepted may be opened with a recipient's values.

    Values cannot change where a web URL leads, and its server takes any path.
    """
    return is_of_web(link) or is_link(link, LinkKind.SITE) or is_link(link, LinkKind.APP)


def may_precede_value(before: str, kind: LinkKind) -> bool:
    """Whether a value behind this beginning of a URL cannot change where the URL leads."""
    if is_of_web(before):
        return _FIXED_ON_WEB.match(before) is not None
    if kind is LinkKind.SITE:
        return _PATH.match(before) is not None
    if kind is LinkKind.WEB or not _FIXED_IN_APP.match(before):
        return False
    is_intent = before.partition(":")[0].lower() == _INTENT
    return not (is_intent and "#" in before) or _is_extra(_parts(before)[-1])


def absolute(link: str, site: str = "") -> str:
    """The URL, with a path resolved against the site's URL as the worker resolves it against its
    scope; "" for a path without a site."""
    if not _PATH.match(link):
        return link
    parts = urlsplit(site)
    return f"{parts.scheme}://{parts.netloc}{link}" if site else ""


def _is_web_link(link: str) -> bool:
    """Its query and fragment are data, which may be encoded in any way."""
    try:
        parts = urlsplit(link)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return False
    return bool(host) and "%" not in str(host) and _is_safe(f"{parts.netloc}{parts.path}")


def _is_path(link: str) -> bool:
    return _is_safe(link) and all(_PATH.match(each) for each in _readings(link))


def _is_app_link(link: str) -> bool:
    scheme, colon, rest = link.partition(":")
    if not colon or not _is_allowed_scheme(scheme) or not _is_safe(rest):
        return False
    if any(_hides_scheme(each) for each in _readings(rest)):
        return False
    return scheme.lower() != _INTENT or all(map(_is_intent_part, _parts(rest)))


def _is_allowed_scheme(scheme: str) -> bool:
    return bool(_SCHEME.fullmatch(scheme)) and scheme.lower() not in REFUSED_SCHEMES


def _hides_scheme(rest: str) -> bool:
    nested = _NESTED.match(rest)
    return nested is not None and nested[1].lower() in {*REFUSED_SCHEMES, _INTENT}


def _is_intent_part(part: str) -> bool:
    """Judges the parts of an intent that lead elsewhere: `scheme`, and what a browser opens if
    there is no app."""
    name, _, value = part.partition("=")
    name = [*_readings(name)][-1].lower()
    if name == "scheme":
        return _is_allowed_scheme(value)
    return not name.endswith(_FALLBACK) or _is_web_url(unquote(value))


def _is_web_url(url: str) -> bool:
    return is_link(url, LinkKind.WEB)


def _is_extra(part: str) -> bool:
    """Whether it is the beginning of an intent's extra, whose value an app reads as text."""
    extra = _EXTRA.match(part)
    if extra is None:
        return False
    is_fallback = extra[0].lower().endswith(f"{_FALLBACK}=")
    return not is_fallback or bool(_FIXED_ON_WEB.match(unquote(part[extra.end() :])))


def _parts(intent: str) -> list[str]:
    """The parts of an intent, as Android's `Intent.parseUri` reads them: its data, then others."""
    return re.split("[#;]", intent)


def _is_safe(text: str) -> bool:
    """Whether neither a backslash nor a control character is in it, even encoded."""
    readings = [*_readings(text)]
    is_whole = unquote(readings[-1]) == readings[-1]
    return is_whole and not any(map(_UNSAFE.search, readings))


def _readings(text: str) -> Iterator[str]:
    """The text, and what each further percent-decoding makes of it."""
    yield text
    for _ in range(_MOST_DECODINGS):
        decoded = unquote(text)
        if decoded == text:
            return
        yield decoded
        text = decoded
