"""Why a rule selects a device, or does not: the condition that decided, and the device's value.

Each condition is evaluated by the database, as compiled for the planner. Only `all`, `any` and
`not` are evaluated here.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from django.utils.translation import gettext

from pushsvc.common.countries import country_of
from pushsvc.common.store import sql
from pushsvc.common.timestamps import format_timestamp
from subscriptions_app.models import Subscription
from subscriptions_app.segments.compiler import compiled_leaves
from subscriptions_app.segments.describe import rule_text, wanted_text
from subscriptions_app.segments.rules import Rule, leaves

_MOST_FACTS: Final = 5  # in one sentence
_MOST_CHARACTERS: Final = 100  # of a value


@dataclass(frozen=True, slots=True)
class Judgement:
    """`reason`: the condition that keeps the device out, the deepest one; None if the rule selects
    the device. `words`: the device's own value and what the condition asks for."""

    reason: Rule | None = None
    words: str = ""


def rule_judged(
    channel_id: UUID, devices: Sequence[Subscription], rule: Rule, *, now: datetime | None = None
) -> dict[UUID, Judgement]:
    """By the ids of the devices, which are active or not. `now`: as for `compiled`. Reads only the
    rows of these devices."""
    truths = compiled_leaves(rule, now=now)
    parameters = {
        **truths.parameters,
        "channel": channel_id,
        "ids": [each.pk for each in devices],
    }
    found = dict(sql.rows(_TRUTHS.format(truths=truths.text), parameters))
    return {each.pk: _judged(rule, found[each.pk], each) for each in devices if each.pk in found}


class _Known:
    """The truth of each node of a rule. A node is known by its identity, because a rule may contain
    equal conditions."""

    def __init__(self, rule: Rule, of_leaves: Sequence[bool]) -> None:
        self._truths: dict[int, bool] = {}
        self._evaluate(rule, iter(of_leaves))

    def __getitem__(self, rule: Rule) -> bool:
        return self._truths[id(rule)]

    def _evaluate(self, rule: Rule, of_leaves: Iterator[bool]) -> bool:
        match rule:
            case {"all": rules}:
                truth = all(self._evaluated(rules, of_leaves))
            case {"any": rules}:
                truth = any(self._evaluated(rules, of_leaves))
            case {"not": inner}:
                truth = not self._evaluate(inner, of_leaves)
            case _:
                truth = next(of_leaves)
        self._truths[id(rule)] = truth
        return truth

    def _evaluated(self, rules: Sequence[Rule], of_leaves: Iterator[bool]) -> list[bool]:
        """All of them, because each condition has its entry in `of_leaves`."""
        return [self._evaluate(each, of_leaves) for each in rules]


def _judged(rule: Rule, of_leaves: Sequence[bool], device: Subscription) -> Judgement:
    known = _Known(rule, of_leaves)
    if known[rule]:
        return Judgement()
    reason = _reason(rule, known)
    return Judgement(reason, _words(reason, known, device))


def _reason(rule: Rule, known: _Known) -> Rule:
    """The deepest part of a false rule that must be true for the rule to be true."""
    match rule:
        case {"all": rules}:
            return _reason(next(each for each in rules if not known[each]), known)
        case {"any": [only]}:
            return _reason(only, known)
        case {"not": inner}:
            return _reason_not(rule, inner, known)
    return rule


def _reason_not(rule: Rule, inner: Rule, known: _Known) -> Rule:
    """`rule` is `{"not": inner}`, and `inner` is true. `not any` is `all not`."""
    match inner:
        case {"not": twice}:
            return _reason(twice, known)
        case {"any": rules}:
            one = next(each for each in rules if known[each])
            return _reason_not({"not": one}, one, known)
        case {"all": [only]}:
            return _reason_not({"not": only}, only, known)
    return rule


def _words(reason: Rule, known: _Known, device: Subscription) -> str:
    if reason == {"any": []}:
        return gettext("The segment was deleted, so it selects nobody.")
    facts = dict.fromkeys(_fact(leaf, known[leaf], device) for leaf in leaves(reason))
    words = gettext("%(facts)s; the rule wants %(wanted)s")
    if len(facts) > _MOST_FACTS:
        words = gettext("%(facts)s and more; the rule wants %(wanted)s")
    wanted = wanted_text(reason) if len(facts) == 1 else rule_text(reason)
    return words % {"facts": ", ".join(list(facts)[:_MOST_FACTS]), "wanted": wanted}


def _fact(leaf: Rule, truth: bool, device: Subscription) -> str:
    """What is known of the device, for which the condition has this truth."""
    match leaf:
        case {"attribute": name}:
            return _value(name, name in device.attributes, device.attributes.get(name))
        case {"field": "language" | "timezone" as name}:
            own = getattr(device, name)
            return _value(name, bool(own), own)
        case {"field": "country"}:
            return _value("country", bool(device.timezone), country_of(device.timezone))
        case {"field": "app_version"}:
            own = device.attributes.get("app_version")
            return _value("app_version", "app_version" in device.attributes, own)
        case {"field": "platform"}:
            return gettext("platform is %(platform)s") % {"platform": device.platform}
        case {"field": "external_id"} if device.person_id is None:
            return gettext("it belongs to no person")
        case {"field": "external_id"}:
            return gettext("it belongs to a person")
        case {"field": "created_at"}:
            return gettext("it subscribed at %(at)s") % {"at": format_timestamp(device.created_at)}
        case {"field": "last_seen_at"}:
            at = format_timestamp(device.registered_at)
            return gettext("it was last seen at %(at)s") % {"at": at}
        case {"tag": tag}:
            words = gettext("it has the tag %(tag)s") if truth else gettext("it has no tag %(tag)s")
            return words % {"tag": tag}
    if truth:
        return rule_text(leaf)
    return gettext("there is no record that %(rule)s") % {"rule": rule_text(leaf)}


def _value(name: str, is_set: bool, value: object) -> str:
    if not is_set:
        return gettext("%(name)s is not set") % {"name": name}
    text = json.dumps(value, ensure_ascii=False)
    cut = text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]}…"
    return gettext("%(name)s is %(value)s") % {"name": name, "value": cut}


# Raw, because rules are compiled to SQL.
_TRUTHS: Final = """
SELECT subscription.id, {truths} FROM subscriptions_app_subscription AS subscription
WHERE subscription.id = ANY (%(ids)s::uuid[]) AND subscription.channel_id = %(channel)s
"""
