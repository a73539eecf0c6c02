"""The form that composes a notification, and the send that it describes.

The API's serializer validates it (notifications_app/sends/schema.py). This module validates only
what the API does not have: local times, and a time to live in units.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import UTC, datetime
from itertools import chain
from json import dumps
from typing import Any, Final, Self, TypeVar
from zoneinfo import ZoneInfo

from django.http import QueryDict
from django.utils.translation import gettext
from django.utils.translation import gettext_noop as noop
from rest_framework.exceptions import ValidationError

from channels_app.models import Channel
from notifications_app.admin.compose import extras as compose_extras
from notifications_app.admin.compose.audience import audience_body, audience_texts
from notifications_app.content.fields import DEFAULT_TTL
from notifications_app.content.values import (
    EMPTY,
    LEADER,
    RESPECT,
    TEST_METRICS,
    Content,
    SendRequest,
)
from notifications_app.models import Notification
from notifications_app.sends.schema import read_send
from notifications_app.timing import CHANNEL
from pushsvc.common.console.zones import SkippedTime, moment_on_clock
from pushsvc.common.errors import BadRequest, FieldError, Invalid
from pushsvc.common.http.drf import errors_of
from pushsvc.common.http.strict_json import MalformedJSON, check_text, loads_strict
from pushsvc.common.languages import canonical_language
from pushsvc.common.quantities import duration
from pushsvc.common.timestamps import format_timestamp

T = TypeVar("T")

TTL_UNITS: Final[Mapping[str, int]] = {
    noop("days"): 86_400,
    noop("hours"): 3_600,
    noop("minutes"): 60,
    noop("seconds"): 1,
}
NOW_OR_NEVER: Final = "none"
_OWN: Final = "own"
_VARIANT: Final = "variant"  # of the buttons that add or remove one
_NOT_TEXTS: Final = frozenset({"platforms", "data", "extras"})
TEXTS: Final = ("title", "body", "url", "icon", "image")


@dataclass(frozen=True, slots=True)
class DataRow:
    """One name and value of `data`."""

    name: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ComposeForm:
    """The fields as text, so that a form with errors can be shown again as it was filled in.

    `local_time` and `expires_local` are local times in `time_zone`. `when` is `now` or `later`.
    `personalize` and `is_zoned` are "on" or "". `is_zoned`: `local_time` is that of each recipient.
    `quiet`: `channel`, `ignore` or `own`, with `quiet_from` and `quiet_to`. `cap`: as in a send.
    `test_share`: "" if its variants are not tested.
    `vars` is JSON, which only a copy or an edit has.
    """

    title: str = ""
    body: str = ""
    url: str = ""
    icon: str = ""
    image: str = ""
    urgency: str = "normal"
    ttl_number: str = "3"
    ttl_unit: str = "days"
    audience: str = ""
    segment_id: str = ""
    category: str = ""
    tag: str = ""
    personalize: str = ""
    on_missing: str = EMPTY
    vars: str = ""
    rule: str = ""
    ids: str = ""
    replaces: str = ""
    when: str = "now"
    local_time: str = ""
    is_zoned: str = ""
    quiet: str = CHANNEL
    quiet_from: str = ""
    quiet_to: str = ""
    expires_local: str = ""
    rate_per_minute: str = ""
    cap: str = RESPECT
    test_share: str = ""
    test_minutes: str = "120"
    test_metric: str = TEST_METRICS[0]
    test_inconclusive: str = LEADER
    send_name: str = ""  # not `name`, which the form of a template has
    labels: str = ""
    time_zone: str = "UTC"
    platforms: Sequence[str] = ()
    data: Sequence[DataRow] = field(default=())
    extras: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def empty(cls, channel: Channel) -> Self:
        """A form for every platform of the channel."""
        return cls().for_all(channel)

    def for_all(self, channel: Channel) -> Self:
        """A copy of the form for every platform of the channel."""
        names = [name for name, enabled in channel.platforms.items() if enabled]
        return replace(self, platforms=names)

    @classmethod
    def posted(cls, post: QueryDict) -> Self:
        texts = [each.name for each in fields(cls) if each.name not in _NOT_TEXTS]
        given = {name: posted_text(post, name) for name in texts if name in post}
        rows = zip(post.getlist("data_name"), post.getlist("data_value"), strict=False)
        form = cls(
            **given,
            platforms=post.getlist("platforms"),
            data=[DataRow(name, value) for name, value in rows if name or value],
            extras=_posted_extras(post),
        )
        is_removed = post.get(_VARIANT, "").startswith("remove.")
        is_single = is_removed and len(compose_extras.variant_numbers(form.extras)) == 1
        return form.without_variants() if is_single else form

    def without_variants(self) -> Self:
        """A copy with the content of the first variant as the only one, and without a test."""
        extras, own = compose_extras.single(self.extras)
        texts: dict[str, Any] = {name: own.pop(name) for name in TEXTS if name in own}
        return replace(self, **texts, test_share="", extras=extras | own)

    @classmethod
    def like(cls, notification: Notification) -> Self:
        """A copy of an earlier notification, without its time."""
        return cls.saying(
            notification.content,
            category=notification.category,
            **audience_texts(notification),
            platforms=list(notification.target_platforms),
            rate_per_minute=_number_text(notification.rate_per_minute),
            cap=notification.cap,
            send_name=notification.name,
            labels=", ".join(notification.labels or []),
            **quiet_texts(notification.timed.chosen if notification.timed else CHANNEL),
            **{f"test_{name}": str(value) for name, value in (notification.test or {}).items()},
        )

    @classmethod
    def saying(cls, content: Content, **more: Any) -> Self:
        """A form with this content. `more`: other fields."""
        unit = next((name for name, n in TTL_UNITS.items() if content.ttl % n == 0), "seconds")
        at_once = content.ttl == 0
        return cls(
            **{name: getattr(content, name) for name in TEXTS},
            urgency=content.urgency,
            ttl_number="" if at_once else str(content.ttl // TTL_UNITS[unit]),
            ttl_unit=NOW_OR_NEVER if at_once else unit,
            data=[DataRow(*pair) for pair in content.data.items()],
            extras=compose_extras.flat(content),
            **_personal_texts(content),
            **more,
        )

    @classmethod
    def of(cls, notification: Notification) -> Self:
        """A form to edit the notification, with its times in UTC."""
        is_pending, timing = notification.started_at is None, notification.timed
        is_zoned = timing is not None and timing.local_at is not None
        local_time = timing.first_local if timing and is_zoned else _utc(notification.scheduled_at)
        return replace(
            cls.like(notification),
            when="later" if is_pending else "now",
            local_time=local_time if is_pending else "",
            is_zoned="on" if is_pending and is_zoned else "",
            expires_local=_utc(notification.expires_at),
        )

    @classmethod
    def kept(cls, stored: Mapping[str, Any]) -> Self:
        """The form of a draft, which an earlier version of the console may have stored."""
        known = {each.name for each in fields(cls)} - {"data"}
        texts = {name: value for name, value in stored.items() if name in known}
        return cls(**texts, data=[DataRow(**row) for row in stored.get("data", ())])

    def stored(self) -> dict[str, Any]:
        """The form as JSON for a draft. Raises BadRequest for text that the database cannot
        store."""
        check_text("".join(chain.from_iterable(self.inputs())))
        return asdict(self)

    def inputs(self) -> list[tuple[str, str]]:
        """Names and values of hidden inputs that post the form again."""
        texts = [each.name for each in fields(self) if each.name not in _NOT_TEXTS]
        return [
            *((name, getattr(self, name)) for name in texts),
            *(("platforms", platform) for platform in self.platforms),
            *(pair for row in self.data for pair in _row_inputs(row)),
            *self.extras.items(),
        ]


def read_form(form: ComposeForm) -> tuple[SendRequest, dict[str, Any]]:
    """The send, and the body of an API request for the same send.

    Raises Invalid with every error, with the API's texts and paths.
    """
    errors: list[FieldError] = []
    body = _whole(form, errors)
    return validated(body, errors, read_send), body


def read_changes(form: ComposeForm, notification: Notification) -> dict[str, Any]:
    """The form's changes to the notification, as the body of an API edit. For a notification that
    is being sent, only fields that can still be changed.

    The form has times to the minute, so a time that is not changed keeps its seconds. Raises
    Invalid with the errors that only the form can have.
    """
    read = _whole if notification.started_at is None else _content_and_end
    errors: list[FieldError] = []
    before, after = read(ComposeForm.of(notification), []), read(form, errors)
    _check_storable(after, errors)
    if errors:
        raise Invalid(errors)
    names = sorted(before.keys() | after.keys())
    # As JSON, because the order of the names in `data` counts.
    return {n: after.get(n) for n in names if dumps(after.get(n)) != dumps(before.get(n))}


def read_content(form: ComposeForm, *, platform: str) -> Content:
    """Only the content, for a test on this platform. Raises Invalid, as `read_form`."""
    errors: list[FieldError] = []
    body = content_body(form, errors) | {"target_platforms": [platform]}
    return validated(body, errors, read_send).content


def moment_of(form: ComposeForm) -> datetime | None:
    """When to send it, in UTC; None means immediately, or by local time. Raises Invalid."""
    errors: list[FieldError] = []
    moment = None if form.is_zoned else _start(form, errors)
    if errors:
        raise Invalid(errors)
    return moment


def _posted_extras(post: QueryDict) -> dict[str, str]:
    """The posted fields of compose_extras. Adds an empty title for a language to be added."""
    given = {name: posted_text(post, name) for name in post if compose_extras.is_extra(name)}
    added = added_language(post)
    more = {f"translations.{added}.title": ""} if added else {}
    return compose_extras.with_variants(more | given, post.get(_VARIANT, ""))


def is_edited(post: QueryDict) -> bool:
    """Whether the form is to be shown again, with a language or a variant added or removed."""
    return post.get("step") == "edit" or _VARIANT in post


def ttl_words(ttl: int) -> str:
    return duration(ttl) if ttl else gettext("deliver immediately or drop")


def added_language(post: QueryDict) -> str:
    """The tag of the language to be added; "" for none, and for a text that is no language."""
    return canonical_language(post.get("add_language", "").strip()) or ""


def posted_text(post: QueryDict, name: str) -> str:
    """A posted text. Browsers send line ends as CR LF (WHATWG, form submission); they become LF."""
    return str(post[name]).replace("\r\n", "\n")


def _row_inputs(row: DataRow) -> tuple[tuple[str, str], tuple[str, str]]:
    return ("data_name", row.name), ("data_value", row.value)


def validated(body: dict[str, Any], errors: list[FieldError], read: Callable[[object], T]) -> T:
    """What `read` returns of the body. Raises Invalid with `errors` and those that `read` finds."""
    _check_storable(body, errors)
    try:
        valid = read(body)
    except ValidationError as error:
        raise Invalid([*errors, *errors_of(error)]) from error
    if errors:
        raise Invalid(errors)
    return valid


def _check_storable(body: dict[str, Any], errors: list[FieldError]) -> None:
    """Raises Invalid, with `errors`, for text that the API's JSON cannot contain either."""
    try:
        check_text("".join(_texts(body)))
    except BadRequest as error:
        raise Invalid([*errors, FieldError("", error.code, error.detail)]) from error


def _texts(body: Any) -> Iterator[str]:
    match body:
        case str():
            yield body
        case dict():
            yield from chain(body, *map(_texts, body.values()))
        case list():
            yield from chain.from_iterable(map(_texts, body))


def content_body(form: ComposeForm, errors: list[FieldError]) -> dict[str, Any]:
    """The content in the API's body. Omits empty texts, except the body, which is required."""
    given = {name: getattr(form, name) for name in TEXTS}
    texts = {"body": form.body, "urgency": form.urgency} | {n: v for n, v in given.items() if v}
    own = {"ttl": _ttl(form, errors), "data": _data(form, errors)}
    return texts | own | compose_extras.nested(form.extras) | _personal(form)


def parsed_vars(form: ComposeForm) -> object:
    """The form's `vars`. What is not JSON stays text, so that the serializer refuses it."""
    try:
        return loads_strict(form.vars.encode()) if form.vars else {}
    except MalformedJSON:
        return form.vars


def _personal(form: ComposeForm) -> dict[str, Any]:
    if not form.personalize:
        return {}
    given = {"vars": parsed_vars(form)} if form.vars else {}
    return {"personalize": True, "on_missing": form.on_missing} | given


def _personal_texts(content: Content) -> dict[str, str]:
    """The fields of a form for the same content."""
    sent_vars = dumps(content.vars) if content.vars else ""
    is_personal = "on" if content.personalize else ""
    return {"personalize": is_personal, "on_missing": content.on_missing, "vars": sent_vars}


def _content_and_end(form: ComposeForm, errors: list[FieldError]) -> dict[str, Any]:
    end = _moment(form, form.expires_local, "expires_at", errors) if form.expires_local else None
    own = {"expires_at": format_timestamp(end)} if end else {}
    return content_body(form, errors) | own | rate_body(form) | staff_body(form)


def staff_body(form: ComposeForm) -> dict[str, Any]:
    labels = [each.strip() for each in form.labels.split(",") if each.strip()]
    given = {"name": form.send_name.strip(), "labels": labels}
    return {name: value for name, value in given.items() if value}


def rate_body(form: ComposeForm) -> dict[str, Any]:
    """The send's rate in the API's body. What is not a number stays text, so that the serializer
    refuses it."""
    given = form.rate_per_minute.strip()
    return {"rate_per_minute": _number(given)} if given else {}


def test_body(form: ComposeForm) -> dict[str, Any]:
    """The test of the variants in the API's body, as `rate_body`."""
    if not form.test_share.strip():
        return {}
    own = {
        "share": _number(form.test_share.strip()),
        "minutes": _number(form.test_minutes.strip()),
        "metric": form.test_metric,
        "inconclusive": form.test_inconclusive,
    }
    return {"test": own}


def _number(given: str) -> int | str:
    """What is not a number stays text."""
    is_number = given.isascii() and given.isdigit() and len(given) < 10
    return int(given) if is_number else given


def _number_text(number: int | None) -> str:
    return "" if number is None else str(number)


def _whole(form: ComposeForm, errors: list[FieldError]) -> dict[str, Any]:
    body = _content_and_end(form, errors) | {"target_platforms": list(form.platforms)}
    body |= audience_body(form, errors)
    body |= {"category": form.category} if form.category else {}
    body |= quiet_body(form) | cap_body(form) | test_body(form)
    if form.when == "later" and form.is_zoned:
        return body | {"local_at": form.local_time}
    start = _start(form, errors)
    return body | ({"scheduled_at": format_timestamp(start)} if start else {})


def quiet_body(form: ComposeForm) -> dict[str, Any]:
    if form.quiet == _OWN:
        return {"quiet_hours": {"from": form.quiet_from, "to": form.quiet_to}}
    return {} if form.quiet == CHANNEL else {"quiet_hours": form.quiet}


def cap_body(form: ComposeForm) -> dict[str, Any]:
    return {} if form.cap == RESPECT else {"cap": form.cap}


def quiet_texts(chosen: str | Mapping[str, str]) -> dict[str, Any]:
    """The fields of a form for the `quiet_hours` of a send."""
    if isinstance(chosen, str):
        return {"quiet": chosen}
    return {"quiet": _OWN, "quiet_from": chosen["from"], "quiet_to": chosen["to"]}


def _ttl(form: ComposeForm, errors: list[FieldError]) -> int:
    if form.ttl_unit == NOW_OR_NEVER:
        return 0
    number = form.ttl_number.strip()
    if form.ttl_unit in TTL_UNITS and number.isascii() and number.isdigit() and len(number) < 10:
        return int(number) * TTL_UNITS[form.ttl_unit]
    errors.append(
        FieldError("ttl", "not_a_number", gettext("Must be a whole number of a unit of time."))
    )
    return DEFAULT_TTL


def _data(form: ComposeForm, errors: list[FieldError]) -> dict[str, str]:
    data: dict[str, str] = {}
    for row in form.data:
        if row.name in data or not row.name:
            what = gettext("occurs twice") if row.name else gettext("must not be empty")
            errors.append(
                FieldError(
                    "data",
                    BadRequest.code,
                    gettext("The name “%(value)s” %(what)s.")
                    % {"value": row.name[:50], "what": what},
                )
            )
        data[row.name] = row.value
    return data


def _start(form: ComposeForm, errors: list[FieldError]) -> datetime | None:
    return _moment(form, form.local_time, "scheduled_at", errors) if form.when == "later" else None


def _moment(form: ComposeForm, text: str, attr: str, errors: list[FieldError]) -> datetime | None:
    """Parses a local time. A time that occurs twice means the first of the two."""
    try:
        return moment_on_clock(_without_offset(text), ZoneInfo(form.time_zone))
    except SkippedTime as error:
        words = str(error)
    except (ValueError, OverflowError, OSError, LookupError):
        words = gettext("Choose a day and a time.")
    errors.append(FieldError(attr, "not_a_timestamp", words))
    return None


def _without_offset(text: str) -> datetime:
    """Parses a time. Raises ValueError, also for a time with an offset."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is not None:
        raise ValueError(text)
    return moment


def _utc(moment: datetime | None) -> str:
    """The time in UTC, in the format of an input of type `datetime-local`."""
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M}" if moment else ""
