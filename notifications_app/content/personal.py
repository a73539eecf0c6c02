"""Personal content, in which each recipient gets its own values. Pure functions."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from notifications_app.content.fields import (
    ACTION,
    ANDROID,
    IOS,
    LINKS,
    TRANSLATION,
    VARIANT,
    WEB,
    Table,
    Type,
)
from notifications_app.content.placeholders import (
    ATTRIBUTES,
    DEVICE,
    ENTRY,
    VARS,
    NotATemplate,
    Placeholder,
    Template,
    Value,
    Values,
    parsed,
)
from notifications_app.content.values import CONTENT, Content
from pushsvc.common.blank_text import is_blank
from pushsvc.common.links import LinkKind, is_of_web, may_be_opened, may_precede_value

MAX_IN_SEND: Final = (
    400  # placeholders in all texts of a send, which bounds the work for each device
)
_LONGEST: Final = {"title": 200, "body": 1_000}  # characters, with values


def _personal(table: Table) -> dict[str, LinkKind | None]:
    """The fields that may contain placeholders, and the kinds of those that are links."""
    return {
        name: LINKS.get(each.type)
        for name, each in table.items()
        if each.type is Type.SHOWN_TEXT or each.type in LINKS
    }


PERSONAL_TEXTS: Final[Mapping[str, LinkKind | None]] = _personal(CONTENT)
_IN_ACTION: Final = _personal(ACTION)
_IN_VARIANT: Final = _personal(VARIANT)
_IN_TRANSLATION: Final = _personal(TRANSLATION)
_ON_PLATFORMS: Final = {"web": _personal(WEB), "android": _personal(ANDROID), "ios": _personal(IOS)}

_BRACES: Final = re.compile(r"\{\{.*?\}\}", re.DOTALL)

# By name: the function that makes the text from values.
_Fills: TypeAlias = Mapping[str, Callable[[Values], str]]


@dataclass(frozen=True, slots=True)
class Place:
    """A text of a send that may contain placeholders. `attr`: its path, as in errors. `kind`: of a
    link."""

    attr: str
    text: str
    kind: LinkKind | None = None

    @property
    def is_shown(self) -> bool:
        """Whether people see the text."""
        return self.kind is None and not self.attr.startswith("data.")


def places(content: Content) -> Iterator[Place]:
    """The texts with two opening braces or a tag of Liquid. Other texts stay as they are."""
    yield from _common_places(content)
    yield from _replacing_places(vars(content))
    for index, variant in enumerate(content.variants):
        yield from _texts(variant, _IN_VARIANT, f"variants.{index}.")
        yield from _replacing_places(variant, f"variants.{index}.")


def _replacing_places(given: Mapping[str, Any], before: str = "") -> Iterator[Place]:
    """The texts of platforms and languages."""
    for platform, names in _ON_PLATFORMS.items():
        if own := given.get(platform):
            yield from _texts(own, names, f"{before}{platform}.")
    for tag, each in given.get("translations", {}).items():
        yield from _texts(each, _IN_TRANSLATION, f"{before}translations.{tag}.")
        titles = each.get("actions", {})
        yield from _texts(titles, dict.fromkeys(titles), f"{before}translations.{tag}.actions.")


def _common_places(content: Content) -> Iterator[Place]:
    yield from _texts(vars(content), PERSONAL_TEXTS)
    if content.data:
        yield from _texts(content.data, dict.fromkeys(content.data), "data.")
    for index, action in enumerate(content.actions):
        yield from _texts(action, _IN_ACTION, f"actions.{index}.")


def _texts(
    given: Mapping[str, Any], names: Mapping[str, LinkKind | None], before: str = ""
) -> Iterator[Place]:
    for name, kind in names.items():
        text = given.get(name) or ""
        if "{{" in text or "{%" in text:
            yield Place(f"{before}{name}", text, kind)


def sent_literally(content: Content) -> list[str]:
    """What looks like a placeholder in a content that is not personal. Not in `data`, whose values
    an app may fill in."""
    if content.personalize:
        return []
    texts = (each.text for each in places(content) if not each.attr.startswith("data."))
    return list(dict.fromkeys(found for text in texts for found in _BRACES.findall(text)))


def template_of(place: Place) -> Template:
    """Parses the text. Raises NotATemplate, also for a link if a value could change where it
    leads, and for a value of an entry."""
    template = parsed(place.text)
    if any(each.scope == ENTRY for each in template.placeholders):
        words = "only a newsfeed's notification has values of an entry."
        raise NotATemplate(place.text.find("{{") + 1, words)
    if place.kind is not None:
        _check_link(place, place.kind, template)
    return template


def _check_link(place: Place, kind: LinkKind, template: Template) -> None:
    before = ""
    for part in template.parts:
        if isinstance(part, str):
            before += part
            continue
        if not may_precede_value(before, kind):
            words = (
                f"`{part.path}` may stand only where it cannot change where the link leads, such as"
                " behind the first `/` after the host."
            )
            raise NotATemplate(place.text.find("{{") + 1, words)
        before += "x"


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
        self._texts = _fills(_texts(vars(content), PERSONAL_TEXTS))
        self._data = _fills(Place(*pair) for pair in content.data.items())
        self._actions = [_action_fills(each) for each in content.actions]
        self._has_actions = any(self._actions)
        # Links that values may spoil. They cannot change where a link of the web leads.
        self._judges_url = "url" in self._texts and not is_of_web(content.url)
        self._judged_actions = [
            index
            for index, (action, fills) in enumerate(
                zip(content.actions, self._actions, strict=True)
            )
            if "url" in fills and not is_of_web(action["url"])
        ]
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
        long are cut. A title that shows nothing is left out."""
        changed: dict[str, Any] = _filled(self._texts, values)
        for name, most in _LONGEST.items():
            if name in changed and len(changed[name]) > most:
                changed[name] = f"{changed[name][: most - 1]}…"
        if "title" in changed and is_blank(changed["title"]):
            changed["title"] = ""
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

    def bad_link(self, own: Mapping[str, Any]) -> str:
        """The path of a link that may not be opened with this recipient's values; "" if there is
        none."""
        links = {"url": own["url"]} if self._judges_url else {}
        for index in self._judged_actions:
            links[f"actions.{index}.url"] = own["actions"][index]["url"]
        return next((attr for attr, link in links.items() if not may_be_opened(link)), "")

    def empty_text(self, own: Mapping[str, Any]) -> str:
        """`body` or `title` if values left the body with nothing to show, or the title of a content
        without a body; otherwise ""."""
        has_body = "body" in own or not is_blank(self.content.body)
        name = "body" if has_body else "title"
        return name if is_blank(own.get(name, "filled")) else ""


def _fills(found: Iterable[Place]) -> _Fills:
    fills: dict[str, Callable[[Values], str]] = {}
    for place in found:
        if "{{" in place.text:
            template = parsed(place.text)
            fills[place.attr] = template.text if place.kind is None else template.link
    return fills


def _action_fills(action: Mapping[str, str]) -> _Fills:
    url = Place("url", action.get("url", ""), LinkKind.WEB)
    return _fills([Place("title", action["title"]), url])


def _filled(fills: _Fills, values: Values) -> dict[str, str]:
    return {name: fill(values) for name, fill in fills.items()}


def values_needed(content: Content) -> frozenset[str]:
    """The values that the texts of all platforms and languages need: `attributes`, `vars`, and
    names of a device's own values. Empty if the content is not personal."""
    found = _placeholders(places(content)) if content.personalize else ()
    return frozenset(each.name if each.scope == DEVICE else each.scope for each in found)


def _placeholders(found: Iterable[Place]) -> list[Placeholder]:
    texts = [place.text for place in found if "{{" in place.text]
    return [each for text in texts for each in parsed(text).placeholders]
