"""Declared fields without an attribute of the form: their values as texts, by path.

`ios.badge` is "3" and `actions.0.title` is "Buy". `web.title.none` removes a text on a platform,
as null does in the API's body.
"""

from collections.abc import Iterator, Mapping
from string import ascii_uppercase
from typing import Any, Final

from django.utils.text import slugify

from notifications_app.content.fields import MAX_VARIANTS, OBJECTS, Field, Type
from notifications_app.content.values import ABOUT_VARIANT, CONTENT, DEFAULTS, Content

# The fields of the content that have their own attributes and inputs in the form.
_OWN: Final = frozenset(
    {
        *("title", "body", "url", "icon", "image"),
        *("urgency", "ttl", "data", "personalize", "vars", "on_missing"),
    }
)
# The fields whose parts have their own inputs, and those with one input.
WITH_PARTS: Final = tuple(name for name, each in CONTENT.items() if each.type in OBJECTS)
SIMPLE: Final = tuple(name for name in CONTENT if name not in {*_OWN, *WITH_PARTS})
_PLATFORMS: Final = frozenset({"web", "android", "ios"})
_BY_KEY: Final = (Type.ACTIONS, Type.TRANSLATIONS, Type.VARIANTS)  # by number or by language
_MOST_PARTS: Final = 5  # variants.0.translations.de.actions.buy
_MOST_OF_ID: Final = 32  # characters
_VARIANTS: Final = "variants"
_NONE: Final = ".none"
_ON: Final = "on"
_NUMBERS: Final = frozenset(map(str, range(MAX_VARIANTS)))


def is_extra(name: str) -> bool:
    """Whether an input of this name belongs to these fields. Longer names are refused, because the
    form has none, and so deep an object could not be read."""
    first, *parts = name.split(".")
    if first == _VARIANTS and not (len(parts) > 1 and parts[0] in _NUMBERS):
        return False
    return name in SIMPLE or (first in WITH_PARTS and 1 <= len(parts) <= _MOST_PARTS)


def field_at(path: str) -> Field | None:
    """The field of the content at a path such as `topic`, `web.tag` or `actions.0.title`."""
    name, *parts = path.split(".")
    found = CONTENT.get(name)
    is_key = bool(found and found.type in _BY_KEY)
    for part in parts:
        if is_key:
            is_key = False
            continue
        found = OBJECTS.get(found.type, {}).get(part) if found else None
        is_key = bool(found and found.type in _BY_KEY)
    return found


def flat(content: Content) -> dict[str, str]:
    """Converts these fields of the content to texts by path."""
    given = {name: getattr(content, name) for name in (*WITH_PARTS, *SIMPLE)}
    return dict(_flat("", {name: each for name, each in given.items() if each != DEFAULTS[name]}))


def variant_numbers(texts: Mapping[str, str]) -> list[int]:
    """The numbers of the variants that have a text, even an empty one."""
    paths = (path.split(".") for path in texts if path.startswith(f"{_VARIANTS}."))
    return sorted({int(number) for _, number, *_ in paths if number in _NUMBERS})


def with_variants(texts: Mapping[str, str], change: str) -> dict[str, str]:
    """The texts with another variant for the change `add`, or two if there are none, and without a
    variant for `remove.1`. The variants get the numbers from 0 on, as in errors."""
    numbers = variant_numbers(texts)
    left = [each for each in numbers if change != f"remove.{each}"]
    kept = {_renumbered(path, left): text for path, text in texts.items() if _is_left(path, left)}
    if change != "add":
        return kept
    names = {text for path, text in kept.items() if path.endswith(".name")}
    free = (each for each in ascii_uppercase if each not in names)
    numbers_added = range(len(left), min(max(len(left) + 1, 2), MAX_VARIANTS))
    for number in numbers_added:
        kept[f"{_VARIANTS}.{number}.name"] = next(free)
        kept[f"{_VARIANTS}.{number}.weight"] = "1"
    return kept


def single(texts: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """What is left of the texts without variants, and what the first of them replaced, as
    `Content.of_variant` does. Its name and its weight are left out."""
    first = f"{_VARIANTS}.0."
    own = {
        path.removeprefix(first): text
        for path, text in texts.items()
        if path.startswith(first) and text and path.removeprefix(first) not in ABOUT_VARIANT
    }
    replaced = {_value_path(path) for path in own}
    others = {
        path: text
        for path, text in texts.items()
        if not path.startswith(f"{_VARIANTS}.") and _value_path(path) not in replaced
    }
    return others, own


def _value_path(path: str) -> str:
    """Of the value that a variant replaces as a whole: `ios.sound` for `ios.sound.name`."""
    parts = path.split(".")
    return ".".join(parts[: 3 if parts[0] == "translations" else 2])


def _is_left(path: str, numbers: list[int]) -> bool:
    name, *parts = path.split(".")
    return name != _VARIANTS or int(parts[0]) in numbers


def _renumbered(path: str, numbers: list[int]) -> str:
    name, *parts = path.split(".")
    if name != _VARIANTS:
        return path
    return ".".join([name, str(numbers.index(int(parts[0]))), *parts[1:]])


def _is_none(path: str) -> bool:
    """Whether the path removes a text. A button may also have the id `none`."""
    return path.endswith(_NONE) and not _PLATFORMS.isdisjoint(path.split("."))


def nested(texts: Mapping[str, str]) -> dict[str, Any]:
    """Converts texts by path to JSON for the API's serializer. Omits empty texts."""
    found: dict[str, Any] = {}
    for number in variant_numbers(texts):  # so that an empty one is refused, and not left out
        _put(found, [_VARIANTS, str(number)], {})
    for path, text in sorted(texts.items()):
        if text:
            name = path.removesuffix(_NONE) if _is_none(path) else path
            _put(found, name.split("."), None if _is_none(path) else _value(path, text))
    if variants := _rows(found.pop("variants", {})):
        found["variants"] = variants
    rows = _rows(found.pop("actions", {}))
    for number, row in enumerate(rows, start=1):
        if "title" in row:
            row.setdefault("id", _button_id(str(row["title"]), number))
    return found | ({"actions": rows} if rows else {})


def _rows(by_number: Mapping[str, Any]) -> list[Any]:
    return [by_number[index] for index in sorted(by_number, key=lambda each: (len(each), each))]


def _button_id(label: str, number: int) -> str:
    """The id of a button without one, as content.js writes it: "Track it" is `track-it`."""
    return slugify(label)[:_MOST_OF_ID].strip("-") or f"button-{number}"


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
    found = field_at(path)
    try:
        match found.type if found else None:
            case Type.FLAG:
                return text == _ON
            case Type.NUMBER:
                return int(text)
            case Type.SHARE:
                return float(text)
    except ValueError:
        return text
    return text
