"""The errors of a rule, worded for the segment builder."""

from collections.abc import Iterable
from typing import Any, Final

from django.utils.translation import gettext

from pushsvc.common.errors import FieldError
from pushsvc.common.texts import later
from subscriptions_app.segments.rules import (
    MAX_CHOICES,
    MAX_DAYS,
    MAX_DEPTH,
    MAX_LEAVES,
    MAX_NAME,
    MAX_TEXT,
)

NOT_A_TAG: Final = later("Enter a tag: letters, digits and _ . : - without blanks.")
_DAYS: Final = later("Enter a whole number of days, from 1 to %(max_days)s.", max_days=MAX_DAYS)

# By the part of the form and the error's code. Any other part of the rule is a group.
_WORDS: Final = {
    ("attribute", "blank"): later("Name the attribute."),
    ("attribute", "too_long"): later(
        "The attribute's name may have at most %(max_name)s characters.", max_name=MAX_NAME
    ),
    ("value", "blank"): later("Enter a value."),
    ("value", "too_long"): later(
        "The value may have at most %(max_text)s characters.", max_text=MAX_TEXT
    ),
    ("value", "out_of_range"): later("The number is too large."),
    ("value", "empty"): later("Choose at least one platform."),
    ("value", "too_many"): later("Enter at most %(max_choices)s values.", max_choices=MAX_CHOICES),
    ("value", "not_a_timestamp"): later("Enter a date and a time."),
    ("tag", "not_a_tag"): NOT_A_TAG,
    ("notification", "not_a_uuid"): later("Enter the notification's id, as its page shows it."),
    ("days_ago", "not_a_number"): _DAYS,
    ("days_ago", "out_of_range"): _DAYS,
    ("group", "empty"): later("Add a condition to this group."),
    ("group", "too_deep"): later(
        "Groups may be nested at most %(max_depth)s levels deep.", max_depth=MAX_DEPTH
    ),
    ("group", "too_many"): later(
        "A segment may have at most %(max_leaves)s conditions.", max_leaves=MAX_LEAVES
    ),
}
_PARTS: Final = ("attribute", "value", "tag", "notification", "days_ago")


def shown_errors(errors: Iterable[FieldError], rule: object) -> list[dict[str, str]]:
    """The path and the words of each error. `rule`: as the builder sent it."""
    return [{"path": error.attr, "words": _words(error, rule)} for error in errors]


def _words(error: FieldError, rule: object) -> str:
    if _is_unfinished_number(_found(rule, error.attr)):
        return gettext("Enter a number.")
    steps = [step for step in error.attr.split(".") if not step.isdecimal()]
    part = steps[-1] if steps[-1] in _PARTS else "group"
    return _WORDS.get((part, error.code), error.detail)


def _is_unfinished_number(value: Any) -> bool:
    """Whether the value is the builder's mark for a number that cannot be parsed yet."""
    return isinstance(value, dict) and value.keys() == {"number"}


def _found(rule: Any, path: str) -> Any:
    """The value in the rule at the path of an error; None if there is none."""
    for step in path.split(".")[1:]:
        if isinstance(rule, dict):
            rule = rule.get(step)
        elif isinstance(rule, list) and step.isdecimal() and int(step) < len(rule):
            rule = rule[int(step)]
        else:
            return None
    return rule
