"""Texts with placeholders, such as "Hi {{ first_name | default: 'there' }}". Pure functions.

The syntax is a strict subset of Liquid's, with the same results. There are no tags and no logic, so
the time for a text is bounded by its length and its number of placeholders.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, TypeAlias
from urllib.parse import quote

MAX_PLACEHOLDERS: Final = 40  # in one text
MAX_FILTERS: Final = 10  # of one placeholder

Value: TypeAlias = str | int | float
# The values of placeholders, by scope and name.
Values: TypeAlias = Mapping[str, Mapping[str, Value]]
# Functions with their other arguments, in the order in which they are applied.
Filters: TypeAlias = Sequence[tuple[Callable[..., Value], Sequence[Value]]]

# The scopes. A name without scope is one of DEVICE_NAMES, or an attribute.
ATTRIBUTES: Final = "attributes"
VARS: Final = "vars"
DEVICE: Final = "device"
ENTRY: Final = "entry"  # of a newsfeed, replaced before the send
DEVICE_NAMES: Final = frozenset(
    {"external_id", "language", "timezone", "platform", "notification_id"}
)

# Liquid's own words, which cannot be names of values.
_RESERVED: Final = frozenset(
    {
        *("true", "false", "nil", "null", "empty", "blank", "and", "or", "not", "contains", "in"),
        *("if", "else", "for", "as", "with", "cols", "limit", "offset", "reversed", "continue"),
        "required",
    }
)
_NAME: Final = r"[^\W\d](?:[\w-]*\w)?"
_STRING: Final = r"\"[^\"]*\"|'[^']*'"
_BLANKS: Final = r"[ \t\r\n]*"
_HEAD: Final = re.compile(
    rf"{_BLANKS}(?:(?P<string>{_STRING})"
    rf"|(?P<path>(?P<scope>attributes|vars|entry)(?:\.(?P<member>{_NAME})|\[(?P<quoted>{_STRING})\])"
    rf"|(?P<bare>{_NAME})(?![\w.\[])))"
    rf"{_BLANKS}"
)
_FILTER: Final = re.compile(
    rf"\|{_BLANKS}(?P<name>{_NAME}){_BLANKS}"
    rf"(?::{_BLANKS}(?:(?P<text>{_STRING})|(?P<number>[0-9]{{1,4}}(?![\w.-]))){_BLANKS})?"
)
# Control characters, lone surrogates, and characters that change the direction of text.
_UNWANTED: Final = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


class NotATemplate(ValueError):
    """The text cannot be personalized. `position`: of the wrong character, from 1. `attr`: the path
    of the text, if it is known."""

    attr = ""

    def __init__(self, position: int, words: str) -> None:
        super().__init__(f"Character {position}: {words}")
        self.position = position


@dataclass(frozen=True, slots=True)
class Placeholder:
    """A place in a text for a value of the recipient. `path`: as it is written."""

    path: str
    scope: str
    name: str
    filters: Filters = ()
    default: str | None = None

    def is_missing(self, values: Values) -> bool:
        """Whether the placeholder has neither a value nor a default."""
        return self.default is None and self._value(values) == ""

    def text(self, values: Values) -> str:
        value = self._value(values)
        for apply, arguments in self.filters:
            value = apply(value, *arguments)
        return value if isinstance(value, str) else str(value)

    def _value(self, values: Values) -> Value:
        value = values[self.scope].get(self.name, "")
        if isinstance(value, str):
            return value if value.isprintable() else _UNWANTED.sub("", value)
        return _shortest(value) if isinstance(value, float) else value


@dataclass(frozen=True, slots=True)
class Template:
    """A parsed text: its parts in order."""

    parts: Sequence[str | Placeholder]

    @property
    def placeholders(self) -> list[Placeholder]:
        return [part for part in self.parts if isinstance(part, Placeholder)]

    def text(self, values: Values) -> str:
        return "".join(
            [part if isinstance(part, str) else part.text(values) for part in self.parts]
        )

    def with_each(self, value: str) -> str:
        """The text with this in the place of each placeholder."""
        return "".join([part if isinstance(part, str) else value for part in self.parts])

    def link(self, values: Values) -> str:
        """The text as a URL, with percent-encoded values. A value of only dots is omitted, because
        it would change the path."""
        return "".join(
            [part if isinstance(part, str) else _encoded(part.text(values)) for part in self.parts]
        )


@lru_cache(maxsize=256)
def parsed(text: str) -> Template:
    """Parses a text. Raises NotATemplate."""
    parts: list[str | Placeholder] = []
    at = count = 0
    while (opening := text.find("{{", at)) >= 0:
        parts.append(_literal(text, at, opening))
        closing = text.find("}}", opening)
        if closing < 0:
            raise NotATemplate(opening + 1, "this `{{` has no `}}`.")
        count += 1
        if count > MAX_PLACEHOLDERS:
            words = f"a text may have at most {MAX_PLACEHOLDERS} placeholders."
            raise NotATemplate(opening + 1, words)
        parts.append(_part(text, opening + 2, closing))
        at = closing + 2
    parts.append(_literal(text, at, len(text)))
    return Template(tuple(part for part in parts if part != ""))


def _literal(text: str, begin: int, end: int) -> str:
    tag = text.find("{%", begin, end)
    if tag >= 0:
        raise NotATemplate(tag + 1, "there are no tags. Write `{{ '{%' }}` for these two signs.")
    return text[begin:end]


def _part(text: str, begin: int, end: int) -> str | Placeholder:
    """The part for the text between two pairs of braces. A text in quotes needs no recipient."""
    head = _HEAD.match(text, begin, end)
    if head is None:
        raise NotATemplate(begin + 1, f"there must be a name or a text in quotes. {_NAMES}")
    filters = _filters(text, head.end(), end)
    if head["string"]:
        return _applied(head["string"][1:-1], filters)
    scope, name = _place(head)
    return Placeholder(head["path"], scope, name, filters, _first_default(filters))


def _place(head: re.Match[str]) -> tuple[str, str]:
    """The scope and the name of a placeholder."""
    if head["quoted"]:
        return head["scope"], head["quoted"][1:-1]
    name = head["member"] or head["bare"]
    is_bare = head["bare"] is not None
    if name in _RESERVED or (is_bare and name in (ATTRIBUTES, VARS, ENTRY)):
        raise NotATemplate(head.start("path") + 1, f"`{name}` is no name of a value. {_NAMES}")
    if not is_bare:
        return head["scope"], name
    return (DEVICE if name in DEVICE_NAMES else ATTRIBUTES), name


def _filters(text: str, at: int, end: int) -> Filters:
    filters: list[tuple[Callable[..., Value], Sequence[Value]]] = []
    while at < end:
        found = _FILTER.match(text, at, end)
        if found is None:
            raise NotATemplate(at + 1, "here must be `|` and a filter, or `}}`.")
        if len(filters) == MAX_FILTERS:
            words = f"a placeholder may have at most {MAX_FILTERS} filters."
            raise NotATemplate(at + 1, words)
        filters.append(_filter(found))
        at = found.end()
    return tuple(filters)


def _filter(found: re.Match[str]) -> tuple[Callable[..., Value], Sequence[Value]]:
    """The function of a filter and its arguments."""
    name, at = found["name"], found.start("name") + 1
    if name not in _FILTERS:
        raise NotATemplate(at, f"there is no filter `{name}`. Filters: {', '.join(_FILTERS)}.")
    apply, takes, needs = _FILTERS[name]
    given = next((kind for kind in ("text", "number") if found[kind]), None)
    if (given is None and needs) or (given is not None and given not in takes):
        words = f"needs `:` and a {' or a '.join(takes)}" if takes else "has no argument"
        raise NotATemplate(at, f"`{name}` {words}.")
    if given is None:
        return apply, ()
    return apply, (found["text"][1:-1] if given == "text" else int(found["number"]),)


def _first_default(filters: Filters) -> str | None:
    return next((str(arguments[0]) for apply, arguments in filters if apply is _default), None)


def _applied(value: Value, filters: Filters) -> str:
    for apply, arguments in filters:
        value = apply(value, *arguments)
    return value if isinstance(value, str) else str(value)


def _shortest(number: float) -> Value:
    """Writes a whole number as 5, not 5.0."""
    return int(number) if number.is_integer() and abs(number) < 1e16 else number


def _encoded(text: str) -> str:
    return quote(text, safe="") if text.strip(".") else ""


def _default(value: Value, default: Value) -> Value:
    return default if value == "" else value


def _upcase(value: Value) -> Value:
    return str(value).upper()


def _downcase(value: Value) -> Value:
    return str(value).lower()


def _capitalize(value: Value) -> Value:
    return str(value).capitalize()


def _truncate(value: Value, length: int) -> Value:
    """Cuts a text to at most `length` characters."""
    text = str(value)
    if len(text) <= length:
        return text
    return f"{text[: length - 3]}..." if length >= 3 else text[:length]


def _round(value: Value, digits: int = 0) -> Value:
    """Rounds a number. Any other value counts as 0."""
    number = _number(value)
    if not (isinstance(number, int) or math.isfinite(number)):
        return 0
    return round(number, digits) if digits else round(number)


def _number(value: Value) -> int | float:
    if not isinstance(value, str):
        return value
    for read in (int, float):
        try:
            return read(value)
        except ValueError:
            continue
    return 0


_NAMES: Final = 'Write `name`, `attributes.name`, `attributes["any name"]` or `vars.name`.'
# By name: the function, the kinds of its argument, and whether the argument is required.
_FILTERS: Final[Mapping[str, tuple[Callable[..., Value], Sequence[str], bool]]] = {
    "default": (_default, ("text", "number"), True),
    "upcase": (_upcase, (), False),
    "downcase": (_downcase, (), False),
    "capitalize": (_capitalize, (), False),
    "truncate": (_truncate, ("number",), True),
    "round": (_round, ("number",), False),
}
