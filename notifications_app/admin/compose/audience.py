"""The audience in the forms that write a notification, and the same in the API's body."""

from collections.abc import Iterable, Mapping
from json import dumps
from typing import Any, Final, Protocol

from django.http import HttpRequest
from django.utils.translation import gettext

from notifications_app.content.values import AudienceKind
from notifications_app.models import Notification, Target
from pushsvc.common.console.zones import reader_zone
from pushsvc.common.errors import FieldError
from pushsvc.common.http.strict_json import MalformedJSON, loads_strict
from pushsvc.common.texts import later
from subscriptions_app.admin.segment_errors import shown_errors
from subscriptions_app.segments.describe import on_clock, rule_text

PEOPLE: Final = "people"
SUBSCRIPTIONS: Final = "subscriptions"
RULE: Final = "rule"
TAG: Final = "tag"
CORRECTION: Final = "correction"
# "" is the channel, or its segment.
AUDIENCES: Final[Mapping[str, str]] = {
    "": later("All subscribers, or a segment"),
    TAG: later("Devices with a tag"),
    RULE: later("Who matches these conditions"),
    PEOPLE: later("People, by your ids"),
    SUBSCRIPTIONS: later("Subscribers, by their ids"),
}
_CORRECTION: Final = (CORRECTION, later("Who has the notification that it corrects"))


def rule_words(rule: Any, request: HttpRequest) -> str:
    """The rule in words, with times on the reader's clock. "" without a rule."""
    return rule_text(on_clock(rule, reader_zone(request))) if rule else ""


class AudienceForm(Protocol):
    """`rule` is JSON, and `ids` has one id per line. Only the field that `audience` chooses
    counts."""

    @property
    def audience(self) -> str: ...
    @property
    def segment_id(self) -> str: ...
    @property
    def tag(self) -> str: ...
    @property
    def rule(self) -> str: ...
    @property
    def ids(self) -> str: ...
    @property
    def replaces(self) -> str: ...


def choices_for(form: AudienceForm) -> list[tuple[str, str]]:
    """The AUDIENCES of a new notification. Only one that corrects another offers who has that."""
    return [_CORRECTION, *AUDIENCES.items()] if form.replaces else [*AUDIENCES.items()]


def audience_texts(notification: Notification) -> dict[str, str]:
    """The fields of a form for the notification's audience.

    `ids` is empty if the notification names both people and subscriptions, or if one of its people
    was erased. Then staff must enter the ids again, so that no other person gets the notification.
    """
    if notification.replaces is not None:
        return {"audience": CORRECTION, "replaces": str(notification.replaces)}
    match notification.rule:
        case {"tag": str(tag)}:
            return {"audience": TAG, "tag": tag}
        case dict() as rule:
            return {"audience": RULE, "rule": dumps(rule)}
    if not notification.has_targets:
        return {"segment_id": str(notification.segment_id or "")}
    targets = Target.objects.of(notification.pk).values_list("external_id", "subscription_id")
    people, devices = (list(each) for each in zip(*targets, strict=True)) if targets else ([], [])
    if None not in people:
        return {"audience": PEOPLE, "ids": "\n".join(people)}
    ids = devices if None not in devices else []
    return {"audience": SUBSCRIPTIONS, "ids": "\n".join(map(str, ids))}


def audience_body(form: AudienceForm, errors: list[FieldError]) -> dict[str, Any]:
    """The fields of the audience in the API's body. Appends to `errors`."""
    match form.audience:
        case "":
            return {"segment_id": form.segment_id} if form.segment_id else {}
        case "tag":
            return {"rule": {"tag": form.tag.strip()}}
        case "rule":
            return {"rule": parsed_rule(form)}
        case "people":
            return {"external_ids": _lines(form.ids)}
        case "subscriptions":
            return {"subscription_ids": _lines(form.ids)}
        case "correction":
            return {"replaces": form.replaces}
    errors.append(FieldError("", "not_a_choice", gettext("Choose who gets it.")))
    return {}


def audiences_of(kind: AudienceKind) -> list[tuple[str, str]]:
    """The AUDIENCES that an edit may choose for a notification of this kind."""
    if kind == AudienceKind.CORRECTION:
        return [_CORRECTION]
    names = {AudienceKind.RULE: [TAG, RULE], AudienceKind.TARGETS: [PEOPLE, SUBSCRIPTIONS]}
    return [(name, AUDIENCES[name]) for name in names.get(kind, [""])]


def rule_errors_of(form: AudienceForm, errors: Iterable[FieldError]) -> list[dict[str, str]]:
    """The errors that the builder shows beside its conditions."""
    in_rule = [each for each in errors if each.attr.partition(".")[0] == "rule"]
    return shown_errors(in_rule, parsed_rule(form)) if form.audience == RULE else []


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


def parsed_rule(form: AudienceForm) -> object:
    """The form's rule. {}, which is not a valid rule, if it is not JSON."""
    try:
        return loads_strict(form.rule.encode())
    except MalformedJSON:
        return {}
