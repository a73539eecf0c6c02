"""Finds the new entries of a document, and the values that placeholders have of them. Pure
functions."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import blake2b
from typing import Final
from urllib.parse import parse_qsl, urlencode, urljoin, urlsplit

from notifications_app.newsfeeds.plain_text import cut, image_of, one_line, text_of
from notifications_app.newsfeeds.reading import MOST_ENTRIES, Entry
from pushsvc.common.links import LinkKind, is_link
from pushsvc.common.timestamps import format_timestamp

MOST_KNOWN: Final = 6 * MOST_ENTRIES  # an entry has at most three hashes, so two documents
OLD: Final = timedelta(days=3)  # an entry with an earlier date is not sent
_MAX_LINK: Final = 1_000
_MOST_PARAMETERS: Final = 100  # of a link; one with more is taken as it is
_LENGTHS: Final = {"title": 200, "summary": 300, "author": 100, "categories": 200}

Values = dict[str, str]


@dataclass(frozen=True)
class Comparison:
    """`entry_count`: of the document. `known`: the hashes to keep. `new`: the values of the entries
    to send, the newest first. `latest`: those of the newest entry."""

    entry_count: int
    known: list[int]
    new: list[Values]
    latest: Values | None


def compared(
    entries: Sequence[Entry], known: Sequence[int] | None, now: datetime, *, most: int
) -> Comparison:
    """Compares a document with what was seen. At most `most` entries are new; others are marked as
    seen. None is, if nothing was read before (`known` is None).

    An entry is known by its id or by its link, so that it is not new if one of them changes, and by
    all of its text.
    """
    hashes = [_hashes(each) for each in _distinguished(entries)]
    seen = set(known or ())
    newest = sorted(zip(entries, hashes, strict=True), key=lambda each: _age(each[0], now))
    new = [
        entry
        for entry, own in newest
        if known is not None and seen.isdisjoint(own) and _age(entry, now) < OLD
    ]
    current = list(dict.fromkeys(each for own in hashes for each in own))
    now_known = {*current}
    kept = [*current, *(each for each in known or () if each not in now_known)]
    return Comparison(
        entry_count=len(entries),
        known=kept[:MOST_KNOWN],
        new=[values_of(each) for each in new[:most]],
        latest=values_of(newest[0][0]) if newest else None,
    )


def values_of(entry: Entry) -> Values:
    """The values as plain text."""
    title = _shown(entry, "title")
    texts = {
        "title": title,
        "summary": _shown(entry, "summary") or _shown(entry, "content"),
        "author": _shown(entry, "author"),
        "categories": ", ".join(filter(None, map(text_of, entry.categories))),
    }
    image = entry.image or next(filter(None, map(image_of, (entry.summary, entry.content))), "")
    return {
        **{name: cut(text, _LENGTHS[name]) for name, text in texts.items()},
        "link": _link(entry.link),
        "image": _link(_resolved(entry, image)),
        "published": format_timestamp(entry.published) if entry.published else "",
    }


def _resolved(entry: Entry, image: str) -> str:
    try:
        return urljoin(entry.base, image) if image else ""
    except ValueError:
        return ""


def _shown(entry: Entry, name: str) -> str:
    text: str = getattr(entry, name)
    return one_line(text) if name in entry.plain else text_of(text)


def _link(link: str) -> str:
    return link if len(link) <= _MAX_LINK and is_link(link, LinkKind.WEB) else ""


def _age(entry: Entry, now: datetime) -> timedelta:
    """A date that is to come counts as now, because the entry is published; so does none."""
    return max(now - entry.published, timedelta()) if entry.published else timedelta()


def _distinguished(entries: Sequence[Entry]) -> Iterable[tuple[str, ...]]:
    """For each entry the texts by which it is known. An id or a link that several entries have
    identifies none of them. The last text counts always, so that an entry is still known when its
    id or link begins to be shared, or is no longer."""
    links = [_canonical(each.link) for each in entries]
    same = {(each.guid, link, each.title) for each, link in zip(entries, links, strict=True)}
    guids = Counter(guid for guid, _, _ in same)
    shared = Counter(link for _, link, _ in same)
    for entry, link in zip(entries, links, strict=True):
        own = []
        if entry.guid and guids[entry.guid] == 1:
            own.append(f"id {entry.guid}")
        if link and shared[link] == 1:
            own.append(f"link {link}")
        yield (*own, f"text {entry.guid} {link} {entry.title or entry.summary}")


def _hashes(texts: Iterable[str]) -> list[int]:
    return [
        int.from_bytes(blake2b(each.encode(), digest_size=8).digest(), signed=True)
        for each in texts
    ]


def _canonical(link: str) -> str:
    """Without what changes while the page is the same: the scheme, the fragment, and the marks of
    campaigns."""
    try:
        parts = urlsplit(link)
        given = parse_qsl(parts.query, True, max_num_fields=_MOST_PARAMETERS)
        query = [each for each in given if not each[0].startswith("utm_")]
    except ValueError:
        return link
    path = parts.path.rstrip("/")
    return f"{parts.netloc.lower()}{path}?{urlencode(query)}" if parts.netloc else link
