"""Compiles a rule to SQL.

The expressions are never NULL, so `not` negates them. Values and attribute names become parameters,
and are never part of a statement's text.

Tags and outcomes are lookups in a primary key for each row. OFFSET 0 keeps PostgreSQL from reading
all rows of a tag or a notification instead, whatever its statistics.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from pushsvc.common.timestamps import parse_timestamp
from subscriptions_app.segments.ledger import outcome_part
from subscriptions_app.segments.rules import COMPARISONS, Rule

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


def compiled(rule: Rule, *, now: datetime | None = None, prefix: str = "rule") -> Condition:
    """Compiles the rule. `days_ago` counts from `now`, by default the statement's time. A send uses
    the same `now` for all its statements. The names of parameters begin with `prefix`."""
    writer = _Writer(now, prefix)
    text = writer.rule(rule)
    return Condition(text, writer.parameters)


def indexed_part(rule: Rule) -> Rule | None:
    """A wider rule that the index on attributes can answer: every subscription that matches `rule`
    matches it too. None if there is no such rule."""
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


def required_tags(rule: Rule) -> list[str]:
    """The tags that every matching subscription has, without repetitions."""
    match rule:
        case {"tag": tag}:
            return [tag]
        case {"all": rules}:
            return list(dict.fromkeys(tag for each in rules for tag in required_tags(each)))
        case {"any": [only]}:
            return required_tags(only)
        case _:
            return []


class _Writer:
    def __init__(self, now: datetime | None, prefix: str) -> None:
        self._now, self._prefix = now, prefix
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
            case {"field": name, "operator": operator, "value": value}:
                return self._field(name, operator, value)
            case {"tag": tag}:
                return _TAGGED.format(tag=self._put(tag))
            case {"notification": notification, "outcome": outcome}:
                return outcome_part(self._put(notification), outcome)
        raise ValueError("not a rule")

    def _any(self, rules: Sequence[Rule]) -> str:
        """Looks up several tags of the device together instead of one by one."""
        tags = [each["tag"] for each in rules if "tag" in each]
        if len(tags) < 2:
            return self._joined(rules, " OR ", "false")
        others = [self.rule(each) for each in rules if "tag" not in each]
        return f"({' OR '.join([*others, _HAS_ONE_OF.format(tags=self._put(tags))])})"

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
        Text is compared by code points, independent of the database's collation."""
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

    def _language(self, operator: str, value: Any) -> str:
        """Compares languages without regard to case (RFC 5646 section 2.1.1)."""
        match operator:
            case "in":
                known = self._put([each.lower() for each in value])
                return f"({_LANGUAGE} = ANY ({known}::text[]))"
            case "starts_with":
                return f"starts_with({_LANGUAGE}, {self._put(value.lower())})"
        sign = "=" if operator == "eq" else "<>"
        return f"({_LANGUAGE} {sign} {self._put(value.lower())})"

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


_TAGGED: Final = """EXISTS (SELECT FROM subscriptions_app_tag AS tag
  WHERE tag.channel_id = subscription.channel_id AND tag.platform = subscription.platform
    AND tag.tag = {tag} AND tag.subscription_id = subscription.id OFFSET 0)"""

# Uses the index on the subscription alone, because a device has at most a hundred tags.
_HAS_ONE_OF: Final = """EXISTS (SELECT FROM subscriptions_app_tag AS tag
  WHERE tag.subscription_id = subscription.id AND tag.tag = ANY ({tags}::text[]) OFFSET 0)"""


def _pair(name: str, value: Any) -> str:
    return json.dumps({name: value})
