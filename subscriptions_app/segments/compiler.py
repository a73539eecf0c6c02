"""Compiles a rule to SQL.

The expressions are never NULL, so `not` negates them. Values and attribute names become parameters,
and are never part of a statement's text.

Tags and outcomes are lookups in a primary key for each row. OFFSET 0 keeps PostgreSQL from reading
all rows of a tag or a notification instead, whatever its statistics.

A rule with several conditions on attributes decompresses a row's attributes once, and looks up each
list of values in a hash table. So 50 conditions with 100 values each cost a row about as much as 50
comparisons.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from pushsvc.common.countries import zones_of
from pushsvc.common.languages import lookup_key
from pushsvc.common.timestamps import canonical_timezone, parse_timestamp
from subscriptions_app.segments.ledger import outcome_part
from subscriptions_app.segments.rules import COMPARISONS, VERSION, Rule, leaves

_COLUMNS: Final = {
    "platform": "subscription.platform",
    "created_at": "subscription.created_at",
    "last_seen_at": "subscription.registered_at",
    "timezone": "subscription.timezone",
}
_LANGUAGE: Final = "lower(subscription.language)"


@dataclass(frozen=True, slots=True)
class Condition:
    """A boolean expression about a row named `subscription`, with its parameters."""

    text: str = "true"
    parameters: Mapping[str, Any] = field(default_factory=dict)


EVERYBODY: Final = Condition()

_ATTRIBUTES: Final = "subscription.attributes"
# With so few conditions, decompressing the attributes for each is as fast as a subquery.
_READ_ANEW: Final = 2
# `||` with an empty object returns the attributes decompressed, and OFFSET 0 keeps PostgreSQL from
# inserting the expression into each condition.
_READ_ONCE: Final = """(SELECT {text} FROM (
  SELECT subscription.attributes || {empty}::jsonb AS attributes OFFSET 0) AS own)"""
# In units of `row_cost`. Reading a row and decompressing its attributes; a lookup in the index of
# tags or of the ledger; a comparison of an attribute as text or number.
_ROW_COST: Final = 10
_LOOKUP_COST: Final = 10
_TEXT_COST: Final = 4
_VERSION_COST: Final = 20
_PLAIN: Final = frozenset({"eq", "ne", "in", "exists"})
_MOST_INDEXED: Final = 200


def compiled(rule: Rule, *, now: datetime | None = None, prefix: str = "rule") -> Condition:
    """Compiles the rule for a row that is read anyway. `days_ago` counts from `now`, by default the
    statement's time. A send uses the same `now` for all its statements. `prefix`: of the names of
    parameters, so that a statement can have several rules."""
    is_read_once = sum("attribute" in leaf for leaf in leaves(rule)) > _READ_ANEW
    writer = _Writer(now, prefix, "own.attributes" if is_read_once else _ATTRIBUTES)
    text = writer.rule(rule)
    if is_read_once:
        text = _READ_ONCE.format(text=text, empty=writer.put("{}"))
    return Condition(text, writer.parameters)


def compiled_leaves(rule: Rule, *, now: datetime | None = None) -> Condition:
    """An array with the truth of each condition of the rule, in the order of `leaves`. `now`: as
    for `compiled`."""
    writer = _Writer(now, "leaf", _ATTRIBUTES)
    texts = ", ".join(map(writer.rule, leaves(rule)))
    return Condition(f"ARRAY[{texts}]::boolean[]", writer.parameters)


def compiled_for_index(rule: Rule) -> Condition:
    """Compiles a rule of `indexed_part`, so that PostgreSQL can use the index on attributes."""
    writer = _Writer(None, "indexed", _ATTRIBUTES, uses_index=True)
    return Condition(writer.rule(rule), writer.parameters)


def row_cost(rule: Rule) -> int:
    """How much work the compiled rule is for one row. The unit is about that of a comparison of an
    attribute with a value: a quarter of a microsecond."""
    return _ROW_COST + _cost(rule)


def _cost(rule: Rule) -> int:
    match rule:
        case {"all": rules}:
            return sum(map(_cost, rules))
        case {"any": rules}:
            tags = sum("tag" in each for each in rules)  # looked up together
            return sum(map(_cost, rules)) - _LOOKUP_COST * max(tags - 1, 0)
        case {"not": inner}:
            return _cost(inner)
        case {"tag": _} | {"notification": _} | {"field": "last_clicked_at"}:
            return _LOOKUP_COST
        case {"field": "app_version"}:
            return _VERSION_COST
        case {"attribute": _, "operator": operator} if operator not in _PLAIN:
            return _TEXT_COST
    return 1


def indexed_part(rule: Rule) -> Rule | None:
    """A wider rule for which the index on attributes can be used: every subscription that matches
    `rule` also matches it. None if there is no such rule, or if it compares so many values that
    PostgreSQL needs longer to estimate its rows than to read a sample."""
    part = _indexed_part(rule)
    if part is None or sum(_value_count(leaf) for leaf in leaves(part)) > _MOST_INDEXED:
        return None
    return part


def _indexed_part(rule: Rule) -> Rule | None:
    match rule:
        case {"attribute": _, "operator": "eq" | "in"}:
            return rule
        case {"all": rules}:
            parts = [part for each in rules if (part := _indexed_part(each))]
            return {"all": parts} if parts else None
        case {"any": rules}:
            alternatives = [_indexed_part(each) for each in rules]
            return {"any": alternatives} if all(alternatives) else None
        case _:
            return None


def _value_count(leaf: Rule) -> int:
    return len(leaf["value"]) if leaf["operator"] == "in" else 1


def required_leaves(rule: Rule) -> list[Rule]:
    """The conditions on tags and on earlier notifications that every matching subscription meets,
    without repetitions."""
    match rule:
        case {"tag": _} | {"notification": _}:
            return [rule]
        case {"all": rules}:
            found = [leaf for each in rules for leaf in required_leaves(each)]
            return [leaf for place, leaf in enumerate(found) if leaf not in found[:place]]
        case {"any": [only]}:
            return required_leaves(only)
        case _:
            return []


class _Writer:
    """`attributes`: the expression with the row's attributes. `uses_index`: conditions are written
    as the index needs them, not as they are evaluated fastest."""

    def __init__(
        self, now: datetime | None, prefix: str, attributes: str, *, uses_index: bool = False
    ) -> None:
        self._now, self._prefix, self._attributes = now, prefix, attributes
        self._uses_index = uses_index
        self.parameters: dict[str, Any] = {}

    def rule(self, rule: Rule) -> str:
        match rule:
            case {"all": rules}:
                return self._joined(rules, " AND ", "true")
            case {"any": rules}:
                return self._any(rules)
            case {"not": inner}:
                return f"(NOT {self.rule(inner)})"
            case {"attribute": name, "operator": operator, "value": value}:
                return self._attribute(name, operator, value)
            case {"field": "language", "operator": operator, "value": value}:
                return self._language(operator, value)
            case {"field": "external_id", "value": value}:
                return f"(subscription.person_id IS {'NOT ' * value}NULL)"
            case {"field": "timezone", "operator": operator, "value": value}:
                return self._field("timezone", operator, _zones(value))
            case {"field": "country", "operator": operator, "value": value}:
                return self._country(operator, value)
            case {"field": "app_version", "operator": operator, "value": value}:
                return self._version(operator, value)
            case {"field": "last_clicked_at", "operator": operator, "value": value}:
                return self._clicked(operator, value)
            case {"field": name, "operator": operator, "value": value}:
                return self._field(name, operator, value)
            case {"tag": tag}:
                return _TAGGED.format(tag=self.put(tag))
            case {"notification": notification, "outcome": outcome}:
                return outcome_part(self.put(notification), outcome)
        raise ValueError("not a rule")

    def _any(self, rules: Sequence[Rule]) -> str:
        """Looks up several tags of the device together instead of one by one."""
        tags = [each["tag"] for each in rules if "tag" in each]
        if len(tags) < 2:
            return self._joined(rules, " OR ", "false")
        others = [self.rule(each) for each in rules if "tag" not in each]
        return f"({' OR '.join([*others, _HAS_ONE_OF.format(tags=self.put(tags))])})"

    def _joined(self, rules: Sequence[Rule], word: str, of_none: str) -> str:
        return f"({word.join(self.rule(each) for each in rules) or of_none})"

    def _attribute(self, name: str, operator: str, value: Any) -> str:
        match operator:
            case "eq":
                return f"({self._attributes} @> {self.put(_pair(name, value))}::jsonb)"
            case "ne":
                return f"(NOT {self._attribute(name, 'eq', value)})"
            case "in" if self._uses_index:
                pairs = self.put([_pair(name, each) for each in value])
                return f"({self._attributes} @> ANY ({pairs}::jsonb[]))"
            case "in":
                values = self.put([json.dumps(each) for each in value])
                found = f"{self._attributes} -> {self.put(name)}"
                return f"({found} = ANY ({values}::jsonb[]) IS TRUE)"
            case "exists":
                found = f"({self._attributes} ? {self.put(name)})"
                return found if value else f"(NOT {found})"
            case "contains":
                return self._typed(name, "string", "strpos({}, " + self.put(value) + ") > 0")
            case "starts_with":
                return self._typed(name, "string", "starts_with({}, " + self.put(value) + ")")
        sign = COMPARISONS[operator]
        if isinstance(value, str):
            return self._typed(name, "string", f"{{}} {sign} {self.put(value)}")
        number = self.put(json.dumps(value))
        return self._typed(name, "number", f"{{}}::numeric {sign} {number}::numeric")

    def _typed(self, name: str, kind: str, test: str) -> str:
        """`test`, with the attribute's text for {}, if the value is of this kind, otherwise false.
        Text is compared by code points, independent of the database's collation."""
        key = self.put(name)
        text = f'(({self._attributes} ->> {key}) COLLATE "C")'
        return (
            f"(CASE jsonb_typeof({self._attributes} -> {key}) WHEN '{kind}'"
            f" THEN {test.format(text)} ELSE false END)"
        )

    def _field(self, name: str, operator: str, value: Any) -> str:
        column = _COLUMNS[name]
        match operator:
            case "eq":
                return f"({column} = {self.put(value)})"
            case "ne":
                return f"({column} <> {self.put(value)})"
            case "in":
                return f"({column} = ANY ({self.put(list(value))}::text[]))"
        return f"({column} {COMPARISONS[operator]} {self._moment(value)})"

    def _language(self, operator: str, value: Any) -> str:
        """Compares languages without regard to case (RFC 5646 section 2.1.1), in the spelling of
        the rule and in the canonical one. A device may have either, if it did not call since."""
        if operator == "starts_with":
            begin = value.lower().replace("_", "-")
            return f"starts_with({_LANGUAGE}, {self.put(begin)})"
        given = value if operator == "in" else [value]
        known = list(
            dict.fromkeys(key for each in given for key in (each.lower(), lookup_key(each)))
        )
        if operator != "in" and len(known) == 1:
            return f"({_LANGUAGE} {'=' if operator == 'eq' else '<>'} {self.put(known[0])})"
        sign = "<> ALL" if operator == "ne" else "= ANY"
        return f"({_LANGUAGE} {sign} ({self.put(known)}::text[]))"

    def _country(self, operator: str, value: Any) -> str:
        given = value if operator == "in" else [value]
        zones = [zone for each in given for zone in zones_of(each.upper())]
        sign = "<> ALL" if operator == "ne" else "= ANY"
        return f"(subscription.timezone {sign} ({self.put(zones)}::text[]))"

    def _version(self, operator: str, value: Any) -> str:
        """Compares versions as lists of numbers, without zeros at the end."""
        if operator == "ne":
            return f"(NOT {self._version('eq', value)})"
        own = _NUMBERS.format(
            text=f"{self._attributes} ->> {self.put(_VERSION_ATTRIBUTE)}",
            pattern=self.put(_VERSION_PATTERN),
            zeros=self.put(_ZEROS),
        )
        if operator == "exists":
            return f"({own} IS {'NOT ' * value}NULL)"
        sign = COMPARISONS.get(operator, "=")
        wanted = self.put(_version_numbers(value))
        return f"coalesce({own} {sign} {wanted}::int[], false)"

    def _clicked(self, operator: str, value: Any) -> str:
        if operator == "exists":
            found = _CLICKED.format(test="true")
            return found if value else f"(NOT {found})"
        test = f"click.clicked_at {COMPARISONS[operator]} {self._moment(value)}"
        return _CLICKED.format(test=test)

    def _moment(self, value: Any) -> str:
        if isinstance(value, str):
            return self.put(parse_timestamp(value))
        if self._now is not None:
            return self.put(self._now - timedelta(days=value["days_ago"]))
        hours = self.put(24 * value["days_ago"])
        return f"statement_timestamp() - make_interval(hours => {hours})"

    def put(self, value: Any) -> str:
        name = f"{self._prefix}_{len(self.parameters)}"
        self.parameters[name] = value
        return f"%({name})s"


_TAGGED: Final = """EXISTS (SELECT FROM subscriptions_app_tag AS tag
  WHERE tag.channel_id = subscription.channel_id AND tag.platform = subscription.platform
    AND tag.tag = {tag} AND tag.subscription_id = subscription.id OFFSET 0)"""

# Uses the index on the subscription alone, because a device has at most a hundred tags.
_HAS_ONE_OF: Final = """EXISTS (SELECT FROM subscriptions_app_tag AS tag
  WHERE tag.subscription_id = subscription.id AND tag.tag = ANY ({tags}::text[]) OFFSET 0)"""


# One row for a device that has clicked (subscriptions_app/models/clicks.py).
_CLICKED: Final = """EXISTS (SELECT FROM subscriptions_app_lastclick AS click
  WHERE click.subscription_id = subscription.id AND {test} OFFSET 0)"""

# What follows the numbers, such as -beta, does not count. Null for a text that is no version.
_VERSION_ATTRIBUTE: Final = "app_version"
_VERSION_PATTERN: Final = f"^v?({VERSION})(?:[^0-9.].*)?$"
_ZEROS: Final = r"(\.0+)+$"
_NUMBERS: Final = (
    "string_to_array(regexp_replace(substring({text} FROM {pattern}), {zeros}, ''), '.')::int[]"
)


def _version_numbers(text: str) -> list[int]:
    numbers = [int(each) for each in text.split(".")]
    while len(numbers) > 1 and not numbers[-1]:
        numbers.pop()
    return numbers


def _zones(value: str | list[str]) -> str | list[str]:
    """The time zones as devices have them."""
    if isinstance(value, list):
        return [canonical_timezone(each) or each for each in value]
    return canonical_timezone(value) or value


def _pair(name: str, value: Any) -> str:
    return json.dumps({name: value})
