"""The form of a schedule: the content and the audience of the compose form, and when it repeats."""

from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Final, Self

from django.http import QueryDict
from django.utils.translation import gettext

from channels_app.models import Channel
from notifications_app.admin.compose.audience import audience_body
from notifications_app.admin.compose.form import (
    ComposeForm,
    cap_body,
    content_body,
    quiet_body,
    quiet_texts,
    rate_body,
    staff_body,
    test_body,
    validated,
)
from notifications_app.content.values import SendRequest
from notifications_app.models import MAX_ONCE_DAYS, Notification, Schedule
from notifications_app.sends.recurrence_schema import RecurrenceInput
from notifications_app.sends.schema import read_scheduled
from notifications_app.sends.stored_sends import loaded
from pushsvc.common.errors import FieldError, Invalid, within
from pushsvc.common.texts import later

RECURRENCE: Final = "recurrence"
WORDS: Final[Mapping[tuple[str, str], str]] = {
    ("at", "empty"): later("Enter at least one time."),
    ("rule", "never_happens"): later("The rule selects no day within five years."),
    ("starts_on", "not_a_date"): later("Choose a day."),
    ("ends_on", "not_a_date"): later("Choose a day."),
    ("ends_on", "out_of_range"): later("Choose a day that is not before the first one."),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RecurrenceForm:
    """When a schedule sends, as text. `repeat_at`: times, separated by commas. `repeat_once`: its
    `once_per_days`."""

    repeat_rule: str = "FREQ=WEEKLY;BYDAY=MO"
    repeat_at: str = "09:00"
    repeat_zone: str = "UTC"
    repeat_from: str = ""
    repeat_until: str = ""
    repeat_count: str = ""
    repeat_once: str = ""

    @classmethod
    def posted(cls, post: QueryDict) -> Self:
        return cls(**{each.name: post.get(each.name, "").strip() for each in fields(cls)})

    @classmethod
    def of(cls, schedule: Schedule) -> Self:
        stored = schedule.recurrence
        return cls(
            repeat_rule=stored["rule"],
            repeat_at=", ".join(stored["at"]),
            repeat_zone=stored["timezone"],
            repeat_from=stored["starts_on"],
            repeat_until=stored["ends_on"] or "",
            repeat_count=str(stored["count"] or ""),
            repeat_once=str(schedule.once_per_days or ""),
        )


def read_recurrence(form: RecurrenceForm) -> dict[str, Any]:
    """The recurrence for the service. Raises Invalid, with paths that begin with `recurrence`."""
    times = form.repeat_at.replace(",", " ").split()
    count = form.repeat_count
    body = {
        "rule": form.repeat_rule,
        "at": times,
        "timezone": form.repeat_zone,
        "starts_on": form.repeat_from or None,
        "ends_on": form.repeat_until or None,
        "count": int(count) if count.isascii() and count.isdigit() and len(count) < 9 else count,
    }
    if not count:
        del body["count"]
    with within(RECURRENCE):
        return validated(body, [], RecurrenceInput.checked)


def read_once(form: RecurrenceForm) -> int | None:
    """`once_per_days` for the service. Raises Invalid."""
    given = form.repeat_once
    if not given:
        return None
    is_number = given.isascii() and given.isdigit() and len(given) < 9
    if not is_number or not 1 <= int(given) <= MAX_ONCE_DAYS:
        detail = gettext("Enter 1 to %(max_once_days)s days, or nothing.") % {
            "max_once_days": MAX_ONCE_DAYS
        }
        raise Invalid([FieldError(f"{RECURRENCE}.once", "out_of_range", detail)])
    return int(given)


def read_send_of(
    form: ComposeForm, read: Callable[[object], SendRequest] = read_scheduled
) -> SendRequest:
    """The send. Raises Invalid, with paths that begin with `notification`."""
    errors: list[FieldError] = []
    body = content_body(form, errors) | {"target_platforms": list(form.platforms)}
    body |= audience_body(form, errors) | rate_body(form) | staff_body(form)
    body |= quiet_body(form) | cap_body(form) | test_body(form)
    body |= {"category": form.category} if form.category else {}
    with within("notification"):
        return validated(body, errors, read)


def send_form(channel: Channel, send: dict[str, Any]) -> ComposeForm:
    """The form with what a schedule or an automation sends."""
    request = loaded(send)
    platforms = [each.value for each in request.target_platforms]
    form = ComposeForm.like(
        Notification(
            channel=channel,
            **Notification.values_of(request.content),
            rule=request.rule,
            segment_id=request.segment_id,
            category=request.category,
            target_platforms=platforms,
            rate_per_minute=request.rate_per_minute,
            name=request.name,
            labels=list(request.labels),
            test=request.test,
        )
    )
    form = replace(form, cap=request.cap, **quiet_texts(request.quiet_hours))
    return form if platforms else form.for_all(channel)


def split_errors(
    errors: Iterable[FieldError], own: Container[str], words: Mapping[tuple[str, str], str]
) -> tuple[list[FieldError], dict[str, list[str]]]:
    """The errors of the send, with paths as in a send, and the others by field: those whose path
    begins with a name in `own`. `words`: by field and code, instead of the detail."""
    of_send: list[FieldError] = []
    found: dict[str, list[str]] = {}
    for error in errors:
        head, _, attr = error.attr.partition(".")
        if head in own:
            name = attr.partition(".")[0] or head
            found.setdefault(name, []).append(words.get((name, error.code), error.detail))
        else:
            of_send.append(replace(error, attr=attr) if head == "notification" else error)
    return of_send, found
