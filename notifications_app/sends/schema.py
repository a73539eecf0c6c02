"""The input of a send. The API and the console read it with the same serializer."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from django.utils.translation import gettext
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.exceptions import ErrorDetail, ValidationError
from rest_framework.fields import empty
from typing_extensions import override

from notifications_app.content.values import (
    CAP_CHOICES,
    CONTENT,
    DEFAULTS,
    HOLD,
    LEADER,
    MAX_TARGETS,
    RESPECT,
    TEST_METRICS,
    Content,
    SendRequest,
)
from notifications_app.errors import NotCombinable
from notifications_app.models import (
    MAX_LABEL,
    MAX_NOTIFICATION_NAME,
    MOST_LABELS,
    Notification,
)
from notifications_app.sends.audience import (
    RuleField,
    TargetInput,
    pop_targets,
)
from notifications_app.sends.content_schema import DeclaredObject, check_action_titles
from notifications_app.sends.personal_schema import check_placeholders, check_shown
from notifications_app.timing import (
    CHANNEL,
    FIRST_YEAR,
    IGNORE,
    LAST_YEAR,
    is_local_at,
    is_time,
    year_of,
)
from pushsvc.common.http.fields import (
    Choice,
    ClockTime,
    Flag,
    Id,
    ListOf,
    ShownText,
    StrictSerializer,
    Text,
    Timestamp,
    WholeNumber,
    refuse,
    text_or_refuse,
)
from pushsvc.common.platforms import PLATFORM_VALUES, Platform
from pushsvc.common.texts import later
from subscriptions_app.models import MAX_CATEGORY_KEY
from subscriptions_app.people.fields import ExternalId

MAX_PLATFORMS: Final = 20  # in a request, with duplicates
ALL: Final = "all"
MAX_RATE: Final = 600_000  # recipients a minute
_UNUSED_VALUES: Final = later("Values need `personalize`.")


# A pattern, because generators for Go use the same names for the values of all enumerations.
@extend_schema_field({"type": "string", "pattern": f"^({'|'.join([*PLATFORM_VALUES, ALL])})$"})
class TargetPlatform(Choice):
    """A platform, or all that the channel has enabled."""


class Label(ShownText):
    """A word or a few, on one line, without commas and without spaces around it, so that a text can
    list several."""

    @override
    def to_internal_value(self, data: object) -> str:
        text = super().to_internal_value(data)
        if text != text.strip() or "," in text or not text.isprintable():
            refuse(
                "malformed", gettext("Must have no comma, no line break, and no space around it.")
            )
        return text


class ContentFields(DeclaredObject):
    """The content of a notification. Unknown fields are refused. "" in an optional text and an
    empty list of buttons are the same as none, because the details of a notification have them."""

    table = CONTENT
    defaults = DEFAULTS

    @override
    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if attrs["translations"] or attrs["variants"]:
            check_action_titles(attrs)
        return attrs


class LocalTime(Text):
    """The time of a clock, or that of a day, without an offset."""

    @override
    def to_internal_value(self, data: object) -> str:
        text = text_or_refuse(data)
        if not is_local_at(text):
            refuse("not_a_local_time", gettext("Must be HH:MM, or YYYY-MM-DDTHH:MM."))
        year = year_of(text)
        if year is not None and not FIRST_YEAR <= year <= LAST_YEAR:
            refuse(
                "out_of_range",
                gettext("Must be in the years %(first_year)s to %(last_year)s.")
                % {"first_year": FIRST_YEAR, "last_year": LAST_YEAR},
            )
        return text


class QuietTimes(StrictSerializer):
    """From `from` until `to` nobody is sent anything, by the clock where the device is."""

    to = ClockTime(help_text="When they end: `08:00`.")

    @override
    def get_fields(self) -> dict[str, Any]:
        begin = ClockTime(help_text="When they begin: `22:00`. Later than `to`: over midnight.")
        return {"from": begin, **super().get_fields()}

    @override
    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if attrs["from"] == attrs["to"]:
            error = ErrorDetail(gettext("Must differ from `from`."), "out_of_range")
            raise ValidationError({"to": [error]})
        return {name: f"{at:%H:%M}" for name, at in attrs.items()}


_QUIET_WORDS: Final = (CHANNEL, IGNORE)


@extend_schema_field(
    {
        "oneOf": [
            {"type": "string", "pattern": f"^({'|'.join(_QUIET_WORDS)})$"},
            {"$ref": "#/components/schemas/QuietTimes"},
        ],
        "default": CHANNEL,
    }
)
class QuietHours(serializers.Field[Any, Any, Any, Any]):
    """Those of the channel, none, or others."""

    @override
    def to_internal_value(self, data: object) -> Any:
        if isinstance(data, dict):
            return QuietTimes.checked(data)
        if data not in _QUIET_WORDS:
            words = ", ".join(_QUIET_WORDS)
            refuse(
                "not_a_choice",
                gettext("Must be one of: %(choices)s; or an object with `from` and `to`.")
                % {"choices": words},
            )
        return data


class AbTest(StrictSerializer):
    """How variants are tested on a part of the audience, before the best one goes to the rest."""

    share = WholeNumber(min=1, max=99, help_text="Percent of the audience that the test is for.")
    minutes = WholeNumber(
        min=15, max=4_320, help_text="How long after the start the test is decided."
    )
    metric = Choice(
        TEST_METRICS, default=TEST_METRICS[0], help_text="The events whose rates are compared."
    )
    inconclusive = Text(
        min_length=1,
        max_length=32,
        default=LEADER,
        help_text="If no difference is certain: `leader`, the variant with the highest rate;"
        " `hold`, to wait for a choice; or the name of a variant.",
    )


class SendFields(ContentFields):
    """Unknown fields are refused, so that a misspelt `scheduled_at` does not send immediately."""

    scheduled_at = Timestamp(
        default=None, help_text="When omitted or in the past, the notification is sent immediately."
    )
    local_at = LocalTime(
        min_length=1,
        default=None,
        help_text="When it is this time where the device is: `09:00`, or `2026-12-24T18:00`. See"
        " docs/timing.md.",
    )
    quiet_hours = QuietHours(
        default=CHANNEL,
        help_text="When nobody is sent it, by the clock where the device is: the quiet hours of the"
        " channel, `ignore`, or other ones. See docs/timing.md.",
    )
    expires_at = Timestamp(
        default=None,
        help_text="No device is sent it after this time, whatever its `ttl`. After `scheduled_at`.",
    )
    rate_per_minute = WholeNumber(
        min=0,
        max=MAX_RATE,
        default=None,
        help_text="At most so many recipients a minute, over all platforms. 0: as fast as possible."
        " Default: the channel's rate.",
    )
    cap = Choice(
        CAP_CHOICES,
        default=RESPECT,
        help_text="`respect`: people whom a cap of the channel excludes are skipped. `ignore`: they"
        " are not, and the send counts for no cap. See docs/caps.md.",
    )
    name = ShownText(
        max_length=MAX_NOTIFICATION_NAME,
        default=str,
        help_text="For staff: shown instead of the title in lists. No device gets it.",
    )
    labels = ListOf(
        Label(min_length=1, max_length=MAX_LABEL),
        min_length=0,
        max_length=MOST_LABELS,
        default=list,
        help_text="For staff, to find notifications and to add up results, such as the name of a"
        " campaign. No device gets them. Without commas; duplicates count once.",
    )
    segment_id = Id(
        default=None, allow_null=True, help_text="One segment only; null: the whole channel."
    )
    category = Text(
        max_length=MAX_CATEGORY_KEY,
        default=str,
        help_text="The key of a category. Subscribers who opted out are skipped.",
    )
    rule = RuleField(
        default=None, allow_null=True, help_text="A rule of this send alone, as docs/segments.md."
    )
    external_ids = ListOf(
        ExternalId(),
        max_length=MAX_TARGETS,
        default=None,
        allow_null=True,
        help_text="All devices of these people. Repeated and unknown ids are no error.",
    )
    subscription_ids = ListOf(
        Id(),
        max_length=MAX_TARGETS,
        default=None,
        allow_null=True,
        help_text="These subscriptions. Repeated and unknown ids are no error.",
    )
    targets = ListOf(
        TargetInput(),
        max_length=MAX_TARGETS,
        default=None,
        allow_null=True,
        help_text="People and subscriptions in one list.",
    )
    test = AbTest(
        default=None,
        allow_null=True,
        help_text="Tests the variants on a part of the audience. See docs/ab-tests.md.",
    )
    replaces = Id(
        default=None,
        allow_null=True,
        help_text="Corrects this notification: replaces it on the devices to which it was"
        " delivered, and reaches no others. See docs/sends.md.",
    )
    target_platforms = ListOf(
        TargetPlatform([*PLATFORM_VALUES, ALL]),
        max_length=MAX_PLATFORMS,
        default=[Platform.WEB.value],
        help_text='Duplicates count once. `["all"]`: all that the channel has enabled. With'
        " `replaces`: by default those of the corrected notification.",
    )

    @override
    def to_internal_value(self, data: dict[str, Any]) -> Any:
        known = super().to_internal_value(data)
        if known.get("replaces") and not self.gives(data, "target_platforms"):
            known["target_platforms"] = [ALL]
        return known

    @override
    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        attrs = super().validate(attrs)
        return {
            **attrs,
            "target_platforms": _platforms(attrs["target_platforms"]),
            "labels": tuple(dict.fromkeys(attrs["labels"])),
        }


_NAMES: Final = frozenset(SendFields().fields)
_TIMES: Final = ("scheduled_at", "expires_at")
_UNSCHEDULED: Final = ("external_ids", "subscription_ids", "targets", "replaces")


class SendBody(SendFields):
    """A send, with the content of its template."""

    template_id = Id(
        default=None,
        allow_null=True,
        help_text="The content of this template. A field of the send replaces the template's; null"
        " removes it.",
    )
    dry_run = Flag(default=False, help_text="Check everything; store and send nothing.")


class ScheduledSend(SendFields):
    """A send of a schedule, which says when. It has no times and no targets, and corrects none."""

    scheduled_at = None  # type: ignore[assignment]
    local_at = None  # type: ignore[assignment]
    expires_at = None  # type: ignore[assignment]
    external_ids = None  # type: ignore[assignment]
    subscription_ids = None  # type: ignore[assignment]
    targets = None  # type: ignore[assignment]
    replaces = None  # type: ignore[assignment]
    template_id = Id(
        default=None,
        allow_null=True,
        help_text="The content of this template, which is copied when the schedule is stored.",
    )


class TemplateContent(ContentFields):
    """The content of a template: any of these fields of a send. What is missing is left to the
    send."""

    @override
    def get_fields(self) -> dict[str, Any]:
        fields = super().get_fields()
        fields["body"].required = False
        return fields

    @override
    def run_validation(self, data: Any = empty) -> Any:
        """Returns the fields that were given, without defaults."""
        checked = {"body": "", **super().run_validation(data)}
        content = Content(**{name: checked[name] for name in CONTENT})
        if content.vars and not content.personalize:
            error = ErrorDetail(_UNUSED_VALUES, NotCombinable.code)
            raise ValidationError({"vars": [error]})
        check_placeholders(content)
        return {name: checked[name] for name in data if self.gives(data, name)}


def _platforms(given: list[str]) -> tuple[Platform, ...]:
    """The named platforms. Empty means all that the channel has enabled."""
    names = dict.fromkeys(given)
    if ALL not in names:
        return tuple(map(Platform, names))
    if len(names) > 1:
        raise NotCombinable("target_platforms", "`all` stands alone.")
    return ()


def read_send(data: object) -> SendRequest:
    """The send in the body of a request, in which a template is already resolved. Raises DRF's
    ValidationError."""
    given = SendBody.checked(data)
    del given["dry_run"]
    return _request(given)


def _as_it_is(content: Content) -> Content:
    return content


def read_scheduled(data: object, seen: Callable[[Content], Content] = _as_it_is) -> SendRequest:
    """The send of a schedule, in which a template is already resolved. `seen` makes the content
    whose placeholders are checked. Raises DRF's ValidationError."""
    given = ScheduledSend.checked(data)
    return _request({**dict.fromkeys(_UNSCHEDULED), **given}, seen=seen)


def read_edit(notification: Notification, changes: Mapping[str, Any]) -> SendRequest:
    """The notification's send with `changes`, validated as a whole send. Raises DRF's
    ValidationError.

    For a send to targets, the result has only the targets in `changes`; none means that they stay.
    """
    merged = {**_body_of(notification), **changes}
    kept = {name: merged[name] for name in merged if merged[name] is not None or name not in _NAMES}
    times = {name: getattr(notification, name) for name in _TIMES if name not in changes}
    if (timing := notification.timed) and timing.local_at and "scheduled_at" in times:
        times["scheduled_at"] = timing.after if timing.is_daily else None
    own = times | {"only_subscription_id": notification.only_subscription_id}
    request = _request(SendFields.checked(kept), has_own_values=notification.has_targets)
    return replace(request, **own)


def _request(
    given: dict[str, Any],
    *,
    has_own_values: bool = False,
    seen: Callable[[Content], Content] = _as_it_is,
) -> SendRequest:
    """`has_own_values`: whether stored targets may have values, which are not in `given`. `seen`
    makes the content whose placeholders are checked."""
    named = given["targets"] or ()
    with_vars = [index for index, each in enumerate(named) if each.get("vars")]
    targets = pop_targets(given)
    local_at = given.get("local_at")
    if given.get("scheduled_at") and local_at and not is_time(local_at):
        raise NotCombinable("local_at", gettext("It names the day, so there is no `scheduled_at`."))
    if given["replaces"] and local_at:
        raise NotCombinable(
            "local_at", gettext("A correction is sent to all devices at the same time.")
        )
    content = Content(**{name: given.pop(name) for name in CONTENT})
    if given["replaces"] and content.variants:
        raise NotCombinable("variants", gettext("A correction has one content for all devices."))
    if given.get("test"):
        _check_test(content, given, has_targets=bool(targets) or has_own_values)
    if not content.personalize and (content.vars or with_vars):
        attr = "vars" if content.vars else f"targets.{with_vars[0]}.vars"
        raise NotCombinable(attr, _UNUSED_VALUES)
    checked = seen(content)
    check_placeholders(checked)
    if content.personalize and not (has_own_values or with_vars):
        check_shown(checked)
    return SendRequest(content=content, targets=targets, **given)


def _check_test(content: Content, given: Mapping[str, Any], *, has_targets: bool) -> None:
    if not content.variants:
        raise NotCombinable("test", gettext("A test needs `variants`."))
    if has_targets:
        raise NotCombinable("test", gettext("A send to targets has no test."))
    if given.get("local_at"):
        raise NotCombinable("test", gettext("A send by local time has no test."))
    words = [LEADER, HOLD, *(each["name"] for each in content.variants)]
    if given["test"]["inconclusive"] not in words:
        error = ErrorDetail(
            gettext("Must be one of: %(choices)s.") % {"choices": ", ".join(words)}, "not_a_choice"
        )
        raise ValidationError({"test": {"inconclusive": [error]}})


def _body_of(notification: Notification) -> dict[str, Any]:
    """The body of a send that would give the same notification, without times."""
    content = {name: getattr(notification.content, name) for name in CONTENT}
    return {
        **{name: value for name, value in content.items() if value not in ("", {}, [])},
        "target_platforms": list(notification.target_platforms),
        "segment_id": str(notification.segment_id) if notification.segment_id else None,
        "category": notification.category or None,
        "rule": notification.own_rule,
        "replaces": str(notification.replaces) if notification.replaces else None,
        "rate_per_minute": notification.rate_per_minute,
        "cap": notification.cap,
        "test": notification.test,
        "name": notification.name,
        "labels": notification.labels or [],
        **_timing_of(notification),
    }


def _timing_of(notification: Notification) -> dict[str, Any]:
    timing = notification.timed
    if timing is None:
        return {}
    return {"local_at": timing.local_at, "quiet_hours": timing.chosen}
