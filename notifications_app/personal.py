"""Personal content, in which each recipient gets its own values. Pure functions."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from notifications_app.content import Content
from notifications_app.placeholders import (
    ATTRIBUTES,
    DEVICE,
    VARS,
    NotATemplate,
    Placeholder,
    Template,
    Value,
    Values,
    parsed,
)

MAX_IN_SEND: Final = (
    400  # placeholders in all texts of a send, which bounds the work for each device
)
_LONGEST: Final = {"title": 200, "body": 1_000}  # characters, with values

_TEXTS: Final = ("title", "body")
_LINKS: Final = ("url", "icon", "image")
# The objects with a platform's own fields, and their texts that other platforms do not have.
_PLATFORMS: Final[Mapping[str, Sequence[str]]] = {"web": (), "android": (), "ios": ("subtitle",)}
_HOST: Final = re.compile(r"https?://[^/?#\\]+/", re.IGNORECASE)

# By name: the function that makes the text from values.
_Fills: TypeAlias = Mapping[str, Callable[[Values], str]]


@dataclass(frozen=True, slots=True)
class Place:
    """A text of a send that may contain placeholders. `attr`: its path, as in faults."""

    attr: str
    text: str
    is_link: bool = False


def places(content: Content) -> Iterator[Place]:
    """The texts with two opening braces or a tag of Liquid. Other texts stay as they are."""
    return (each for each in _places(content) if "{{" in each.text or "{%" in each.text)


def _places(content: Content) -> Iterator[Place]:
    yield from _common_places(content)
    for platform, more in _PLATFORMS.items():
        yield from _given_places(getattr(content, platform), f"{platform}.", more)
    for tag, each in content.translations.items():
        yield from _given_places(each, f"translations.{tag}.")
        for action_id, title in each.get("actions", {}).items():
            yield Place(f"translations.{tag}.actions.{action_id}", title)


def _common_places(content: Content) -> Iterator[Place]:
    yield from _own_places(content)
    for name, value in content.data.items():
        yield Place(f"data.{name}", value)
    for index, action in enumerate(content.actions):
        yield Place(f"actions.{index}.title", action["title"])
        yield Place(f"actions.{index}.url", action.get("url", ""), is_link=True)


def _own_places(content: Content) -> Iterator[Place]:
    for name in _TEXTS:
        yield Place(name, getattr(content, name))
    for name in _LINKS:
        yield Place(name, getattr(content, name), is_link=True)


def _given_places(
    given: Mapping[str, Any], before: str, more: Sequence[str] = ()
) -> Iterator[Place]:
    for name in (*_TEXTS, *_LINKS, *more):
        if given.get(name):
            yield Place(f"{before}{name}", given[name], is_link=name in _LINKS)


def template_of(place: Place) -> Template:
    """Parses the text. Raises NotATemplate, also for a link whose host a value could change."""
    template = parsed(place.text)
    if place.is_link and template.placeholders:
        begin = template.parts[0]
        if not (isinstance(begin, str) and _HOST.match(begin)):
            position = place.text.find("{{") + 1
            words = "a placeholder may stand only behind the first `/` after the host of a link."
            raise NotATemplate(position, words)
    return template


def values_of(
    *,
    platform: str,
    notification_id: str,
    attributes: Mapping[str, Value] | None = None,
    sent_vars: Mapping[str, Value] | None = None,
    external_id: str = "",
    language: str = "",
    timezone: str = "",
) -> Values:
    """The values of placeholders for one device. Unknown values are missing."""
    return {
        ATTRIBUTES: attributes or {},
        VARS: sent_vars or {},
        DEVICE: {
            "external_id": external_id,
            "language": language,
            "timezone": timezone,
            "platform": platform,
            "notification_id": notification_id,
        },
    }


class PersonalContent:
    """The content for one platform and language, with placeholders parsed once for all
    recipients."""

    def __init__(self, content: Content) -> None:
        self.content = content
        self._texts = _fills(_own_places(content))
        self._data = _fills(Place(*pair) for pair in content.data.items())
        self._actions = [_action_fills(each) for each in content.actions]
        self._has_actions = any(self._actions)
        subtitle = Place("subtitle", content.ios.get("subtitle", ""))
        self._ios = _fills([subtitle])
        holds_texts = bool(self._data or self._has_actions or self._ios)
        self.is_same_for_all = not (self._texts or holds_texts)
        # Whether values can make the content too long for push services. Title and body are cut.
        self.can_be_long = holds_texts or not self._texts.keys() <= _LONGEST.keys()
        every = _placeholders([*_common_places(content), subtitle])
        self._required = [each for each in every if each.default is None]

    def missing(self, values: Values) -> list[str]:
        """The placeholders without a value and without a default, as they are written."""
        return [each.path for each in self._required if each.is_missing(values)]

    def filled(self, values: Values) -> Content:
        """The content with these values."""
        return self.content.with_texts(self.own(values))

    def own(self, values: Values) -> dict[str, Any]:
        """The fields with placeholders, filled with these values. A title and a body that are too
        long are cut."""
        changed: dict[str, Any] = _filled(self._texts, values)
        for name, most in _LONGEST.items():
            if name in changed and len(changed[name]) > most:
                changed[name] = f"{changed[name][: most - 1]}…"
        if self._data:
            changed["data"] = {**self.content.data, **_filled(self._data, values)}
        if self._has_actions:
            changed["actions"] = [
                {**action, **_filled(fills, values)}
                for action, fills in zip(self.content.actions, self._actions, strict=True)
            ]
        if self._ios:
            changed["ios"] = {**self.content.ios, **_filled(self._ios, values)}
        return changed

    def empty_text(self, own: Mapping[str, Any]) -> str:
        """`body` or `title` if values left the body empty, or the title of a content without a
        body; otherwise ""."""
        name = "body" if "body" in own or self.content.body.strip() else "title"
        return "" if own.get(name, "filled").strip() else name


def _fills(found: Iterable[Place]) -> _Fills:
    fills: dict[str, Callable[[Values], str]] = {}
    for place in found:
        if "{{" in place.text:
            template = parsed(place.text)
            fills[place.attr] = template.link if place.is_link else template.text
    return fills


def _action_fills(action: Mapping[str, str]) -> _Fills:
    url = Place("url", action.get("url", ""), is_link=True)
    return _fills([Place("title", action["title"]), url])


def _filled(fills: _Fills, values: Values) -> dict[str, str]:
    return {name: fill(values) for name, fill in fills.items()}


def values_asked(content: Content) -> frozenset[str]:
    """The values that the texts of all platforms and languages need: `attributes`, `vars`, and
    names of a device's own values. Empty if the content is not personal."""
    asked = _placeholders(_places(content)) if content.personalize else ()
    return frozenset(each.name if each.scope == DEVICE else each.scope for each in asked)


def _placeholders(found: Iterable[Place]) -> list[Placeholder]:
    texts = [place.text for place in found if "{{" in place.text]
    return [each for text in texts for each in parsed(text).placeholders]
