"""JSON in which a few texts differ by recipient; the rest is encoded once. Pure functions."""

import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from json.encoder import encode_basestring
from typing import Any, Final
from uuid import UUID

from notifications_app.content.values import Content
from notifications_app.delivery.client import CACHED_MESSAGES, compact_json
from notifications_app.delivery.types import Message

# Fields of a content that are texts. Other fields contain texts.
_TEXTS: Final = frozenset({"title", "body", "url", "icon", "image"})
_GAP: Final = re.compile(r'"\\u0000(\w+)\\u0000"')


def gap(name: str) -> str:
    """The mark for a recipient's text of this name. No content contains it, because PostgreSQL
    stores no NUL."""
    return f"\0{name}\0"


def with_gaps(content: Content, names: Iterable[str]) -> Content:
    return content.with_texts({name: gap(name) for name in names})


def can_fill(own: Mapping[str, Any]) -> bool:
    """Whether a recipient's own fields can fill gaps: all are texts, and none is empty, because
    JSON for a device omits a field instead of having an empty text."""
    return _TEXTS.issuperset(own) and all(own.values())


class Form:
    """JSON with gaps, to be filled with non-empty texts."""

    def __init__(self, value: object) -> None:
        self._parts = _GAP.split(compact_json(value).decode())
        self._gaps = list(enumerate(self._parts))[1::2]

    def filled(self, texts: Mapping[str, str]) -> bytes:
        parts = self._parts.copy()
        for place, name in self._gaps:
            parts[place] = encode_basestring(texts[name])
        return "".join(parts).encode()


def encoded_once(make: Callable[[UUID, Content], Mapping[str, Any]]) -> Callable[[Message], bytes]:
    """Returns a function that encodes `make(notification_id, content)` of a message as JSON."""

    @lru_cache(maxsize=CACHED_MESSAGES)
    def form(common: Message, names: tuple[str, ...]) -> Form:
        return Form(make(common.notification_id, with_gaps(common.content, names)))

    def encoded(message: Message) -> bytes:
        if not can_fill(message.own):
            return compact_json(make(message.notification_id, message.whole))
        return form(message.common or message, tuple(message.own)).filled(message.own)

    return encoded
