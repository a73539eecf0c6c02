"""Reads RSS 0.9 to 2.0, RSS 1.0 (RDF) and Atom. Pure functions.

Expat reads the document once, so the time grows with its length. A base and the default of an
attribute apply to many elements, so each has a bound of its own. Expat expands no entity of the
document and loads none from elsewhere. Prefixes are read as they are written, because feeds use
them without a declaration. Entries that ended before an error count.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final
from urllib.parse import urljoin
from xml.parsers import expat

from notifications_app.newsfeeds.plain_text import is_block
from notifications_app.newsfeeds.repair import repaired

MOST_ENTRIES: Final = 500  # of a document
_MOST_TEXT: Final = 20_000  # characters of a field
_MOST_CATEGORIES: Final = 20
_LONGEST_LINK: Final = 4_000  # characters of a link or a base, also joined; a longer one is none
# Characters of links and their bases that are joined in a document, about half a second. A join
# takes as long as 100 characters even if it has fewer.
_MOST_JOINED: Final = 5_000_000
_SHORTEST_JOIN: Final = 100
_MOST_DECLARED: Final = 100  # attributes; Expat looks at each for each element
_MOST_ELEMENTS: Final = 100_000  # of a document; what follows is not read
_DEEPEST: Final = 200
_ROOTS: Final = frozenset({"rss", "rdf:rdf", "rdf", "feed", "channel"})
_ENTRIES: Final = frozenset({"item", "entry"})
# By element: the field. The first element with a text counts, but an earlier one in _BETTER.
_FIELDS: Final[Mapping[str, str]] = {
    "title": "title",
    "link": "link",
    "guid": "guid",
    "id": "guid",
    "description": "summary",
    "summary": "summary",
    "content": "content",
    "content:encoded": "content",
    "author": "author",
    "dc:creator": "author",
    "itunes:author": "author",
    "category": "category",
    "dc:subject": "category",
    "pubdate": "published",
    "published": "published",
    "issued": "published",
    "dc:date": "published",
    "updated": "updated",
    "modified": "updated",
}
_SKIPPED: Final = frozenset({"source"})  # of another feed, with its title and link


class NotAFeed(ValueError):
    """The document has no feed that can be read. The text is for people, with a remedy."""


@dataclass(slots=True)
class Entry:
    """An entry, as it is written. `plain`: the fields whose text is not HTML. `link` and `image`
    are absolute, if they can be."""

    guid: str = ""
    link: str = ""
    title: str = ""
    summary: str = ""
    content: str = ""
    image: str = ""
    author: str = ""
    categories: list[str] = field(default_factory=list)
    published: datetime | None = None
    base: str = ""
    plain: set[str] = field(default_factory=set)


def entries_of(body: bytes, *, content_type: str = "", url: str = "") -> list[Entry]:
    """The first MOST_ENTRIES entries of the document that came from the URL, in its order. Raises
    NotAFeed."""
    text = repaired(body, content_type)
    if not text.strip():
        raise NotAFeed("The response is empty. Check the address.")
    return _Reader(url).read(text)


class _EnoughError(Exception):
    """Nothing that follows is read."""


class _Reader:
    def __init__(self, url: str) -> None:
        self.entries: list[Entry] = []
        self._bases = [url]
        self._joined_length = self._declared = 0
        self._depth = self._elements = 0
        self._is_atom = False
        self._prefix = ""
        self._entry: Entry | None = None
        self._values: dict[str, str] = {}
        self._entry_depth = 0
        self._skipped_depth = 0
        self._parents: list[str] = []
        self._field = ""
        self._field_depth = 0
        self._type = ""
        self._texts: list[str] = []

    def read(self, text: str) -> list[Entry]:
        parser = expat.ParserCreate("utf-8")
        parser.buffer_text = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._characters
        parser.EntityDeclHandler = _refuse_entities
        parser.AttlistDeclHandler = self._declare
        parser.specified_attributes = True  # not the defaults, which are copied for each element
        try:
            parser.Parse(text.encode("utf-8"), True)
        except _EnoughError:
            if not self.entries:
                raise NotAFeed("The document has no entry at its beginning.") from None
        except expat.ExpatError as error:
            if not self.entries:
                words = expat.ErrorString(error.code)
                raise NotAFeed(
                    f"The document is malformed: {words}, line {error.lineno}. Check the feed with"
                    " a validator, and correct it."
                ) from error
        return self.entries

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        self._elements += 1
        if self._elements > _MOST_ELEMENTS or self._depth > _DEEPEST:
            raise _EnoughError
        name = name.lower()
        if self._depth == 1:
            self._begin(name)
        name = name.removeprefix(self._prefix)
        base = attributes.get("xml:base", "")
        self._bases.append((base and self._joined(base)) or self._bases[-1])
        self._parents.append(name)
        if self._skipped_depth:
            return
        if self._entry is None:
            if name in _ENTRIES:
                self._begin_entry(attributes)
        elif self._field:
            self._nested(name, attributes)
        elif name in _SKIPPED:
            self._skipped_depth = self._depth
        else:
            self._member(self._entry, name, attributes)

    def _begin(self, name: str) -> None:
        """Judges the root."""
        local = name.rpartition(":")[2]
        if local == "feed":
            self._is_atom, self._prefix = True, name.removesuffix("feed")
        if name not in _ROOTS and local != "feed":
            if local == "html":
                raise NotAFeed(
                    "The address shows a web page, not a feed. Use the address of its RSS or Atom"
                    " feed, such as /feed/ of WordPress."
                )
            raise NotAFeed("The document is neither RSS nor Atom. Check the address.")

    def _begin_entry(self, attributes: Mapping[str, str]) -> None:
        if len(self.entries) == MOST_ENTRIES:
            raise _EnoughError
        self._entry = Entry(guid=attributes.get("rdf:about", "").strip(), base=self._bases[-1])
        self._entry_depth, self._values = self._depth, {}

    def _member(self, entry: Entry, name: str, attributes: dict[str, str]) -> None:
        """An element of the entry, or of a group in it."""
        if name == "link" and attributes.get("href"):
            self._atom_link(entry, attributes)
        elif name == "category" and attributes.get("term"):
            self._add_category(attributes.get("label") or attributes["term"])
        elif (image := _image(name, attributes)) and not entry.image:
            entry.image = self._absolute(image)
        elif name == "url" and self._parents[-2] == "image":
            self._open("image", attributes)
        elif name in _FIELDS and self._depth == self._entry_depth + 1:
            self._open(_FIELDS[name], attributes)
            if name == "guid" and attributes.get("isPermaLink", "true").lower() != "false":
                self._type = "permalink"

    def _open(self, name: str, attributes: Mapping[str, str]) -> None:
        self._field, self._field_depth = name, self._depth
        self._type, self._texts = attributes.get("type", "").lower(), []

    def _nested(self, name: str, attributes: Mapping[str, str]) -> None:
        """An element inside of a field: HTML that is not escaped, or a part of an author."""
        if self._field == "author":
            self._texts = []
        elif name.rpartition(":")[2] == "img" and self._entry and not self._entry.image:
            self._entry.image = self._absolute(attributes.get("src", ""))
        if is_block(name):
            self._texts.append(" ")

    def _end(self, name: str) -> None:
        if self._depth == self._skipped_depth:
            self._skipped_depth = 0
        elif self._field and (self._depth == self._field_depth or self._is_name(name)):
            self._close()
        elif self._entry is not None and self._depth == self._entry_depth:
            self._end_entry(self._entry)
        self._depth -= 1
        self._bases.pop()
        self._parents.pop()

    def _is_name(self, name: str) -> bool:
        """Whether it is the part of Atom's author that counts."""
        return self._field == "author" and name.lower().removeprefix(self._prefix) == "name"

    def _characters(self, text: str) -> None:
        if self._field:
            self._texts.append(text)

    def _close(self) -> None:
        """Keeps the field's text, unless there is one already."""
        name, self._field = self._field, ""
        text = "".join(self._texts).strip()[:_MOST_TEXT]
        entry = self._entry
        if entry is None or not text:
            return
        if name == "category":
            self._add_category(text)
        elif name == "image":
            entry.image = entry.image or self._absolute(text)
        elif name not in self._values:
            self._values[name] = text
            if self._type == "permalink":
                self._values["permalink"] = text
            if self._type in ("xhtml", "text", "text/plain") or (self._is_atom and not self._type):
                entry.plain.add(name)

    def _end_entry(self, entry: Entry) -> None:
        values, self._entry = self._values, None
        entry.guid = values.get("guid", "") or entry.guid
        link = entry.link or values.get("link", "")
        if not link and values.get("permalink", "").lower().startswith(("http://", "https://")):
            link = values["permalink"]
        entry.link = self._absolute(link)
        for name in ("title", "summary", "content", "author"):
            setattr(entry, name, values.get(name, ""))
        entry.published = _moment(values.get("published") or values.get("updated") or "")
        self.entries.append(entry)

    def _atom_link(self, entry: Entry, attributes: Mapping[str, str]) -> None:
        rel, kind = attributes.get("rel", "alternate"), attributes.get("type", "")
        if rel == "alternate" and not entry.link and kind in ("", "text/html"):
            entry.link = self._absolute(attributes["href"])
        elif rel == "enclosure" and kind.startswith("image/") and not entry.image:
            entry.image = self._absolute(attributes["href"])

    def _add_category(self, text: str) -> None:
        if self._entry and len(self._entry.categories) < _MOST_CATEGORIES:
            self._entry.categories.append(text)

    def _absolute(self, link: str) -> str:
        return self._joined("".join(link.split())) if link.strip() else ""

    def _joined(self, link: str) -> str:
        """The link at the base of the element, or "" if it is too long."""
        base = self._bases[-1]
        if len(link) > _LONGEST_LINK:
            return ""
        self._joined_length += len(base) + len(link) + _SHORTEST_JOIN
        if self._joined_length > _MOST_JOINED:
            raise _EnoughError
        try:
            joined = urljoin(base, link)
        except ValueError:
            return link
        return joined if len(joined) <= _LONGEST_LINK else ""

    def _declare(self, *_: object) -> None:
        self._declared += 1
        if self._declared > _MOST_DECLARED:
            raise NotAFeed(
                f"The document declares over {_MOST_DECLARED} attributes, which are not read."
                " Remove its <!ATTLIST …>."
            )


def _refuse_entities(*_: object) -> None:
    raise NotAFeed("The document declares entities, which are not read. Remove its <!ENTITY …>.")


def _image(name: str, attributes: Mapping[str, str]) -> str:
    """The address of an image that an element without a text names, or ""."""
    kind, medium = attributes.get("type", ""), attributes.get("medium", "")
    if name == "enclosure" and kind.startswith("image/"):
        return attributes.get("url", "")
    if name == "media:content" and (medium == "image" or kind.startswith("image/")):
        return attributes.get("url", "")
    if name == "media:thumbnail":
        return attributes.get("url", "")
    return attributes.get("href", "") if name == "itunes:image" else ""


def _moment(text: str) -> datetime | None:
    """The time, in UTC. A time without an offset is taken as UTC."""
    reads: Sequence[Callable[[str], datetime]] = (datetime.fromisoformat, parsedate_to_datetime)
    for read in reads:
        with suppress(ValueError, TypeError, OverflowError, IndexError):
            moment = read(text[:60])
            return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    return None
