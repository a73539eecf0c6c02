"""When an automation sends: as a form, and in words."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Final, Self

from django.http import QueryDict
from django.utils.translation import gettext, ngettext

from notifications_app.admin.compose.form import validated
from notifications_app.models import (
    MAX_DELAY_MINUTES,
    MAX_ONCE_DAYS,
    Automation,
    AutomationEvent,
    Recipient,
)
from notifications_app.sends.automation_schema import TriggerInput
from notifications_app.sends.automations import MAX_HOURS, about_of
from pushsvc.common.errors import FieldError, Invalid, within
from pushsvc.common.quantities import duration
from pushsvc.common.texts import later

UNITS: Final[Mapping[str, int]] = {"minutes": 1, "hours": 60, "days": 24 * 60}
EVENTS: Final = (
    (AutomationEvent.CREATED.value, later("A subscription becomes active")),
    (AutomationEvent.TAGGED.value, later("A device gets a tag")),
    (AutomationEvent.CLICKED.value, later("A notification is clicked")),
    (AutomationEvent.UNCLICKED.value, later("A notification is not clicked in time")),
)
OWN_ATTRS: Final = frozenset({"trigger", "delay_minutes", "recipient", "once_per_days"})
_TO_HOURS: Final = later("Enter 1 to %(most)s hours.", most=MAX_HOURS)
WORDS: Final[Mapping[tuple[str, str], str]] = {
    ("event", "not_a_choice"): later("Choose what must happen."),
    ("tag", "required"): later("Enter a tag."),
    **{("hours", code): _TO_HOURS for code in ("required", "not_a_number", "out_of_range")},
}
# The fields of the form that belong to each event, by the field of the trigger.
_ABOUT: Final[Mapping[str, Mapping[str, str]]] = {
    AutomationEvent.TAGGED: {"tag": "event_tag"},
    AutomationEvent.CLICKED: {"name": "about_name", "label": "about_label", "action": "action"},
    AutomationEvent.UNCLICKED: {"name": "about_name", "label": "about_label", "hours": "hours"},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowForm:
    """What an automation follows, and how, as text. `about_name`, `about_label`: of the
    notifications that it follows. `again`: its `once_per_days`."""

    event: str = AutomationEvent.CREATED.value
    event_tag: str = ""
    about_name: str = ""
    about_label: str = ""
    action: str = ""
    hours: str = "24"
    delay: str = "10"
    delay_unit: str = "minutes"
    recipient: str = Recipient.DEVICE.value
    again: str = ""

    @classmethod
    def posted(cls, post: QueryDict) -> Self:
        return cls(**{each.name: post.get(each.name, "").strip() for each in fields(cls)})

    @classmethod
    def of(cls, automation: Automation) -> Self:
        minutes, event = automation.delay_minutes, automation.event
        units = (name for name, n in reversed([*UNITS.items()]) if minutes and minutes % n == 0)
        unit = next(units, "minutes")
        about = {
            field: str(automation.about[name])
            for name, field in _ABOUT.get(event, {}).items()
            if name in automation.about
        }
        return cls(
            event=event,
            delay=str(minutes // UNITS[unit]),
            delay_unit=unit,
            recipient=automation.recipient,
            again=str(automation.once_per_days or ""),
            **about,
        )


def read_trigger(form: FollowForm) -> dict[str, Any]:
    """The trigger, without the fields of other events. Raises Invalid."""
    given = {name: getattr(form, field) for name, field in _ABOUT.get(form.event, {}).items()}
    body: dict[str, Any] = {"event": form.event}
    body |= {name: value for name, value in given.items() if value}
    if (number := _number(form.hours)) is not None and "hours" in body:
        body["hours"] = number
    with within("trigger"):
        trigger = validated(body, [], TriggerInput.checked)
    about_of(trigger)
    return trigger


def read_delay(form: FollowForm) -> int:
    """`delay_minutes` for the service. Raises Invalid."""
    number, unit = _number(form.delay), UNITS.get(form.delay_unit)
    if number is None or unit is None or number * unit > MAX_DELAY_MINUTES:
        detail = gettext("Enter 0 minutes to %(most)s days.") % {
            "most": MAX_DELAY_MINUTES // UNITS["days"]
        }
        raise Invalid([FieldError("delay_minutes", "out_of_range", detail)])
    return number * unit


def read_recipient(form: FollowForm) -> str:
    """Raises Invalid."""
    if form.recipient not in Recipient.values:
        raise Invalid([FieldError("recipient", "not_a_choice", gettext("Choose who gets it."))])
    return form.recipient


def read_again(form: FollowForm) -> int | None:
    """`once_per_days` for the service. Raises Invalid."""
    if not form.again:
        return None
    number = _number(form.again)
    if number is None or not 1 <= number <= MAX_ONCE_DAYS:
        detail = gettext("Enter 1 to %(max_once_days)s days, or nothing.") % {
            "max_once_days": MAX_ONCE_DAYS
        }
        raise Invalid([FieldError("once_per_days", "out_of_range", detail)])
    return number


def event_words(automation: Automation) -> tuple[str, list[str]]:
    """What it follows, and of which notifications."""
    about = automation.about
    match automation.event:
        case AutomationEvent.TAGGED:
            return gettext("A device gets the tag “%(tag)s”") % {"tag": about["tag"]}, []
        case AutomationEvent.CLICKED:
            words = gettext("A notification is clicked")
        case AutomationEvent.UNCLICKED:
            words = ngettext(
                "A notification is not clicked within %(hours)s hour",
                "A notification is not clicked within %(hours)s hours",
                about["hours"],
            ) % {"hours": about["hours"]}
        case _:
            return gettext("A subscription becomes active"), []
    only = {
        "name": gettext("Name: %(name)s"),
        "label": gettext("Label: %(label)s"),
        "action": gettext("Button: %(action)s"),
    }
    return words, [text % about for name, text in only.items() if name in about]


def delay_words(automation: Automation) -> str:
    minutes = automation.delay_minutes
    if not minutes:
        return gettext("at once")
    return gettext("after %(duration)s") % {"duration": duration(60 * minutes)}


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 9 else None
