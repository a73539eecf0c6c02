"""The syntax of a segment's rule, and its validation."""

import math
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Final
from uuid import UUID

from django.utils.translation import gettext

from pushsvc.common.countries import NOT_A_COUNTRY, canonical_country
from pushsvc.common.errors import MAX_ERRORS, MAX_UNKNOWN, FieldError
from pushsvc.common.field_names import no_such_field
from pushsvc.common.ids import is_tag, parse_uuid
from pushsvc.common.languages import NOT_A_LANGUAGE, canonical_language
from pushsvc.common.platforms import PLATFORM_VALUES
from pushsvc.common.timestamps import NOT_A_TIMEZONE, canonical_timezone, parse_timestamp

Rule = Mapping[str, Any]

MAX_LEAVES: Final = 50
MAX_DEPTH: Final = 8
MAX_CHOICES: Final = 100
MAX_NAME: Final = 50
MAX_TEXT: Final = 255
MAX_LANGUAGE: Final = 35
MAX_TIMEZONE: Final = 64
MAX_COUNTRY: Final = 2
MAX_VERSION: Final = 80
MAX_DAYS: Final = 36_500
MAX_NOTIFICATIONS: Final = 5

VERSION: Final = r"[0-9]{1,9}(?:\.[0-9]{1,9}){0,7}"
COMPARISONS: Final = {"gt": ">", "gte": ">=", "lt": "<", "lte": "<="}
ATTRIBUTE_OPERATORS: Final = ("eq", "ne", *COMPARISONS, "in", "exists", "contains", "starts_with")
FIELD_OPERATORS: Final[Mapping[str, tuple[str, ...]]] = {
    "platform": ("eq", "ne", "in"),
    "created_at": tuple(COMPARISONS),
    "last_seen_at": tuple(COMPARISONS),
    "last_clicked_at": (*COMPARISONS, "exists"),
    "language": ("eq", "ne", "in", "starts_with"),
    "timezone": ("eq", "in"),
    "country": ("eq", "ne", "in"),
    "app_version": ("eq", "ne", *COMPARISONS, "exists"),
    "external_id": ("exists",),
}
OUTCOMES: Final = (
    "delivered",
    "bounced",
    "received",
    "clicked",
    "not_clicked",
    "not_received",
)
NOBODY: Final[Rule] = {"any": []}  # matches no subscription; clients may not send it

_GROUPS: Final = ("all", "any", "not")
_COMPARED: Final = ("attribute", "field")
_KINDS: Final = (*_GROUPS, *_COMPARED, "tag", "notification")
_UNSTORABLE: Final = re.compile("[\x00\ud800-\udfff]")

_Check = Callable[[object, str], object]


def rule_errors(data: object, attr: str = "rule") -> list[FieldError]:
    """The errors of a rule given as JSON, each with its path (`rule.all.1.not.operator`).

    Without errors, the rule can be stored, compiled and described. `attr`: the path to the rule.
    The validation ends when there are too many conditions, or more errors than are shown.
    """
    checker = _Checker(attr)
    with suppress(_Enough):
        checker.rule(data, attr, depth=1)
    return checker.errors


def leaves(rule: Rule) -> Iterator[Rule]:
    """The conditions of a valid rule, from left to right."""
    match rule:
        case {"all": rules} | {"any": rules}:
            for each in rules:
                yield from leaves(each)
        case {"not": inner}:
            yield from leaves(inner)
        case _:
            yield rule


def named_notifications(rule: Rule) -> set[UUID]:
    """The notifications that a valid rule names."""
    return {UUID(leaf["notification"]) for leaf in leaves(rule) if "notification" in leaf}


class _Enough(Exception):
    """The rule is already refused, so the rest is not validated."""


class _Checker:
    def __init__(self, root: str) -> None:
        self.errors: list[FieldError] = []
        self._root = root
        self._leaves = 0
        self._notifications: set[UUID] = set()
        self._checks: Mapping[str | None, _Check] = {
            None: self._scalar,  # an attribute
            "platform": self._platform,
            "created_at": self._moment,
            "last_seen_at": self._moment,
            "last_clicked_at": self._moment,
            "language": self._canonical_language,
            "timezone": self._timezone,
            "country": self._country,
            "app_version": self._version,
            "external_id": self._flag,
        }

    def invalid(self, attr: str, code: str, detail: str) -> None:
        self.errors.append(FieldError(attr, code, detail))
        if len(self.errors) > MAX_ERRORS:
            raise _Enough

    def rule(self, data: object, attr: str, depth: int) -> None:
        if not isinstance(data, dict):
            self.invalid(attr, "not_an_object", gettext("Must be an object."))
            return
        if depth > MAX_DEPTH:
            self.invalid(
                attr,
                "too_deep",
                gettext("Must have at most %(most)s levels.") % {"most": MAX_DEPTH},
            )
            return
        kinds = [kind for kind in _KINDS if kind in data]
        if len(kinds) != 1:
            detail = gettext("Must have exactly one of: %(kinds)s.") % {"kinds": ", ".join(_KINDS)}
            self.invalid(attr, "not_a_rule", detail)
        elif kinds[0] in _GROUPS:
            self._group(data, attr, kinds[0], depth)
        else:
            self._leaf(data, attr, kinds[0])

    def _group(self, data: dict[str, Any], attr: str, kind: str, depth: int) -> None:
        self._refuse_others(data, attr, {kind})
        inner = f"{attr}.{kind}"
        if kind == "not":
            self.rule(data[kind], inner, depth + 1)
        elif self._is_filled_list(data[kind], inner):
            self._expect_leaves(len(data[kind]))  # each entry has at least one
            for place, rule in enumerate(data[kind]):
                self.rule(rule, f"{inner}.{place}", depth + 1)

    def _leaf(self, data: dict[str, Any], attr: str, kind: str) -> None:
        self._leaves += 1
        self._expect_leaves(self._leaves)
        if kind == "tag":
            self._refuse_others(data, attr, {kind})
            self._tag(data[kind], f"{attr}.{kind}")
        elif kind == "notification":
            self._retargeting(data, attr)
        else:
            self._comparison(data, attr, kind)

    def _retargeting(self, data: dict[str, Any], attr: str) -> None:
        self._refuse_others(data, attr, {"notification", "outcome"})
        self._notification(data["notification"], f"{attr}.notification")
        self._require(data, attr, "outcome")
        if "outcome" in data:
            self._is_choice(data["outcome"], f"{attr}.outcome", OUTCOMES)

    def _comparison(self, data: dict[str, Any], attr: str, kind: str) -> None:
        self._refuse_others(data, attr, {kind, "operator", "value"})
        self._require(data, attr, "operator", "value")
        operators = self._operators(data[kind], f"{attr}.{kind}", kind)
        if operators is None or "operator" not in data:
            return
        if self._is_choice(data["operator"], f"{attr}.operator", operators) and "value" in data:
            field = data[kind] if kind == "field" else None
            self._value_check(field, data["operator"])(data["value"], f"{attr}.value")

    def _require(self, data: dict[str, Any], attr: str, *names: str) -> None:
        for name in names:
            if name not in data:
                self.invalid(f"{attr}.{name}", "required", gettext("This field is required."))

    def _expect_leaves(self, number: int) -> None:
        if number > MAX_LEAVES:
            self.invalid(
                self._root,
                "too_many",
                gettext("Must have at most %(most)s conditions.") % {"most": MAX_LEAVES},
            )
            raise _Enough

    def _operators(self, subject: object, attr: str, kind: str) -> tuple[str, ...] | None:
        """The operators for this attribute or field. None if there is no such field."""
        if kind == "attribute":
            self._text(subject, attr, most=MAX_NAME)
            return ATTRIBUTE_OPERATORS
        if not self._is_choice(subject, attr, tuple(FIELD_OPERATORS)):
            return None
        return FIELD_OPERATORS[str(subject)]

    def _value_check(self, field: str | None, operator: str) -> _Check:
        one = self._checks[field]
        special: dict[str, _Check] = {
            "in": lambda value, attr: self._choices(value, attr, one),
            "exists": self._flag,
            "contains": self._text,
            "starts_with": self._language if field == "language" else self._text,
        }
        return special.get(operator, one)

    def _refuse_others(self, data: dict[str, Any], attr: str, known: set[str]) -> None:
        if len(data) > len(known) + MAX_UNKNOWN:
            self.invalid(
                attr,
                "too_many",
                gettext("Must have at most %(most)s fields.") % {"most": len(known)},
            )
            raise _Enough
        for name in data:
            if name not in known:
                self.invalid(f"{attr}.{name}", "unknown_field", no_such_field(name, known))

    def _is_filled_list(self, data: object, attr: str) -> bool:
        if not isinstance(data, list):
            self.invalid(attr, "not_a_list", gettext("Must be a list."))
            return False
        if not data:
            self.invalid(attr, "empty", gettext("Must not be empty."))
        return bool(data)

    def _is_choice(self, data: object, attr: str, choices: tuple[str, ...]) -> bool:
        if not isinstance(data, str):
            self.invalid(attr, "not_a_string", gettext("Must be a string."))
            return False
        if data not in choices:
            self.invalid(
                attr,
                "not_a_choice",
                gettext("Must be one of: %(choices)s.") % {"choices": ", ".join(choices)},
            )
        return data in choices

    def _text(self, data: object, attr: str, *, least: int = 1, most: int = MAX_TEXT) -> bool:
        """Whether the text is valid."""
        before = len(self.errors)
        if not isinstance(data, str):
            self.invalid(attr, "not_a_string", gettext("Must be a string."))
        elif len(data) < least:
            self.invalid(attr, "blank", gettext("Must not be empty."))
        elif len(data) > most:
            self.invalid(
                attr,
                "too_long",
                gettext("Must be at most %(most)s characters long.") % {"most": most},
            )
        elif _UNSTORABLE.search(data):
            self.invalid(attr, "malformed", gettext("Contains NUL or half of a surrogate pair."))
        return len(self.errors) == before

    def _scalar(self, data: object, attr: str) -> None:
        if isinstance(data, str):
            self._text(data, attr, least=0)
        elif isinstance(data, bool) or not isinstance(data, int | float):
            self.invalid(attr, "not_a_string_or_number", gettext("Must be a string or a number."))
        elif not _is_finite(data):
            self.invalid(attr, "out_of_range", gettext("Must be a number that fits a double."))

    def _choices(self, data: object, attr: str, one: _Check) -> None:
        if not self._is_filled_list(data, attr) or not isinstance(data, list):
            return
        if len(data) > MAX_CHOICES:
            self.invalid(
                attr,
                "too_many",
                gettext("Must have at most %(most)s values.") % {"most": MAX_CHOICES},
            )
            return
        for place, value in enumerate(data):
            one(value, f"{attr}.{place}")

    def _flag(self, data: object, attr: str) -> None:
        if not isinstance(data, bool):
            self.invalid(attr, "not_a_boolean", gettext("Must be true or false."))

    def _platform(self, data: object, attr: str) -> None:
        self._is_choice(data, attr, tuple(PLATFORM_VALUES))

    def _language(self, data: object, attr: str) -> None:
        self._text(data, attr, most=MAX_LANGUAGE)

    def _canonical_language(self, data: object, attr: str) -> None:
        if self._text(data, attr, most=MAX_LANGUAGE) and canonical_language(str(data)) is None:
            self.invalid(attr, "not_a_language", gettext(NOT_A_LANGUAGE))

    def _timezone(self, data: object, attr: str) -> None:
        if self._text(data, attr, most=MAX_TIMEZONE) and canonical_timezone(str(data)) is None:
            self.invalid(attr, "not_a_timezone", gettext(NOT_A_TIMEZONE))

    def _country(self, data: object, attr: str) -> None:
        if self._text(data, attr, most=MAX_COUNTRY) and canonical_country(str(data)) is None:
            self.invalid(attr, "not_a_country", NOT_A_COUNTRY)

    def _version(self, data: object, attr: str) -> None:
        if self._text(data, attr, most=MAX_VERSION) and not re.fullmatch(VERSION, str(data)):
            detail = gettext("Must be a version such as 2.10.1: up to eight numbers between dots.")
            self.invalid(attr, "not_a_version", detail)

    def _tag(self, data: object, attr: str) -> None:
        if not isinstance(data, str):
            self.invalid(attr, "not_a_string", gettext("Must be a string."))
        elif not is_tag(data):
            self.invalid(attr, "not_a_tag", gettext("Must be 1 to 64 of: A-Z a-z 0-9 _ . : -"))

    def _notification(self, data: object, attr: str) -> None:
        try:
            id_ = parse_uuid(data if isinstance(data, str) else "")
        except ValueError:
            self.invalid(attr, "not_a_uuid", gettext("Must be a hyphenated UUID."))
            return
        self._notifications.add(id_)
        if len(self._notifications) > MAX_NOTIFICATIONS:
            detail = gettext("Must name at most %(most)s notifications.") % {
                "most": MAX_NOTIFICATIONS
            }
            self.invalid(self._root, "too_many", detail)
            raise _Enough

    def _moment(self, data: object, attr: str) -> None:
        if isinstance(data, dict):
            self._refuse_others(data, attr, {"days_ago"})
            self._days(data.get("days_ago"), f"{attr}.days_ago")
            return
        try:
            parse_timestamp(data if isinstance(data, str) else "")
        except ValueError:
            detail = gettext(
                'Must be an ISO 8601 date and time, years 1 to 9999, or {"days_ago": days}.'
            )
            self.invalid(attr, "not_a_timestamp", detail)

    def _days(self, data: object, attr: str) -> None:
        if type(data) is not int:
            self.invalid(attr, "not_a_number", gettext("Must be a whole number."))
        elif not 1 <= data <= MAX_DAYS:
            self.invalid(
                attr, "out_of_range", gettext("Must be from 1 to %(most)s.") % {"most": MAX_DAYS}
            )


def _is_finite(number: float) -> bool:
    try:
        return math.isfinite(number)
    except OverflowError:
        return False
