"""What was filled in to compose a notification, and the send that it stands for.

The API's own rules judge it (notifications_app/send_schema.py). This module judges only what JSON
lacks: a local time, and a time to live in units.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from typing import Any, Final, Self
from zoneinfo import ZoneInfo

from django.http import QueryDict
from rest_framework.exceptions import ValidationError

from channels_app.models import Channel
from notifications_app.models import Notification
from notifications_app.send_schema import DEFAULT_TTL, SendInput
from notifications_app.services import Draft
from pushsvc.common.errors import BadRequest, Fault, Invalid
from pushsvc.common.http.drf import as_pushsvc_error
from pushsvc.common.http.strict_json import loads_strict
from pushsvc.common.timestamps import format_timestamp

TTL_UNITS: Final[Mapping[str, int]] = {"days": 86_400, "hours": 3_600, "minutes": 60, "seconds": 1}
NOW_OR_NEVER: Final = "none"
_TEXTS: Final = ("title", "body", "url", "icon", "image", "topic")


@dataclass(frozen=True, slots=True)
class Row:
    """One of the `data` that devices are handed."""

    name: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ComposeForm:
    """The fields as text, as they are shown again when something is wrong with them.

    `local_time` is what a clock shows in `time_zone`; `when` is `now` or `later`.
    """

    title: str = ""
    body: str = ""
    url: str = ""
    icon: str = ""
    image: str = ""
    topic: str = ""
    urgency: str = "normal"
    ttl_number: str = "3"
    ttl_unit: str = "days"
    segment_id: str = ""
    when: str = "now"
    local_time: str = ""
    time_zone: str = "UTC"
    platforms: Sequence[str] = ()
    data: Sequence[Row] = field(default=())

    @classmethod
    def empty(cls, channel: Channel) -> Self:
        """For every platform of the channel."""
        return cls(platforms=[name for name, enabled in channel.platforms.items() if enabled])

    @classmethod
    def posted(cls, post: QueryDict) -> Self:
        """Browsers send line ends as CR LF (WHATWG, form submission): they count as one."""
        texts = [each.name for each in fields(cls) if each.name not in {"platforms", "data"}]
        given = {name: str(post[name]).replace("\r\n", "\n") for name in texts if name in post}
        rows = zip(post.getlist("data_name"), post.getlist("data_value"), strict=False)
        return cls(
            **given,
            platforms=post.getlist("platforms"),
            data=[Row(name, value) for name, value in rows if name or value],
        )

    @classmethod
    def like(cls, notification: Notification) -> Self:
        """An earlier one once more, but not its time."""
        unit = next((name for name, n in TTL_UNITS.items() if notification.ttl % n == 0), "seconds")
        at_once = notification.ttl == 0
        return cls(
            **{name: getattr(notification, name) for name in _TEXTS},
            urgency=notification.urgency,
            ttl_number="" if at_once else str(notification.ttl // TTL_UNITS[unit]),
            ttl_unit=NOW_OR_NEVER if at_once else unit,
            segment_id=str(notification.segment_id or ""),
            platforms=list(notification.target_platforms),
            data=[Row(*pair) for pair in notification.data.items()],
        )

    def inputs(self) -> list[tuple[str, str]]:
        """Names and values, to be posted once more."""
        texts = [each.name for each in fields(self) if each.name not in {"platforms", "data"}]
        return [
            *((name, getattr(self, name)) for name in texts),
            *(("platforms", platform) for platform in self.platforms),
            *(pair for row in self.data for pair in _row_inputs(row)),
        ]


def read_form(form: ComposeForm, *, platform: str = "") -> tuple[Draft, dict[str, Any]]:
    """The draft, and the body with which the API would be asked for the same.

    With a `platform` it is for that one at once: who else it would have reached, and when, is not
    looked at. Raises Invalid with every fault, in the API's words and by its paths.
    """
    faults: list[Fault] = []
    body = _texts(form) | {"ttl": _ttl(form, faults), "data": _data(form, faults)}
    if platform:
        body["target_platforms"] = [platform]
    else:
        body |= {"target_platforms": list(form.platforms), **_to_whom_and_when(form, faults)}
    given = _judged(body, faults)
    if faults:
        raise Invalid(faults)
    given.pop("dry_run")
    return Draft(**given), body


def moment_of(form: ComposeForm) -> datetime | None:
    """When it is to go out, in UTC; None for at once. Raises Invalid."""
    faults: list[Fault] = []
    moment = _moment(form, faults) if form.when == "later" else None
    if faults:
        raise Invalid(faults)
    return moment


def _row_inputs(row: Row) -> tuple[tuple[str, str], tuple[str, str]]:
    return ("data_name", row.name), ("data_value", row.value)


def _judged(body: dict[str, Any], faults: list[Fault]) -> dict[str, Any]:
    try:
        return SendInput.checked(loads_strict(json.dumps(body).encode()))
    except BadRequest as error:  # what no JSON of the API can hold, such as NUL
        faults.append(Fault("", error.code, error.detail))
    except ValidationError as error:
        found = as_pushsvc_error(error)
        faults.extend(found.faults if isinstance(found, Invalid) else [])
    return {}


def _texts(form: ComposeForm) -> dict[str, Any]:
    """What was left empty is left out, save for the body, which has to be there."""
    given = {name: getattr(form, name) for name in _TEXTS}
    return {"body": form.body, "urgency": form.urgency} | {n: v for n, v in given.items() if v}


def _to_whom_and_when(form: ComposeForm, faults: list[Fault]) -> dict[str, Any]:
    more: dict[str, Any] = {"segment_id": form.segment_id} if form.segment_id else {}
    moment = _moment(form, faults) if form.when == "later" else None
    return more | ({"scheduled_at": format_timestamp(moment)} if moment else {})


def _ttl(form: ComposeForm, faults: list[Fault]) -> int:
    if form.ttl_unit == NOW_OR_NEVER:
        return 0
    number = form.ttl_number.strip()
    if form.ttl_unit in TTL_UNITS and number.isascii() and number.isdigit() and len(number) < 10:
        return int(number) * TTL_UNITS[form.ttl_unit]
    faults.append(Fault("ttl", "not_a_number", "Must be a whole number of a unit of time."))
    return DEFAULT_TTL


def _data(form: ComposeForm, faults: list[Fault]) -> dict[str, str]:
    data: dict[str, str] = {}
    for row in form.data:
        if row.name in data or not row.name:
            what = "is there twice" if row.name else "must not be empty"
            faults.append(Fault("data", BadRequest.code, f"The name “{row.name[:50]}” {what}."))
        data[row.name] = row.value
    return data


def _moment(form: ComposeForm, faults: list[Fault]) -> datetime | None:
    """A time that the clock shows twice is the first of the two."""
    try:
        zone = ZoneInfo(form.time_zone)
        local = _without_offset(form.local_time).replace(tzinfo=zone)
        moment = local.astimezone(UTC)
    except (ValueError, OverflowError, OSError, LookupError):
        faults.append(_no_moment("Choose a day and a time."))
        return None
    if moment.astimezone(zone).replace(tzinfo=None) != local.replace(tzinfo=None):
        skipped = f"Clocks in {form.time_zone} skip this time: they are put forward that day."
        faults.append(_no_moment(skipped))
        return None
    return moment


def _without_offset(text: str) -> datetime:
    """Raises ValueError, also for a time that says itself how far from UTC it is."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is not None:
        raise ValueError(text)
    return moment


def _no_moment(detail: str) -> Fault:
    return Fault("scheduled_at", "not_a_timestamp", detail)
