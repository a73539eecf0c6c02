"""Compiles a rule to SQL.

No expression made here is ever NULL, so `not` negates it. Values and attribute names become
parameters, and are never part of a statement's text.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from pushsvc.common.timestamps import parse_timestamp
from subscriptions_app.segments.rules import COMPARISONS, Rule

_COLUMNS: Final = {
    "platform": "subscription.platform",
    "created_at": "subscription.created_at",
    "last_seen_at": "subscription.registered_at",
}


@dataclass(frozen=True, slots=True)
class Condition:
    """A boolean expression about a row named `subscription`, with its parameters."""

    text: str = "true"
    parameters: Mapping[str, Any] = field(default_factory=dict)


EVERYBODY: Final = Condition()


def compiled(rule: Rule, *, now: datetime | None = None, prefix: str = "rule") -> Condition:
    """`days_ago` counts from `now`, by default the statement's time. A send uses the same `now` for
    all of its statements. The names of parameters begin with `prefix`."""
    writer = _Writer(now, prefix)
    text = writer.rule(rule)
    return Condition(text, writer.parameters)


def indexed_part(rule: Rule) -> Rule | None:
    """A wider rule that the index on attributes can answer. All that match `rule` match it too.
    None if there is no such rule."""
    match rule:
        case {"attribute": _, "operator": "eq" | "in"}:
            return rule
        case {"all": rules}:
            parts = [part for each in rules if (part := indexed_part(each))]
            return {"all": parts} if parts else None
        case {"any": rules}:
            alternatives = [indexed_part(each) for each in rules]
            return {"any": alternatives} if all(alternatives) else None
        case _:
            return None


class _Writer:
    def __init__(self, now: datetime | None, prefix: str) -> None:
        self._now, self._prefix = now, prefix
        self.parameters: dict[str, Any] = {}

    def rule(self, rule: Rule) -> str:
        match rule:
            case {"all": rules}:
                return self._joined(rules, " AND ", "true")
            case {"any": rules}:
                return self._joined(rules, " OR ", "false")
            case {"not": inner}:
                return f"(NOT {self.rule(inner)})"
            case {"attribute": name, "operator": operator, "value": value}:
                return self._attribute(name, operator, value)
            case {"field": name, "operator": operator, "value": value}:
                return self._field(name, operator, value)
        raise ValueError("not a rule")

    def _joined(self, rules: Sequence[Rule], word: str, of_none: str) -> str:
        return f"({word.join(self.rule(each) for each in rules) or of_none})"

    def _attribute(self, name: str, operator: str, value: Any) -> str:
        match operator:
            case "eq":
                return f"(subscription.attributes @> {self._put(_pair(name, value))}::jsonb)"
            case "ne":
                return f"(NOT {self._attribute(name, 'eq', value)})"
            case "in":
                pairs = self._put([_pair(name, each) for each in value])
                return f"(subscription.attributes @> ANY ({pairs}::jsonb[]))"
            case "exists":
                found = f"(subscription.attributes ? {self._put(name)})"
                return found if value else f"(NOT {found})"
            case "contains":
                return self._typed(name, "string", "strpos({}, " + self._put(value) + ") > 0")
            case "starts_with":
                return self._typed(name, "string", "starts_with({}, " + self._put(value) + ")")
        sign = COMPARISONS[operator]
        if isinstance(value, str):
            return self._typed(name, "string", f"{{}} {sign} {self._put(value)}")
        number = self._put(json.dumps(value))
        return self._typed(name, "number", f"{{}}::numeric {sign} {number}::numeric")

    def _typed(self, name: str, kind: str, test: str) -> str:
        """`test`, with the attribute's text for {}, if the value is of this kind, otherwise false.
        Text is compared by code points, whatever the database's collation."""
        key = self._put(name)
        text = f'((subscription.attributes ->> {key}) COLLATE "C")'
        return (
            f"(CASE jsonb_typeof(subscription.attributes -> {key}) WHEN '{kind}'"
            f" THEN {test.format(text)} ELSE false END)"
        )

    def _field(self, name: str, operator: str, value: Any) -> str:
        column = _COLUMNS[name]
        match operator:
            case "eq":
                return f"({column} = {self._put(value)})"
            case "ne":
                return f"({column} <> {self._put(value)})"
            case "in":
                return f"({column} = ANY ({self._put(list(value))}::text[]))"
        return f"({column} {COMPARISONS[operator]} {self._moment(value)})"

    def _moment(self, value: Any) -> str:
        if isinstance(value, str):
            return self._put(parse_timestamp(value))
        if self._now is not None:
            return self._put(self._now - timedelta(days=value["days_ago"]))
        hours = self._put(24 * value["days_ago"])
        return f"statement_timestamp() - make_interval(hours => {hours})"

    def _put(self, value: Any) -> str:
        name = f"{self._prefix}_{len(self.parameters)}"
        self.parameters[name] = value
        return f"%({name})s"


def _pair(name: str, value: Any) -> str:
    return json.dumps({name: value})
