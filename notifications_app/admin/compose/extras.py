"""Buttons and platforms' own fields in a form: each value as text, by its path in the API's body.

`ios.badge` is "3" and `actions.0.title` is "Buy". `web.title.none` removes a text on a platform,
as null does in the API's body.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from notifications_app.sends.content_schema import (
    AndroidContent,
    IosContent,
    Share,
    SoundFile,
    WebContent,
)
from pushsvc.common.http.fields import Flag, WholeNumber

# The fields whose parts have their own inputs.
WITH_PARTS: Final = ("actions", "web", "android", "ios", "translations")
_MOST_PARTS: Final = 3  # translations.de.actions.buy
_NONE: Final = ".none"
_ON: Final = "on"
_OBJECTS: Final = {
    "web": WebContent(),
    "android": AndroidContent(),
    "ios": IosContent(),
    "ios.sound": SoundFile(),
}
_FIELDS: Final = {
    f"{path}.{name}": field
    for path, object_ in _OBJECTS.items()
    for name, field in object_.fields.items()
}


def is_extra(name: str) -> bool:
    """Whether an input of this name belongs to these fields. Longer names are refused, because the
    form has none, and so deep an object could not be read."""
    kind, *parts = name.split(".")
    return kind in WITH_PARTS and 1 <= len(parts) <= _MOST_PARTS


def flat(extras: Mapping[str, Any] | None) -> dict[str, str]:
    """Converts these fields from JSON to texts by path."""
    return dict(
        _flat("", {name: each for name, each in (extras or {}).items() if name in WITH_PARTS})
    )


def _is_none(path: str) -> bool:
    """Whether the path removes a text. A button may have the id `none`, too."""
    return path.endswith(_NONE) and path.partition(".")[0] in _OBJECTS


def nested(texts: Mapping[str, str]) -> dict[str, Any]:
    """Converts texts by path to JSON for the API's serializer. Omits empty texts."""
    found: dict[str, Any] = {}
    for path, text in sorted(texts.items()):
        if text:
            name = path.removesuffix(_NONE) if _is_none(path) else path
            _put(found, name.split("."), None if _is_none(path) else _value(path, text))
    actions = found.pop("actions", {})
    rows = [actions[index] for index in sorted(actions, key=lambda each: (len(each), each))]
    return found | ({"actions": rows} if rows else {})


def _flat(path: str, value: Any) -> Iterator[tuple[str, str]]:
    match value:
        case Mapping():
            for name, each in value.items():
                yield from _flat(f"{path}.{name}" if path else name, each)
        case list():
            for index, each in enumerate(value):
                yield from _flat(f"{path}.{index}", each)
        case None:
            yield path + _NONE, _ON
        case bool():
            yield path, _ON if value else "off"
        case _:
            yield path, str(value)


def _put(into: dict[str, Any], path: list[str], value: Any) -> None:
    *parents, name = path
    for parent in parents:
        if not isinstance(into.get(parent), dict):
            into[parent] = {}
        into = into[parent]
    into[name] = value


def _value(path: str, text: str) -> Any:
    """The value of a text. A text that is not a number stays a text, so that the serializer reports
    it."""
    try:
        match _FIELDS.get(path):
            case Flag():
                return text == _ON
            case WholeNumber():
                return int(text)
            case Share():
                return float(text)
    except ValueError:
        return text
    return text
