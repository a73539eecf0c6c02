"""The errors of a send by field, worded for the forms that write a notification."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Final

from django.utils.translation import gettext

from notifications_app.admin.compose import extras as compose_extras
from notifications_app.admin.compose.extras import field_at
from notifications_app.content.fields import MAX_TTL
from notifications_app.content.values import CONTENT, MAX_TARGETS
from notifications_app.sends.schema import MAX_RATE, SendFields
from pushsvc.common.console.figures import grouped
from pushsvc.common.errors import FieldError
from pushsvc.common.platforms import PLATFORM_NAMES
from pushsvc.common.texts import later
from subscriptions_app.admin.segment_errors import NOT_A_TAG

# The forms' labels, by the names of the fields in the API's body.
LABELS: Final[Mapping[str, str]] = {
    **{name: each.label for name, each in CONTENT.items()},
    "target_platforms": later("Platforms"),
    "segment_id": later("Subscribers"),
    "category": later("Category"),
    "rule": later("Conditions"),
    "replaces": later("Recipients"),
    "external_ids": later("Ids"),
    "subscription_ids": later("Ids"),
    "scheduled_at": later("Day and time"),
    "local_at": later("Day and time"),
    "quiet_hours": later("Quiet hours"),
    "expires_at": later("Stop delivering after"),
    "rate_per_minute": later("Recipients a minute"),
    "cap": later("Caps"),
    "test": later("A/B test"),
    "name": later("Internal name"),
    "labels": later("Labels"),
}
FIELDS: Final = frozenset(SendFields().fields)
_TEST_PARTS: Final[Mapping[str, str]] = {
    "share": later("Percent of the audience"),
    "minutes": later("Minutes"),
    "metric": later("Decided by"),
    "inconclusive": later("If the numbers say nothing"),
}
_WITH_PARTS: Final = frozenset({"data", *compose_extras.WITH_PARTS})
_WEB_ADDRESS: Final = later("Enter a web address, such as https://shop.example/sale.")

_DAY_AND_TIME: Final = later("Choose a day and a time.")
_IDS: Final = ("external_ids", "subscription_ids")

# By field and code. The text of any other error already suits the form.
_WORDS: Final[Mapping[tuple[str, str], str]] = {
    ("body", "blank"): later("Write a text."),
    **{(name, "not_a_url"): _WEB_ADDRESS for name in ("url", "icon", "image")},
    ("target_platforms", "empty"): later("Choose at least one platform."),
    ("target_platforms", "platform_not_enabled"): later("A chosen platform is not set up."),
    ("target_platforms", "not_a_choice"): later("Choose one of the platforms."),
    ("segment_id", "segment_not_found"): later("This segment no longer exists. Choose another."),
    ("category", "category_unknown"): later("This category no longer exists. Choose another."),
    ("category", "category_required"): later("Choose a category: this channel requires one."),
    ("segment_id", "not_a_uuid"): later("This segment no longer exists. Choose another."),
    ("rule", "not_a_rule"): later("Finish the conditions."),
    ("rule", "not_a_tag"): NOT_A_TAG,
    **{(name, "empty"): later("Write at least one id.") for name in _IDS},
    **{
        (name, "too_many"): later(
            "Write at most %(max_targets)s ids.", max_targets=grouped(MAX_TARGETS)
        )
        for name in _IDS
    },
    ("personalize", "not_combinable"): later(
        "Some who get it have values of their own, which need this."
    ),
    ("topic", "not_a_topic"): later("Use at most 32 letters, digits, hyphens and underscores."),
    ("urgency", "not_a_choice"): later("Choose one of the urgencies."),
    ("ttl", "out_of_range"): later("Enter at most %(value)s days.", value=MAX_TTL // 86400),
    **{("local_at", code): _DAY_AND_TIME for code in ("blank", "not_a_local_time")},
    ("quiet_hours", "not_a_local_time"): later("Choose when they begin and end."),
    ("quiet_hours", "out_of_range"): later("Choose an end that is not the begin."),
    ("expires_at", "out_of_range"): later("Choose a moment after the start, and later than now."),
    ("rate_per_minute", "not_a_number"): later("Enter a whole number."),
    ("rate_per_minute", "out_of_range"): later(
        "Enter at most %(max_rate)s.", max_rate=grouped(MAX_RATE)
    ),
    ("", "malformed_json"): later("A text contains a character that cannot be stored."),
}


def errors_by_field(errors: Iterable[FieldError]) -> dict[str, list[str]]:
    """The texts of the errors by field; "" for the whole form. `data.color` belongs to `data`, and
    `ios.badge` to `ios`."""
    found: dict[str, list[str]] = defaultdict(list)
    for error in errors:
        within = _within(error)
        words = _words(error)
        found[field_of(error)].append(f"{within}: {words}" if within else words)
    return dict(found)


def _within(error: FieldError) -> str:
    """The part of the field that has the error, in words for people."""
    name, _, within = error.attr.partition(".")
    if name in _IDS and within.isdigit():
        return gettext("Id %(value)s") % {"value": int(within) + 1}
    if name == "test" and within in _TEST_PARTS:
        return str(_TEST_PARTS[within])
    return _part(error.attr, within) if name in _WITH_PARTS else ""


def _part(attr: str, within: str) -> str:
    """The label of the part, with the language or the number of the button."""
    field = field_at(attr)
    if field is None:
        return within
    label = field.label
    match attr.split("."):
        case "translations", tag, *_:
            return f"{label} ({tag})"
        case "variants", place, *_:
            return gettext("%(label)s (variant %(value)s)") % {
                "label": label,
                "value": int(place) + 1,
            }
        case "actions", place, _:
            return gettext("%(label)s (button %(value)s)") % {
                "label": label,
                "value": int(place) + 1,
            }
    return label


def general(errors: Iterable[FieldError]) -> list[str]:
    """The texts of errors that belong to no field."""
    return [_words(error) for error in errors if field_of(error) not in FIELDS]


def labelled(errors: Iterable[FieldError]) -> list[str]:
    """The texts of the errors with the labels of their fields, for a place apart from the
    fields."""
    return [
        ": ".join(map(str, filter(None, (LABELS.get(field_of(each), ""), _words(each)))))
        for each in errors
    ]


def field_of(error: FieldError) -> str:
    return error.attr.partition(".")[0]


def _words(error: FieldError) -> str:
    if error.code == "payload_too_large":
        return _named_platforms(
            gettext("%(detail)s Shorten the text, the addresses or the data.")
            % {"detail": error.detail}
        )
    return _WORDS.get((field_of(error), error.code), error.detail)


def _named_platforms(text: str) -> str:
    for platform, name in PLATFORM_NAMES.items():
        text = re.sub(rf"\b{platform}(?=[;؛])", name, text)
    return text
