"""JSON in which a few texts, the parameters, differ by recipient; the rest is encoded once."""

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
_PARAMETER: Final = re.compile(r'"\\u0000(\w+)\\u0000"')


def parameter(name: str) -> str:
    """Stands in JSON for a recipient's text of this name. No content contains it, because
    PostgreSQL stores no NUL."""
    return f"\0{name}\0"


def with_parameters(content: Content, names: Iterable[str]) -> Content:
    return content.with_texts({name: parameter(name) for name in names})


def can_render(own: Mapping[str, Any]) -> bool:
    """Whether a recipient's own fields can be parameters: all are texts, and none is empty, because
    JSON for a device omits a field instead of having an empty text."""
    return not own or (_TEXTS.issuperset(own) and all(own.values()))


class PreparedJson:
    """JSON with parameters, to be rendered with non-empty texts."""

    def __init__(self, value: object) -> None:
        self._parts = _PARAMETER.split(compact_json(value).decode())
        self._parameters = list(enumerate(self._parts))[1::2]

    def render(self, texts: Mapping[str, str]) -> bytes:
        parts = self._parts.copy()
        for place, name in self._parameters:
            parts[place] = encode_basestring(texts[name])
        return "".join(parts).encode()


def encoded_once(make: Callable[[UUID, Content], Mapping[str, Any]]) -> Callable[[Message], bytes]:
    """Returns a function that encodes `make(notification_id, content)` of a message as JSON."""

    @lru_cache(maxsize=CACHED_MESSAGES)
    def prepared(common: Message, names: tuple[str, ...]) -> PreparedJson:
        return PreparedJson(make(common.notification_id, with_parameters(common.content, names)))

    def encoded(message: Message) -> bytes:
        if not can_render(message.own):
            return compact_json(make(message.notification_id, message.whole))
        return prepared(message.common or message, tuple(message.own)).render(message.own)

    return encoded
