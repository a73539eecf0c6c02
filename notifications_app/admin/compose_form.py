"""The form that composes a notification, and the send that it describes.

The API's serializer validates it (notifications_app/send_schema.py). This module validates only
what the API does not have: a local time, and a time to live in units.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime
from itertools import chain
from typing import Any, Final, Self
from zoneinfo import ZoneInfo

from django.http import QueryDict
from rest_framework.exceptions import ValidationError

from channels_app.models import Channel
from notifications_app.content import CONTENT_FIELDS, Content, SendRequest
from notifications_app.models import Notification
from notifications_app.send_schema import DEFAULT_TTL, read_send
from pushsvc.common.errors import BadRequest, Fault, Invalid
from pushsvc.common.http.drf import faults_of
from pushsvc.common.http.strict_json import check_text
from pushsvc.common.timestamps import format_timestamp

TTL_UNITS: Final[Mapping[str, int]] = {"days": 86_400, "hours": 3_600, "minutes": 60, "seconds": 1}
NOW_OR_NEVER: Final = "none"
_TEXTS: Final = tuple(n for n in CONTENT_FIELDS if n not in {"data", "ttl", "urgency"})


@dataclass(frozen=True, slots=True)
class Row:
    """One name and value of `data`."""

    name: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ComposeForm:
    """The fields as text, so that a form with faults is shown again as it was filled in.

    `local_time` is a local time in `time_zone`. `when` is `now` or `later`.
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
        """A form for every platform of the channel."""
        return cls(platforms=[name for name, enabled in channel.platforms.items() if enabled])

    @classmethod
    def posted(cls, post: QueryDict) -> Self:
        """Browsers send line ends as CR LF (WHATWG, form submission); they count as one."""
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
        """A copy of an earlier notification, without its time."""
        unit = next((name for name, n in TTL_UNITS.items() if notification.ttl % n == 0), "seconds")
        at_once = notification.ttl == 0
        return cls(
            **{name: getattr(notification, name) for name in _TEXTS},
            urgency=notification.urgency,
            ttl_number="" if at_once else str(notification.ttl // TTL_UNITS[unit]),
            ttl_unit=NOW_OR_NEVER if at_once else unit,
            segment_id=str(notification.segment_id or ""),
            platforms=list(notification.target_platforms),
            data=[Row(*pair) for pair in notification.ordered_data.items()],
        )

    @classmethod
    def kept(cls, stored: Mapping[str, Any]) -> Self:
        """From `stored`, which an earlier version of the console may have written."""
        known = {each.name for each in fields(cls)} - {"data"}
        texts = {name: value for name, value in stored.items() if name in known}
        return cls(**texts, data=[Row(**row) for row in stored.get("data", ())])

    def stored(self) -> dict[str, Any]:
        """For a draft. Raises BadRequest for text that the database cannot hold."""
        check_text("".join(chain.from_iterable(self.inputs())))
        return asdict(self)

    def inputs(self) -> list[tuple[str, str]]:
        """Names and values of hidden inputs that post the form again."""
        texts = [each.name for each in fields(self) if each.name not in {"platforms", "data"}]
        return [
            *((name, getattr(self, name)) for name in texts),
            *(("platforms", platform) for platform in self.platforms),
            *(pair for row in self.data for pair in _row_inputs(row)),
        ]


def read_form(form: ComposeForm) -> tuple[SendRequest, dict[str, Any]]:
    """The send, and the body of the API's request for the same send.

    Raises Invalid with every fault, in the API's words and with its paths.
    """
    faults: list[Fault] = []
    body = _content(form, faults) | {"target_platforms": list(form.platforms)}
    body |= _audience_and_time(form, faults)
    return _validated(body, faults), body


def read_content(form: ComposeForm, *, platform: str) -> Content:
    """The content alone, for a test on this platform. Raises Invalid, as `read_form`."""
    faults: list[Fault] = []
    body = _content(form, faults) | {"target_platforms": [platform]}
    return _validated(body, faults).content


def moment_of(form: ComposeForm) -> datetime | None:
    """When to send it, in UTC; None means at once. Raises Invalid."""
    faults: list[Fault] = []
    moment = _moment(form, faults) if form.when == "later" else None
    if faults:
        raise Invalid(faults)
    return moment


def _row_inputs(row: Row) -> tuple[tuple[str, str], tuple[str, str]]:
    return ("data_name", row.name), ("data_value", row.value)


def _validated(body: dict[str, Any], faults: list[Fault]) -> SendRequest:
    """Raises Invalid with `faults` and with the serializer's."""
    try:
        check_text("".join(_texts(body)))
        request, _ = read_send(body)
    except BadRequest as error:  # text that the API's JSON cannot hold either
        raise Invalid([*faults, Fault("", error.code, error.detail)]) from error
    except ValidationError as error:
        raise Invalid([*faults, *faults_of(error)]) from error
    if faults:
        raise Invalid(faults)
    return request


def _texts(body: dict[str, Any]) -> Iterator[str]:
    yield from (value for value in body.values() if isinstance(value, str))
    yield from chain.from_iterable(body["data"].items())


def _content(form: ComposeForm, faults: list[Fault]) -> dict[str, Any]:
    """Empty texts are left out, except for the body, which is required."""
    given = {name: getattr(form, name) for name in _TEXTS}
    texts = {"body": form.body, "urgency": form.urgency} | {n: v for n, v in given.items() if v}
    return texts | {"ttl": _ttl(form, faults), "data": _data(form, faults)}


def _audience_and_time(form: ComposeForm, faults: list[Fault]) -> dict[str, Any]:
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
            what = "occurs twice" if row.name else "must not be empty"
            faults.append(Fault("data", BadRequest.code, f"The name “{row.name[:50]}” {what}."))
        data[row.name] = row.value
    return data


def _moment(form: ComposeForm, faults: list[Fault]) -> datetime | None:
    """A local time that occurs twice means the first of the two."""
    try:
        zone = ZoneInfo(form.time_zone)
        local = _without_offset(form.local_time).replace(tzinfo=zone)
        moment = local.astimezone(UTC)
    except (ValueError, OverflowError, OSError, LookupError):
        faults.append(_no_moment("Choose a day and a time."))
        return None
    if moment.astimezone(zone).replace(tzinfo=None) != local.replace(tzinfo=None):
        skipped = f"This time does not exist in {form.time_zone}: clocks are put forward that day."
        faults.append(_no_moment(skipped))
        return None
    return moment


def _without_offset(text: str) -> datetime:
    """Raises ValueError, also for a time with an offset."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is not None:
        raise ValueError(text)
    return moment


def _no_moment(detail: str) -> Fault:
    return Fault("scheduled_at", "not_a_timestamp", detail)
