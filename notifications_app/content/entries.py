"""Fills the values of a newsfeed's entry into a notification's content. Pure functions.

Placeholders such as `{{ entry.title }}` are replaced when the notification is made. Others stay,
for the values of each recipient.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from notifications_app.content.fields import MAX_BODY, MAX_TITLE
from notifications_app.content.personal import Place, places
from notifications_app.content.placeholders import ENTRY, NotATemplate, Placeholder, parsed
from notifications_app.content.values import CONTENT, Content
from pushsvc.common.blank_text import is_blank
from pushsvc.common.links import LinkKind, is_link, may_precede_value

ENTRY_NAMES: Final = ("title", "summary", "link", "image", "author", "categories", "published")
_LINKS: Final = ("link", "image")
# Of an entry that has everything, to check a content before there is an entry.
EXAMPLE: Final[Mapping[str, str]] = {
    "title": "Title",
    "summary": "Summary",
    "link": "https://example.com/news/1",
    "image": "https://example.com/news/1.jpg",
    "author": "Author",
    "categories": "News",
    "published": "2026-01-01T00:00:00.000Z",
}
_PLACEHOLDER: Final = re.compile(r"\{\{[ \t\r\n]*entry[ \t\r\n]*(?=[.\[|}]).*?\}\}", re.DOTALL)


def filled(content: Content, values: Mapping[str, str]) -> Content:
    """The content with the entry's values. Too long texts are cut, a body that shows nothing is the
    entry's title, and the link opens the entry if there is none. A link that may not be opened is
    left out. Raises NotATemplate, whose text begins with the field, for a placeholder that is none.
    """
    texts = {
        place.attr: _text(place, values, is_personal=content.personalize)
        for place in places(content)
        if _PLACEHOLDER.search(place.text)
    }
    changed = {name: _replaced(getattr(content, name), name, texts) for name in CONTENT}
    return _usable(replace(content, **changed), values)


def _usable(content: Content, values: Mapping[str, str]) -> Content:
    changed: dict[str, Any] = {}
    if not content.url and is_link(values["link"], LinkKind.WEB):
        changed["url"] = _kept(values["link"], is_personal=content.personalize)
    if is_blank(content.body):
        changed["body"] = _kept(values["title"], is_personal=content.personalize)
        if content.title == changed["body"]:
            changed["title"] = ""
    content = replace(content, **changed)
    if content.personalize:  # each recipient's texts are cut
        return content
    return replace(content, title=_cut(content.title, MAX_TITLE), body=_cut(content.body, MAX_BODY))


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"


def _replaced(value: Any, attr: str, texts: Mapping[str, str]) -> Any:
    """The value with texts at their paths, which are those of `places`."""
    if isinstance(value, str):
        return texts.get(attr, value)
    if isinstance(value, Mapping):
        return {name: _replaced(each, f"{attr}.{name}", texts) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_replaced(each, f"{attr}.{at}", texts) for at, each in enumerate(value)]
    return value


def _text(place: Place, values: Mapping[str, str], *, is_personal: bool) -> str:
    found = _PLACEHOLDER.fullmatch(place.text)
    if place.kind is not None and found and _placeholder(place, found).name in _LINKS:
        link = _placeholder(place, found).text({ENTRY: values})
        return _kept(link, is_personal=is_personal) if is_link(link, place.kind) else ""
    return _PLACEHOLDER.sub(lambda found: _value(place, found, values, is_personal), place.text)


def _value(place: Place, found: re.Match[str], values: Mapping[str, str], is_personal: bool) -> str:
    placeholder = _placeholder(place, found)
    if place.kind is None:
        return _kept(placeholder.text({ENTRY: values}), is_personal=is_personal)
    if not may_precede_value(place.text[: found.start()], place.kind):
        words = (
            f"`{placeholder.path}` may stand only behind the first `/` after the host of a link."
            " `entry.link` and `entry.image` may be the whole link."
        )
        raise _wrong(place, found, words)
    return parsed(found[0]).link({ENTRY: values})


def _placeholder(place: Place, found: re.Match[str]) -> Placeholder:
    """The placeholder in these braces. Raises NotATemplate."""
    try:
        (placeholder,) = parsed(found[0]).placeholders
    except (NotATemplate, ValueError) as error:
        raise _wrong(place, found, f"`{found[0][:60]}` cannot be read. {_KNOWN}") from error
    if placeholder.name not in ENTRY_NAMES:
        raise _wrong(place, found, f"An entry has no `{placeholder.name}`. {_KNOWN}")
    return placeholder


def _wrong(place: Place, found: re.Match[str], words: str) -> NotATemplate:
    error = NotATemplate(found.start() + 1, words)
    error.attr = place.attr
    return error


def _kept(value: str, *, is_personal: bool) -> str:
    """The value, in a personal content so that its own braces are not read as placeholders."""
    if not is_personal:
        return value
    return re.sub(r"^\{|\{$|\{(?=[{%])", "{{ '{' }}", value)


_KNOWN: Final = f"Write {', '.join(f'`entry.{name}`' for name in ENTRY_NAMES)}."
