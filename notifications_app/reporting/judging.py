"""Judges what would become of a device that a send is for, as of now.

The steps of a device are those of the planner, in its order; each is one entry of STEPS.
"""

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from functools import cached_property
from typing import Any, Final
from uuid import UUID

from django.utils.translation import gettext, ngettext

from channels_app.models import Channel
from notifications_app.content.tracking import TOKEN_LENGTH
from notifications_app.content.values import Content, TargetId
from notifications_app.delivery.messages import Messages, Unsendable
from notifications_app.delivery.registry import TRANSPORTS
from notifications_app.delivery.types import Message, Site
from notifications_app.device_values import device_values, spoken_by
from notifications_app.models import Delivery, Notification
from notifications_app.pipeline.contacts import Cap, cap_over, repeated_at
from notifications_app.pipeline.halting import time_to_live
from notifications_app.reporting.attention import pauses_of
from notifications_app.reporting.bounce_reasons import words_for
from notifications_app.selectors import NamedNow, still_named
from notifications_app.timing import Timing
from pushsvc.common.findings import Finding
from pushsvc.common.platforms import PLATFORM_NAMES, Platform
from pushsvc.common.store import sql
from pushsvc.common.timestamps import format_timestamp
from subscriptions_app.categories.consent import refusing
from subscriptions_app.models import Subscription
from subscriptions_app.segments.judging import Judgement, rule_judged
from subscriptions_app.segments.rules import NOBODY, Rule

_ANY_ID: Final = UUID(int=0)
_ANY_TOKEN: Final = "x" * TOKEN_LENGTH


class Verdict(StrEnum):
    """`gets`: it becomes a recipient. `bounces`: so it does, but it can be sent no message in time.
    `waiting`: it is a recipient that waits, or becomes one, while its platform or the notification
    is paused. `left_out`: it is in the audience, and is not planned. `got`, `bounced`: what the
    ledger has. `unknown`: the ledger has nothing any more, or no longer tells why."""

    GETS = "gets"
    BOUNCES = "bounces"
    LEFT_OUT = "left_out"
    NOT_IN_AUDIENCE = "not_in_audience"
    GOT = "got"
    BOUNCED = "bounced"
    WAITING = "waiting"
    UNKNOWN = "unknown"


class StepName(StrEnum):
    """What is decided about a device: first by STEPS, in their order, then what only a stored
    notification has."""

    NOTIFICATION = "notification"
    ACTIVE = "active"
    PLATFORM = "platform"
    AUDIENCE = "audience"
    CATEGORY = "category"
    ONCE = "once"
    CAP = "cap"
    TEST = "test"
    RELEASE = "release"
    CONTENT = "content"
    PAUSED = "paused"
    DELIVERY = "delivery"
    RETENTION = "retention"
    CHANGES = "changes"


@dataclass(frozen=True, slots=True)
class Step:
    """One decision about a device. `detail`: for people. `rule`: the condition that decided. `at`:
    when it gets a send by local time or with quiet hours, or when the test that it waits for is
    decided."""

    step: StepName
    ok: bool
    detail: str = ""
    rule: Rule | None = None
    at: datetime | None = None
    language: str | None = None
    bytes: int | None = None
    missing: Sequence[str] | None = None


@dataclass(frozen=True, slots=True)
class Sent:
    """The delivery of a device, as the ledger has it. `trace` finds its log lines and spans."""

    delivery: Delivery
    push_service: str
    trace: str


@dataclass(frozen=True, slots=True)
class Explained:
    """`because`: the step that decided, or the code of the bounce; "" if nothing stands against it.
    `changes`: what is known to have changed since the notification began. `message`: what the
    device would show now; None if none can be made. `variant`: the name of the one it gets."""

    device: Subscription
    verdict: Verdict
    because: str = ""
    steps: Sequence[Step] = ()
    message: Content | None = None
    sent: Sent | None = None
    changes: Sequence[str] = ()
    variant: str | None = None


@dataclass(frozen=True, kw_only=True)
class Case:
    """A send, and the devices that are asked about. What several devices share is read once.

    `targets`: of a send that is not stored. `rule`: None means the whole channel. `now`: from which
    the rule counts days. `timing`: of a send by local time or with quiet hours, which is `due_at`.
    `caps`: in force. `once`: as in Notification. `planned`: the devices whose part is planned.
    `is_over`: why nobody is planned any more, in words. `variants`: the variant of each device.
    `has_test`: of the variants, in which `untested` are not. `root_id`: as in Notification.
    """

    channel: Channel
    devices: Sequence[Subscription]
    content: Content
    platforms: Sequence[str]
    rule: Rule | None = None
    targets: Sequence[TargetId] = ()
    only_subscription_id: UUID | None = None
    category: str = ""
    caps: Sequence[Cap] = ()
    once: Mapping[str, Any] | None = None
    notification: Notification | None = None
    now: datetime | None = None
    timing: Timing | None = None
    due_at: datetime | None = None
    expires_at: datetime | None = None
    planned: Set[UUID] = frozenset()
    is_over: str = ""
    variants: Mapping[UUID, int] = field(default_factory=dict)
    has_test: bool = False
    untested: Set[UUID] = frozenset()
    root_id: UUID | None = None
    _messages: dict[Any, Messages] = field(default_factory=dict)

    @cached_property
    def judged(self) -> Mapping[UUID, Judgement]:
        """What the rule makes of each device."""
        if self.rule is None:
            return {}
        return rule_judged(self.channel.pk, self.devices, self.rule, now=self.now)

    @cached_property
    def refusing(self) -> set[UUID]:
        ids = [each.pk for each in self.devices]
        return refusing(self.channel.pk, self.category, ids) if self.category else set()

    def variant(self, device: Subscription) -> str | None:
        """The name of the variant that the device gets; None if that is not known."""
        number = self.variants.get(device.pk)
        return None if number is None else self.content.variants[number]["name"]

    @property
    def has_targets(self) -> bool:
        return bool(self.targets) or bool(self.notification and self.notification.has_targets)

    @property
    def has_releases(self) -> bool:
        """Whether each time zone gets it at its own time. For the quiet hours of other sends,
        recipients are judged before each call."""
        timing, at_calls = self.timing, self.has_targets or self.has_test
        return timing is not None and bool(timing.local_at or (timing.quiet and not at_calls))

    @cached_property
    def named(self) -> Mapping[UUID, NamedNow]:
        """How the send's targets name each device; devices that none names are missing."""
        if self.notification is None:
            found = {each.pk: _named(self.targets, each) for each in self.devices}
            return {id_: each for id_, each in found.items() if each is not None}
        pairs = [(self.notification.pk, each.pk) for each in self.devices]
        return {id_: each for (_, id_), each in still_named(pairs).items()}

    @cached_property
    def strangers(self) -> Set[UUID]:
        """For the correction of a direct message: devices that the message does not name now."""
        if self.root_id is None:
            return set()
        if not Notification.objects.filter(pk=self.root_id, has_targets=True).exists():
            return set()
        pairs = [(self.root_id, each.pk) for each in self.devices]
        return {id_ for _, id_ in {*pairs} - still_named(pairs).keys()}

    @cached_property
    def pauses(self) -> Mapping[str, Finding]:
        """By platform: why its recipients wait."""
        platforms = {each.platform for each in self.devices} & set(self.platforms)
        return {each.platform: each for each in pauses_of(self.channel.pk, platforms)}

    def messages(self, device: Subscription) -> Messages:
        """Of the device's platform and push service."""
        platform = Platform(device.platform)
        is_declarative = device.push_service in TRANSPORTS[platform].declarative_services
        variant = self.variants.get(device.pk)
        key = platform, is_declarative, variant
        if key not in self._messages:
            site = Site.of(self.channel.site_url, self.channel.name) if is_declarative else None
            self._messages[key] = Messages(
                self.id, self.content.of_variant(variant), platform, expires_at=0.0, site=site
            )
        return self._messages[key]

    def message_for(self, device: Subscription) -> Message | Unsendable:
        """What a worker makes of the content for the device."""
        messages, language = self.messages(device), spoken_by(device)
        if not messages.is_personal:
            return messages.of(language)
        return messages.for_recipient(language, self._values(device))

    def missing(self, device: Subscription) -> list[str]:
        """The placeholders without a value and without a default."""
        messages = self.messages(device)
        if not messages.is_personal:
            return []
        return messages.missing(spoken_by(device), self._values(device))

    def _values(self, device: Subscription) -> Any:
        named = self.named.get(device.pk) if self.has_targets else None
        sent_vars = {**self.content.vars, **(named.vars if named else {})}
        return device_values(device, notification_id=self.id, sent_vars=sent_vars)

    def contact_at(self, device: Subscription) -> datetime:
        """When the send contacts the device, or would: at its release, but if its part is still to
        be planned, not before now."""
        due_at, timing = self.due_at or sql.now(), self.timing
        begun_at = self.notification.started_at if self.notification else None
        release = begun_at or due_at
        earliest = release if device.pk in self.planned else due_at
        if timing is not None and self.has_releases:
            release = timing.release(device.timezone, now=None if timing.local_at else release)
        return max(release, earliest)

    @property
    def id(self) -> UUID:
        return self.notification.pk if self.notification else _ANY_ID


def _named(targets: Sequence[TargetId], device: Subscription) -> NamedNow | None:
    person = device.person.external_id if device.person else None
    of_person = next((t for t in targets if person is not None and t.external_id == person), None)
    own = next((t for t in targets if t.subscription_id == device.pk), None)
    if of_person is None and own is None:
        return None
    given = [each.vars or {} for each in (of_person, own) if each is not None]
    return NamedNow(person or "", {name: each[name] for each in given for name in each})


def _still_planned(case: Case, _device: Subscription) -> Step | None:
    return Step(StepName.NOTIFICATION, ok=False, detail=case.is_over) if case.is_over else None


def _active(_case: Case, device: Subscription) -> Step:
    if device.expired_at is None:
        return Step(StepName.ACTIVE, ok=True)
    if device.person and device.person.opted_out_at:
        detail = gettext("The person opted out, which ended all devices.")
    else:
        detail = gettext("The subscription ended at %(at)s.")
        if device.expired_code:
            detail = gettext("The subscription ended at %(at)s (%(code)s).")
        detail %= {"at": format_timestamp(device.expired_at), "code": device.expired_code}
    return Step(StepName.ACTIVE, ok=False, detail=detail)


def _platform(case: Case, device: Subscription) -> Step:
    if device.platform in case.platforms:
        return Step(StepName.PLATFORM, ok=True)
    names = ", ".join(PLATFORM_NAMES[each] for each in case.platforms)
    detail = gettext("The device is on %(own)s; the send is for %(platforms)s.") % {
        "own": PLATFORM_NAMES[device.platform],
        "platforms": names,
    }
    return Step(StepName.PLATFORM, ok=False, detail=detail)


def _audience(case: Case, device: Subscription) -> Step:
    if case.only_subscription_id is not None:
        is_it = device.pk == case.only_subscription_id
        detail = "" if is_it else gettext("It is a test, which goes to another device.")
        return Step(StepName.AUDIENCE, ok=is_it, detail=detail)
    if case.has_targets:
        is_named = device.pk in case.named
        detail = gettext("The send names neither this device nor its person.")
        detail = "" if is_named else detail
        return Step(StepName.AUDIENCE, ok=is_named, detail=detail)
    judged = case.judged.get(device.pk, Judgement())
    rule = None if judged.reason == NOBODY else judged.reason
    return Step(StepName.AUDIENCE, ok=judged.reason is None, detail=judged.words, rule=rule)


def _person(case: Case, device: Subscription) -> Step | None:
    if device.pk not in case.strangers:
        return None
    detail = gettext("The message that it corrects does not name this device or its person.")
    return Step(StepName.AUDIENCE, ok=False, detail=detail)


def _category(case: Case, device: Subscription) -> Step | None:
    if not case.category:
        return None
    if device.pk not in case.refusing:
        return Step(StepName.CATEGORY, ok=True)
    person = device.person.choices if device.person else {}
    if case.category in person:
        detail = gettext("The person refused the category %(category)s.")
    elif case.category in device.choices:
        detail = gettext("The device refused the category %(category)s.")
    else:
        detail = gettext(
            "Nobody chose, and by default devices do not get the category %(category)s."
        )
    return Step(StepName.CATEGORY, ok=False, detail=detail % {"category": case.category})


def _once(case: Case, device: Subscription) -> Step | None:
    if not case.once:
        return None
    schedule_id, days = UUID(case.once["schedule_id"]), case.once["days"]
    at = repeated_at(schedule_id, days, _key(device), case.contact_at(device), case.id)
    if at is None:
        return Step(StepName.ONCE, ok=True)
    detail = ngettext(
        "Its schedule contacts nobody twice within %(days)s day, and did last at %(at)s.",
        "Its schedule contacts nobody twice within %(days)s days, and did last at %(at)s.",
        days,
    )
    detail %= {"days": days, "at": format_timestamp(at)}
    return Step(StepName.ONCE, ok=False, detail=detail)


def _cap(case: Case, device: Subscription) -> Step | None:
    if not case.caps:
        return None
    cap = cap_over(case.caps, _key(device), case.contact_at(device), case.id)
    if cap is None:
        return Step(StepName.CAP, ok=True)
    detail = gettext("The device has had as many sends as the cap: %(cap)s.")
    if device.person_id:
        detail = gettext("The person has had as many sends as the cap: %(cap)s.")
    return Step(StepName.CAP, ok=False, detail=detail % {"cap": cap.words})


def _test(case: Case, device: Subscription) -> Step | None:
    one = case.notification
    if one is None or one.test is None:
        return None
    about = {"share": one.test["share"], "winner": case.variant(device)}
    if device.pk not in case.untested:
        detail = gettext("It is in the %(share)s %% with which the variants are tested.")
        return Step(StepName.TEST, ok=True, detail=detail % about)
    if about["winner"] is not None:
        detail = gettext("It gets what the test found: %(winner)s.")
        return Step(StepName.TEST, ok=True, detail=detail % about)
    detail = gettext(
        "It is not in the %(share)s %% with which the variants are tested, and waits for the"
        " decision."
    )
    if one.decides_at:
        about["at"] = format_timestamp(one.decides_at)
        detail = gettext(
            "It is not in the %(share)s %% with which the variants are tested, and waits for the"
            " decision, at the latest at %(at)s."
        )
    return Step(StepName.TEST, ok=False, detail=detail % about, at=one.decides_at)


def _key(device: Subscription) -> UUID:
    """Whom caps count."""
    return device.person_id or device.pk


def _release(case: Case, device: Subscription) -> Step | None:
    if case.timing is None or not case.has_releases:
        return None
    return _released(case, case.timing, device, case.expires_at)


def _postponed(case: Case, device: Subscription) -> Step | None:
    if case.timing is None or case.timing.quiet is None or case.has_releases:
        return None
    ends_at = (case.due_at or sql.now()) + time_to_live(case.content.ttl)
    ends_at = min(ends_at, case.expires_at) if case.expires_at else ends_at
    return _released(case, case.timing, device, ends_at)


def _released(
    case: Case, timing: Timing, device: Subscription, expires_at: datetime | None
) -> Step:
    at = timing.release(device.timezone, now=None if timing.local_at else case.due_at)
    zone = device.timezone or gettext("the channel's %(zone)s") % {"zone": timing.timezone}
    words = [gettext("It gets it in %(zone)s at %(at)s.")]
    if timing.local_at:
        words = [gettext("It gets it in %(zone)s at %(at)s, the local time %(local_at)s.")]
    if timing.quiet:
        words.append(gettext("Nobody gets it between %(begin)s and %(end)s."))
    is_late = expires_at is not None and at >= expires_at
    if is_late:
        words.append(gettext("The send expires at %(expires_at)s."))
    detail = " ".join(words) % {
        "zone": zone,
        "at": format_timestamp(at),
        "local_at": timing.local_at,
        "begin": timing.quiet and timing.quiet.begin,
        "end": timing.quiet and timing.quiet.end,
        "expires_at": expires_at and format_timestamp(expires_at),
    }
    return Step(StepName.RELEASE, ok=not is_late, detail=detail, at=at)


def _content(case: Case, device: Subscription) -> Step | None:
    if device.platform not in case.platforms:
        return None
    transport = TRANSPORTS[Platform(device.platform)]
    made = case.message_for(device)
    step = Step(StepName.CONTENT, ok=True, language=spoken_by(device), missing=case.missing(device))
    if isinstance(made, Unsendable):
        words = words_for(Platform(device.platform), made.code)
        return replace(step, ok=False, detail=f"{words.title}: {made.detail}.")
    size = len(transport.payload(made, _ANY_TOKEN))
    if size > transport.max_payload:
        detail = gettext("The message has %(size)s bytes; the limit is %(most)s.")
        detail %= {"size": size, "most": transport.max_payload}
        return replace(step, ok=False, detail=detail, bytes=size)
    return replace(step, bytes=size)


def paused(case: Case, device: Subscription) -> Step | None:
    """None if neither the notification nor the platform is paused."""
    if case.notification is not None and case.notification.is_paused:
        return Step(StepName.PAUSED, ok=False, detail=gettext("The notification is paused."))
    pause = case.pauses.get(device.platform)
    if pause is None:
        return None
    detail = gettext("%(reason)s. Recipients wait for up to an hour, then bounce.")
    detail %= {"reason": pause.title}
    return Step(StepName.PAUSED, ok=False, detail=detail)


@dataclass(frozen=True, slots=True)
class _Decision:
    """`judge` returns None if the step does not apply to the send. A device that fails the step
    gets `verdict`."""

    judge: Callable[[Case, Subscription], Step | None]
    verdict: Verdict


# A device is judged by all of them, and the first that is not ok decides. What else decides whether
# or when a device gets a send is one more entry.
STEPS: Final = (
    _Decision(_still_planned, Verdict.LEFT_OUT),
    _Decision(_active, Verdict.NOT_IN_AUDIENCE),
    _Decision(_platform, Verdict.NOT_IN_AUDIENCE),
    _Decision(_audience, Verdict.NOT_IN_AUDIENCE),
    _Decision(_category, Verdict.LEFT_OUT),
    _Decision(_once, Verdict.LEFT_OUT),
    _Decision(_cap, Verdict.LEFT_OUT),
    _Decision(_test, Verdict.WAITING),
    _Decision(_release, Verdict.LEFT_OUT),
    _Decision(_postponed, Verdict.BOUNCES),
    _Decision(_person, Verdict.BOUNCES),
    _Decision(_content, Verdict.BOUNCES),
    _Decision(paused, Verdict.WAITING),
)


def judged(case: Case, device: Subscription) -> Explained:
    """What would become of the device as of now."""
    steps, verdict, because = [], Verdict.GETS, ""
    for each in STEPS:
        step = each.judge(case, device)
        if step is None:
            continue
        steps.append(step)
        if not step.ok and not because:
            verdict, because = each.verdict, step.step
    return Explained(device, verdict, because, steps, shown(case, device))


def shown(case: Case, device: Subscription) -> Content | None:
    if device.platform not in case.platforms:
        return None
    made = case.message_for(device)
    return None if isinstance(made, Unsendable) else made.whole
