"""Selects the content that a device gets, by its platform and language. Pure functions."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final
from uuid import UUID

from notifications_app.content.fields import TRANSLATION
from notifications_app.content.personal import PERSONAL_TEXTS, PersonalContent, values_needed
from notifications_app.content.placeholders import Values
from notifications_app.content.values import BOUNCE, Content
from notifications_app.delivery.types import Message, Site
from pushsvc.common.languages import lookup_key, lookup_order
from pushsvc.common.platforms import Platform

# What a translation, and a platform's own object, may replace.
_REPLACEABLE: Final = tuple(TRANSLATION)
_OWN_URLS: Final = {platform: f"{platform}_url" for platform in Platform}
_OWN_NAMES: Final = frozenset(_OWN_URLS.values())
NOT_PERSONALIZABLE: Final = "not_personalizable"
PAYLOAD_TOO_LARGE: Final = "payload_too_large"
# More characters fit no push service, so the recipient bounces without a call.
_MOST_CHARACTERS: Final = 4_096


@dataclass(frozen=True, slots=True)
class Unsendable:
    """Why no message can be made for a recipient: code and detail of the bounce."""

    code: str
    detail: str


class Messages:
    """The messages of a notification on one platform, one for each language of its content.

    `of` returns the same object each time, so that transports can cache what they build from it.
    `expires_at` is on this process's monotonic clock. `site`, `root_id`: as in Message.
    """

    def __init__(
        self,
        notification_id: UUID,
        content: Content,
        platform: Platform,
        *,
        expires_at: float,
        site: Site | None = None,
        root_id: UUID | None = None,
    ) -> None:
        self._notification_id = notification_id
        self._expires_at = expires_at
        self._content = _in_place_of(content, root_id) if root_id else content
        self._root_id = root_id
        self._platform = platform
        self._site = site
        self._translations = {lookup_key(tag): each for tag, each in content.translations.items()}
        self._by_language: dict[str, Message] = {}
        self._by_translations: dict[tuple[str, ...], Message] = {}
        self._personal: dict[Message, PersonalContent] = {}
        self._values_needed = values_needed(content)
        self._bounces = content.on_missing == BOUNCE

    @property
    def needs(self) -> frozenset[str]:
        """The fields of a device on which its message depends: `language`, `timezone`,
        `external_id`, `attributes`, and `vars` of the targets. Empty for most notifications."""
        spoken = frozenset({"language"} if self._translations else ())
        return spoken | self._values_needed

    @property
    def is_personal(self) -> bool:
        return self._content.personalize

    def of(self, language: str) -> Message:
        """The message for a device of this language; "" for an unknown language."""
        message = self._by_language.get(language)
        if message is None:
            message = self._by_language[language] = self._found(language)
        return message

    def filled(self, language: str, values: Values) -> Message:
        """As `of`, with these values if the content is personal."""
        common = self.of(language)
        personal = self._personal.get(common)
        if personal is None or personal.is_same_for_all:
            return common
        own = personal.own(values)
        return Message(
            self._notification_id,
            common.content,
            self._expires_at,
            common,
            own,
            self._site,
            self._root_id,
        )

    def for_recipient(self, language: str, values: Values) -> Message | Unsendable:
        """As `filled`, or Unsendable if it cannot be sent. The content must be personal."""
        personal = self._personal[self.of(language)]
        if self._bounces and (missing := personal.missing(values)):
            return Unsendable(NOT_PERSONALIZABLE, missing[0])
        message = self.filled(language, values)
        if unfit := personal.empty_text(message.own) or personal.bad_link(message.own):
            return Unsendable(NOT_PERSONALIZABLE, unfit)
        if personal.can_be_long and _characters(message.whole) > _MOST_CHARACTERS:
            return Unsendable(PAYLOAD_TOO_LARGE, f"more than {_MOST_CHARACTERS} bytes")
        return message

    def missing(self, language: str, values: Values) -> list[str]:
        """The placeholders without a value and without a default, as they are written. The content
        must be personal."""
        return self._personal[self.of(language)].missing(values)

    def _found(self, language: str) -> Message:
        order = lookup_order(language) if self._translations else ()
        tags = tuple(tag for tag in order if tag in self._translations)
        if tags not in self._by_translations:
            self._by_translations[tags] = self._made(tags)
        return self._by_translations[tags]

    def _made(self, tags: tuple[str, ...]) -> Message:
        """`tags`: the translations that the device's language has, the most specific first."""
        content = self._content
        for tag in reversed(tags):
            content = _translated(content, self._translations[tag])
        if self.is_personal and self._platform != Platform.IOS:
            content = replace(content, ios={})  # other platforms have no subtitle
        own = getattr(content, self._platform.value)
        content = _with_own_buttons(_replaced(content, own), self._platform)
        message = Message(
            self._notification_id,
            content,
            self._expires_at,
            site=self._site,
            root_id=self._root_id,
        )
        if self.is_personal:
            self._personal[message] = PersonalContent(message.content)
        return message


def _in_place_of(content: Content, root_id: UUID) -> Content:
    """The content with the tags that the message of this notification has without own ones."""
    tag = {"tag": str(root_id)}
    return replace(content, web={**tag, **content.web}, android={**tag, **content.android})


def _characters(content: Content) -> int:
    """How many characters the texts have in which placeholders may occur."""
    texts = [getattr(content, name) for name in PERSONAL_TEXTS]
    if content.data:
        texts += content.data.values()
    for each in content.actions:
        texts += each.values()
    return sum(map(len, texts)) + len(content.ios.get("subtitle", ""))


def _translated(content: Content, translation: Mapping[str, Any]) -> Content:
    titles = translation.get("actions", {})
    actions = [{**each, "title": titles.get(each["id"], each["title"])} for each in content.actions]
    return replace(_replaced(content, translation), actions=actions)


def _with_own_buttons(content: Content, platform: Platform) -> Content:
    """The content with the platform's urls of buttons, and without those of other platforms; the
    same object if no button has any."""
    if all(_OWN_NAMES.isdisjoint(action) for action in content.actions):
        return content
    return replace(content, actions=[_own_button(each, platform) for each in content.actions])


def _own_button(action: Mapping[str, str], platform: Platform) -> dict[str, str]:
    kept = {name: value for name, value in action.items() if name not in _OWN_NAMES}
    own = action.get(_OWN_URLS[platform])
    return kept | {"url": own} if own else kept


def _replaced(content: Content, texts: Mapping[str, Any]) -> Content:
    """The content with these texts; the same object if nothing is replaced. None means no text."""
    replaced: dict[str, Any] = {name: texts[name] or "" for name in _REPLACEABLE if name in texts}
    return replace(content, **replaced) if replaced else content
