"""Describes a rule in words of the active language."""

import json
from collections.abc import Iterable, Sequence
from functools import reduce
from typing import Any, Final
from zoneinfo import ZoneInfo

from django.utils.translation import gettext, ngettext, pgettext

from pushsvc.common.texts import later
from pushsvc.common.timestamps import parse_timestamp
from subscriptions_app.segments.rules import Rule

_Words = dict[str, str]

_NAMES: Final[_Words] = {
    "platform": later("platform"),
    "language": later("language"),
    "timezone": later("timezone"),
    "country": later("country"),
    "app_version": later("app version"),
}
# What a condition says of a value, and what it wants of one, by its operator.
_SAID: Final[_Words] = {
    "eq": later("%(name)s is %(value)s"),
    "ne": later("%(name)s is not %(value)s"),
    "in": later("%(name)s is %(value)s"),
    "contains": later("%(name)s contains %(value)s"),
    "starts_with": later("%(name)s starts with %(value)s"),
}
_SAID_OF_NUMBERS: Final[_Words] = {
    "gt": later("%(name)s is over %(value)s"),
    "gte": later("%(name)s is at least %(value)s"),
    "lt": later("%(name)s is under %(value)s"),
    "lte": later("%(name)s is at most %(value)s"),
}
_SAID_OF_TEXTS: Final[_Words] = {
    "gt": later("%(name)s is after %(value)s"),
    "gte": later("%(name)s is %(value)s or after"),
    "lt": later("%(name)s is before %(value)s"),
    "lte": later("%(name)s is %(value)s or before"),
}
_WANTED: Final[_Words] = {
    "eq": "%(value)s",
    "ne": later("anything but %(value)s"),
    "in": "%(value)s",
    "contains": later("a text that contains %(value)s"),
    "starts_with": later("a text that starts with %(value)s"),
}
_WANTED_OF_NUMBERS: Final[_Words] = {
    "gt": later("over %(value)s"),
    "gte": later("at least %(value)s"),
    "lt": later("under %(value)s"),
    "lte": later("at most %(value)s"),
}
_WANTED_OF_TEXTS: Final[_Words] = {
    "gt": later("after %(value)s"),
    "gte": later("%(value)s or after"),
    "lt": later("before %(value)s"),
    "lte": later("%(value)s or before"),
}
_MOMENTS: Final[_Words] = {
    "gt": later("after %(value)s"),
    "gte": later("at or after %(value)s"),
    "lt": later("before %(value)s"),
    "lte": later("at or before %(value)s"),
}
_HAPPENED: Final[_Words] = {
    "created_at": later("subscribed"),
    "last_seen_at": later("last seen"),
    "last_clicked_at": later("last clicked"),
}
_OUTCOMES: Final[_Words] = {
    "delivered": later("was delivered"),
    "bounced": later("bounced"),
    "received": later("was received"),
    "clicked": later("was clicked"),
    "not_clicked": later("was delivered and not clicked"),
    "not_received": later("was delivered and not reported as received"),
}
_WANTED_OUTCOMES: Final[_Words] = {
    "delivered": later("one that was delivered"),
    "bounced": later("one that bounced"),
    "received": later("one that was received"),
    "clicked": later("one that was clicked"),
    "not_clicked": later("one that was delivered and not clicked"),
    "not_received": later("one that was delivered and not reported as received"),
}


def rule_text(rule: Rule) -> str:
    """The rule in words, such as `plan is "pro" and last seen in the last 30 days`."""
    match rule:
        case {"all": rules}:
            return _all(_bracketed(rules))
        case {"any": rules}:
            return _any(_bracketed(rules))
        case {"not": inner}:
            return gettext("not (%(rule)s)") % {"rule": rule_text(inner)}
        case {"attribute": name, "operator": operator, "value": value}:
            return _said(name, operator, value)
        case {"field": "last_clicked_at", "operator": "exists", "value": value}:
            return gettext("has clicked") if value else gettext("has never clicked")
        case {"field": "external_id", "value": value}:
            return gettext("belongs to a person") if value else gettext("belongs to no person")
        case {"tag": tag}:
            return gettext("has the tag %(tag)s") % {"tag": tag}
        case {"notification": id_, "outcome": outcome}:
            words = gettext("notification %(id)s %(outcome)s (while its deliveries are kept)")
            return words % {"id": id_, "outcome": _OUTCOMES[outcome]}
        case {"field": name, "operator": operator, "value": value} if name in _HAPPENED:
            about = {"event": _HAPPENED[name], "when": _when(operator, value)}
            return gettext("%(event)s %(when)s") % about
        case {"field": name, "operator": operator, "value": value}:
            return _said(name, operator, value, is_field=True)
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
            return gettext("any value") if value else gettext("no value")
        case {"attribute": _, "operator": operator, "value": value}:
            return _wanted(operator, value)
        case {"field": "app_version", "operator": "exists", "value": value}:
            return gettext("any version") if value else gettext("no version")
        case {"field": "app_version" | "platform", "operator": "ne", "value": value}:
            return gettext("not %(value)s") % {"value": value}
        case {"field": "app_version" | "platform" as name, "operator": operator, "value": value}:
            return _words(operator, _WANTED, _WANTED_OF_NUMBERS) % _about(name, value)
        case {"field": "language" | "timezone" | "country", "operator": "exists", "value": value}:
            return gettext("set") if value else gettext("not set")
        case {"field": "language" | "timezone" | "country", "operator": "starts_with"}:
            return gettext("one that starts with %(value)s") % {"value": _shown(rule["value"])}
        case {"field": "language" | "timezone" | "country", "operator": operator, "value": value}:
            return _wanted(operator, value)
        case {"field": "external_id", "value": value}:
            return gettext("a person") if value else gettext("no person")
        case {"tag": _}:
            return pgettext("the tag that a rule wants", "it")
        case {"notification": _, "outcome": outcome}:
            return str(_WANTED_OUTCOMES[outcome])
    return rule_text(rule)


def _unwanted_text(rule: Rule) -> str:
    match rule:
        case {"tag": _}:
            return gettext("no such tag")
        case {"field": "external_id", "value": value}:
            return gettext("no person") if value else gettext("a person")
        case {"attribute": _, "operator": "exists", "value": value}:
            return gettext("no value") if value else gettext("any value")
        case {"attribute": _} | {"field": "language" | "timezone" | "country" | "platform"}:
            return gettext("anything but %(value)s") % {"value": wanted_text(rule)}
    return rule_text({"not": rule})


def _all(words: Iterable[str]) -> str:
    both = gettext("%(left)s and %(right)s")
    return reduce(lambda left, right: both % {"left": left, "right": right}, words)


def _any(words: Iterable[str]) -> str:
    either = gettext("%(left)s or %(right)s")
    return reduce(lambda left, right: either % {"left": left, "right": right}, words)


def _bracketed(rules: Sequence[Rule]) -> list[str]:
    """The rules in words. Groups are in brackets, if there are several rules."""
    if len(rules) == 1:
        return [rule_text(rules[0])]
    return [
        f"({rule_text(each)})" if len(each.get("all", each.get("any", []))) > 1 else rule_text(each)
        for each in rules
    ]


def _said(name: str, operator: str, value: Any, *, is_field: bool = False) -> str:
    if operator == "exists":
        words = gettext("%(name)s is set") if value else gettext("%(name)s is not set")
        return words % {"name": _NAMES[name] if is_field else name}
    if is_field and name in ("platform", "app_version"):
        return _words(operator, _SAID, _SAID_OF_NUMBERS) % _about(name, value)
    ordered = _SAID_OF_TEXTS if isinstance(value, str) else _SAID_OF_NUMBERS
    about = {"name": _NAMES[name] if is_field else name, "value": _shown(value)}
    return _words(operator, _SAID, ordered) % about


def _wanted(operator: str, value: Any) -> str:
    ordered = _WANTED_OF_TEXTS if isinstance(value, str) else _WANTED_OF_NUMBERS
    return _words(operator, _WANTED, ordered) % {"value": _shown(value)}


def _words(operator: str, words: _Words, ordered: _Words) -> str:
    return words[operator] if operator in words else ordered[operator]


def _about(name: str, value: Any) -> dict[str, str]:
    """For a field whose values need no quotes."""
    values = value if isinstance(value, list) else [value]
    return {"name": _NAMES[name], "value": _any(values)}


def _when(operator: str, value: Any) -> str:
    if isinstance(value, str):
        return _MOMENTS[operator] % {"value": value}
    days = value["days_ago"]
    if operator in ("gt", "gte"):
        words = ngettext("in the last day", "in the last %(days)s days", days)
    else:
        words = ngettext("more than %(days)s day ago", "more than %(days)s days ago", days)
    return words % {"days": days}


def _shown(value: object) -> str:
    values = value if isinstance(value, list) else [value]
    return _any(json.dumps(each, ensure_ascii=False) for each in values)
