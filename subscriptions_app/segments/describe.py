"""Describes a rule in plain English."""

import json
from collections.abc import Sequence
from typing import Any, Final
from zoneinfo import ZoneInfo

from pushsvc.common.timestamps import parse_timestamp
from subscriptions_app.segments.rules import Rule

_NUMBERS: Final = {"gt": "over {}", "gte": "at least {}", "lt": "under {}", "lte": "at most {}"}
_TEXTS: Final = {
    "gt": "after {}",
    "gte": "{} or after",
    "lt": "before {}",
    "lte": "{} or before",
}
_MOMENTS: Final = {
    "gt": "after {}",
    "gte": "at or after {}",
    "lt": "before {}",
    "lte": "at or before {}",
}
_HAPPENED: Final = {
    "created_at": "subscribed",
    "last_seen_at": "last seen",
    "last_clicked_at": "last clicked",
}
_OUTCOMES: Final = {
    "delivered": "was delivered",
    "bounced": "bounced",
    "received": "was received",
    "clicked": "was clicked",
    "not_clicked": "was delivered and not clicked",
    "not_received": "was delivered and not reported as received",
}


def rule_text(rule: Rule) -> str:
    """The rule in words, such as `plan is "pro" and last seen in the last 30 days`."""
    match rule:
        case {"all": rules}:
            return _joined(rules, " and ")
        case {"any": rules}:
            return _joined(rules, " or ")
        case {"not": inner}:
            return f"not ({rule_text(inner)})"
        case {"attribute": name, "operator": operator, "value": value}:
            return f"{name} {_of_attribute(operator, value)}"
        case {"field": "platform", "operator": operator, "value": value}:
            names = value if operator == "in" else [value]
            return f"platform is {'not ' * (operator == 'ne')}{' or '.join(names)}"
        case {
            "field": "language" | "timezone" | "country" as name,
            "operator": operator,
            "value": value,
        }:
            return f"{name} {_of_attribute(operator, value)}"
        case {"field": "app_version", "operator": operator, "value": value}:
            return f"app version {_of_version(operator, value)}"
        case {"field": "last_clicked_at", "operator": "exists", "value": value}:
            return "has clicked" if value else "has never clicked"
        case {"field": "external_id", "value": value}:
            return "belongs to a person" if value else "belongs to no person"
        case {"tag": tag}:
            return f"has the tag {tag}"
        case {"notification": id_, "outcome": outcome}:
            return f"notification {id_} {_OUTCOMES[outcome]} (while its deliveries are kept)"
        case {"field": name, "operator": operator, "value": value}:
            return f"{_HAPPENED[name]} {_when(operator, value)}"
    raise ValueError("not a rule")


def on_clock(rule: Rule, zone: ZoneInfo) -> Rule:
    """The rule with its moments as the clock of the zone shows them, for `rule_text` on a page."""
    match rule:
        case {"all": list(rules)}:
            return {"all": [on_clock(each, zone) for each in rules]}
        case {"any": list(rules)}:
            return {"any": [on_clock(each, zone) for each in rules]}
        case {"not": dict(inner)}:
            return {"not": on_clock(inner, zone)}
        case {"field": "created_at" | "last_seen_at", "value": str(value)}:
            return {**rule, "value": f"{parse_timestamp(value).astimezone(zone):%Y-%m-%d %H:%M}"}
    return rule


def wanted_text(rule: Rule) -> str:
    """What a condition asks of a device, for a sentence that begins with the device's own value,
    such as `"pro"` or `anything but "free"`."""
    match rule:
        case {"not": inner}:
            return _unwanted_text(inner)
        case {"attribute": _, "operator": "exists", "value": value}:
            return "any value" if value else "no value"
        case {"attribute": _, "operator": "ne", "value": value}:
            return f"anything but {_shown(value)}"
        case {"attribute": _, "operator": "contains" | "starts_with" as operator, "value": value}:
            return f"a text that {operator.replace('_', ' ')} {_shown(value)}"
        case {"attribute": _, "operator": operator, "value": value}:
            return _of_attribute(operator, value).removeprefix("is ")
        case {"field": "language" | "timezone" | "country", "operator": "ne", "value": value}:
            return f"anything but {_shown(value)}"
        case {
            "field": "language" | "timezone" | "country",
            "operator": operator,
            "value": value,
        }:
            return (
                _of_attribute(operator, value)
                .removeprefix("is ")
                .replace("starts", "one that starts")
            )
        case {"field": "platform"}:
            return rule_text(rule).removeprefix("platform is ")
        case {"field": "app_version", "operator": operator, "value": value}:
            words = _of_version(operator, value).removeprefix("is ")
            return {"set": "any version", "not set": "no version"}.get(words, words)
        case {"field": "external_id", "value": value}:
            return "a person" if value else "no person"
        case {"tag": _}:
            return "it"
        case {"notification": _, "outcome": outcome}:
            return f"one that {_OUTCOMES[outcome]}"
    return rule_text(rule)


def _unwanted_text(rule: Rule) -> str:
    match rule:
        case {"tag": _}:
            return "no such tag"
        case {"field": "external_id", "value": value}:
            return "no person" if value else "a person"
        case {"attribute": _, "operator": "exists", "value": value}:
            return "no value" if value else "any value"
        case {"attribute": _} | {"field": "language" | "timezone" | "country" | "platform"}:
            return f"anything but {wanted_text(rule)}"
    return rule_text({"not": rule})


def _joined(rules: Sequence[Rule], word: str) -> str:
    if len(rules) == 1:
        return rule_text(rules[0])
    return word.join(_bracketed(each) for each in rules)


def _bracketed(rule: Rule) -> str:
    is_group = len(rule.get("all", rule.get("any", []))) > 1
    return f"({rule_text(rule)})" if is_group else rule_text(rule)


def _of_attribute(operator: str, value: Any) -> str:
    match operator:
        case "eq":
            return f"is {_shown(value)}"
        case "ne":
            return f"is not {_shown(value)}"
        case "in":
            return f"is {' or '.join(map(_shown, value))}"
        case "exists":
            return "is set" if value else "is not set"
        case "contains":
            return f"contains {_shown(value)}"
        case "starts_with":
            return f"starts with {_shown(value)}"
    words = _TEXTS if isinstance(value, str) else _NUMBERS
    return f"is {words[operator].format(_shown(value))}"


def _of_version(operator: str, value: Any) -> str:
    if operator in _NUMBERS:
        return f"is {_NUMBERS[operator].format(value)}"
    return _of_attribute(operator, value).replace('"', "")


def _when(operator: str, value: Any) -> str:
    if isinstance(value, str):
        return _MOMENTS[operator].format(value)
    days = value["days_ago"]
    if operator in ("gt", "gte"):
        return "in the last day" if days == 1 else f"in the last {days} days"
    return f"more than {days} {'day' if days == 1 else 'days'} ago"


def _shown(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
