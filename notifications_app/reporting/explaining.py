"""Explains which devices of a person a send reaches, and why others get nothing.

The steps of a device are those of the planner, in its order; each is one entry of STEPS. What
happened is read from the ledger; only devices without a delivery there are judged, as of now. Reads
rows by their keys, however large the channel is, and stores nothing.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from functools import cached_property
from typing import Any, Final
from uuid import UUID

from django.conf import settings

from channels_app.models import Channel
from notifications_app.content.tracking import TOKEN_LENGTH
from notifications_app.content.values import Content, TargetId
from notifications_app.delivery.messages import Messages, Unsendable
from notifications_app.delivery.registry import TRANSPORTS
from notifications_app.delivery.types import Message, Site
from notifications_app.device_values import device_values, spoken_by
from notifications_app.models import Batch, Delivery, Driver, Notification, Plan, Target
from notifications_app.reporting.bounce_reasons import words_for
from notifications_app.selectors import NamedNow, still_named
from notifications_app.states import DeliveryStatus, NotificationStatus, PlanStatus
from pushsvc.common.errors import NotFound
from pushsvc.common.platforms import PLATFORM_NAMES, Platform
from pushsvc.common.store import sql
from pushsvc.common.timestamps import format_timestamp
from subscriptions_app.categories.consent import refusing
from subscriptions_app.models import MOST_DEVICES, Person, Subscription
from subscriptions_app.people.services import person_get
from subscriptions_app.segments.judging import Judgement, rule_judged
from subscriptions_app.segments.rules import NOBODY, Rule
from subscriptions_app.segments.selectors import segment_find

_ANY_ID: Final = UUID(int=0)
_ANY_TOKEN: Final = "x" * TOKEN_LENGTH


class Verdict(StrEnum):
    """`gets`: it becomes a recipient. `bounces`: so it does, but no message can be made for it.
    `left_out`: it is in the audience, and is not planned. `got`, `bounced`, `waiting`: what the
    ledger has. `unknown`: the ledger has nothing any more, or no longer tells why."""

    GETS = "gets"
    BOUNCES = "bounces"
    LEFT_OUT = "left_out"
    NOT_IN_AUDIENCE = "not_in_audience"
    GOT = "got"
    BOUNCED = "bounced"
    WAITING = "waiting"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Step:
    """One decision about a device. `detail`: for people. `rule`: the condition that decided."""

    step: str
    ok: bool
    detail: str = ""
    rule: Rule | None = None
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
    device would show now; None if none can be made."""

    device: Subscription
    verdict: Verdict
    because: str = ""
    steps: Sequence[Step] = ()
    message: Content | None = None
    sent: Sent | None = None
    changes: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Explanation:
    as_of: datetime
    devices: Sequence[Explained]
    notification: Notification | None = None


@dataclass(frozen=True, kw_only=True)
class Case:
    """A send, and the devices that are asked about. What several devices share is read once.

    `targets`: of a send that is not stored. `rule`: None means the whole channel. `now`: from which
    the rule counts days. `is_over`: why nobody is planned any more, in words.
    """

    channel: Channel
    devices: Sequence[Subscription]
    content: Content
    platforms: Sequence[str]
    rule: Rule | None = None
    targets: Sequence[TargetId] = ()
    only_subscription_id: UUID | None = None
    category: str = ""
    notification: Notification | None = None
    now: datetime | None = None
    is_over: str = ""
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

    @property
    def has_targets(self) -> bool:
        return bool(self.targets) or bool(self.notification and self.notification.has_targets)

    @cached_property
    def named(self) -> Mapping[UUID, NamedNow]:
        """How the send's targets name each device; devices that none names are missing."""
        if self.notification is None:
            found = {each.pk: _named(self.targets, each) for each in self.devices}
            return {id_: each for id_, each in found.items() if each is not None}
        pairs = [(self.notification.pk, each.pk) for each in self.devices]
        return {id_: each for (_, id_), each in still_named(pairs).items()}

    def messages(self, device: Subscription) -> Messages:
        """Of the device's platform and push service."""
        platform = Platform(device.platform)
        is_declarative = device.push_service in TRANSPORTS[platform].declarative_services
        key = platform, is_declarative
        if key not in self._messages:
            site = Site.of(self.channel.site_url, self.channel.name) if is_declarative else None
            self._messages[key] = Messages(
                self._id, self.content, platform, expires_at=0.0, site=site
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
        return device_values(device, notification_id=self._id, sent_vars=sent_vars)

    @property
    def _id(self) -> UUID:
        return self.notification.pk if self.notification else _ANY_ID


def _named(targets: Sequence[TargetId], device: Subscription) -> NamedNow | None:
    person = device.person.external_id if device.person else None
    of_person = next((t for t in targets if person is not None and t.external_id == person), None)
    own = next((t for t in targets if t.subscription_id == device.pk), None)
    if of_person is None and own is None:
        return None
    given = [each.vars or {} for each in (of_person, own) if each is not None]
    return NamedNow(person or "", {name: each[name] for each in given for name in each})


# --- the steps, in the planner's order ------------------------------------------------------------


def _still_planned(case: Case, _device: Subscription) -> Step | None:
    return Step("notification", ok=False, detail=case.is_over) if case.is_over else None


def _active(_case: Case, device: Subscription) -> Step:
    if device.expired_at is None:
        return Step("active", ok=True)
    if device.person and device.person.opted_out_at:
        detail = "The person opted out, which ended all devices."
    else:
        detail = f"The subscription ended at {format_timestamp(device.expired_at)}"
        detail += f" ({device.expired_code})." if device.expired_code else "."
    return Step("active", ok=False, detail=detail)


def _platform(case: Case, device: Subscription) -> Step:
    if device.platform in case.platforms:
        return Step("platform", ok=True)
    names = ", ".join(PLATFORM_NAMES[each] for each in case.platforms)
    own = PLATFORM_NAMES[device.platform]
    return Step("platform", ok=False, detail=f"The device is on {own}; the send is for {names}.")


def _audience(case: Case, device: Subscription) -> Step:
    if case.only_subscription_id is not None:
        is_it = device.pk == case.only_subscription_id
        detail = "" if is_it else "It is a test, which goes to another device."
        return Step("audience", ok=is_it, detail=detail)
    if case.has_targets:
        is_named = device.pk in case.named
        detail = "" if is_named else "The send names neither this device nor its person."
        return Step("audience", ok=is_named, detail=detail)
    judged = case.judged.get(device.pk, Judgement())
    rule = None if judged.reason == NOBODY else judged.reason
    return Step("audience", ok=judged.reason is None, detail=judged.words, rule=rule)


def _category(case: Case, device: Subscription) -> Step | None:
    if not case.category:
        return None
    if device.pk not in case.refusing:
        return Step("category", ok=True)
    person = device.person.choices if device.person else {}
    if case.category in person:
        who = "The person refused"
    elif case.category in device.choices:
        who = "The device refused"
    else:
        who = "Nobody chose, and by default devices do not get"
    return Step("category", ok=False, detail=f"{who} the category {case.category}.")


def _content(case: Case, device: Subscription) -> Step | None:
    if device.platform not in case.platforms:
        return None
    transport = TRANSPORTS[Platform(device.platform)]
    made = case.message_for(device)
    step = Step("content", ok=True, language=spoken_by(device), missing=case.missing(device))
    if isinstance(made, Unsendable):
        words = words_for(Platform(device.platform), made.code)
        return replace(step, ok=False, detail=f"{words.title}: {made.detail}.")
    size = len(transport.payload(made, _ANY_TOKEN))
    if size > transport.max_payload:
        detail = f"The message has {size} bytes; the limit is {transport.max_payload}."
        return replace(step, ok=False, detail=detail, bytes=size)
    return replace(step, bytes=size)


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
    _Decision(_content, Verdict.BOUNCES),
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
    return Explained(device, verdict, because, steps, _shown(case, device))


def _shown(case: Case, device: Subscription) -> Content | None:
    if device.platform not in case.platforms:
        return None
    made = case.message_for(device)
    return None if isinstance(made, Unsendable) else made.whole


# --- devices, and notifications that are stored ---------------------------------------------------


def devices_asked(
    channel_id: UUID, *, external_id: str | None = None, subscription_id: UUID | None = None
) -> tuple[Person | None, list[Subscription]]:
    """The person, and the newest MOST_DEVICES devices, active ones first; or the subscription
    alone. Raises NotFound, also for ids of another channel."""
    devices = Subscription.objects.filter(channel_id=channel_id).select_related("person")
    if subscription_id is not None:
        found = list(devices.filter(pk=subscription_id))
        if not found:
            raise NotFound("The channel has no such subscription.")
        return found[0].person, found
    person = person_get(channel_id=channel_id, external_id=external_id or "")
    own = devices.filter(person=person).order_by("-expired_at", "-id")  # nulls come first
    return person, list(own[:MOST_DEVICES])


def send_explained(case: Case) -> Explanation:
    """Explains a send that is not stored."""
    return Explanation(sql.now(), [judged(case, each) for each in case.devices])


def notification_explained(
    channel: Channel, notification_id: UUID, devices: Sequence[Subscription]
) -> Explanation:
    """Explains a stored notification. Raises NotFound, also for one of another channel."""
    found = Notification.objects.filter(pk=notification_id, channel=channel).first()
    if found is None:
        raise NotFound("There is no such notification.")
    now = sql.now()
    plans = {each.platform: each for each in Plan.objects.filter(notification=found)}
    sent = _sent(found, devices)
    about = _About(channel, found, plans, now, devices)
    return Explanation(now, [_explained(about, each, sent.get(each.pk)) for each in devices], found)


@dataclass(frozen=True)
class _About:
    """A stored notification. `plans`: by platform, from its start on."""

    channel: Channel
    notification: Notification
    plans: Mapping[str, Plan]
    now: datetime
    devices: Sequence[Subscription]

    @cached_property
    def case(self) -> Case:
        """Its audience: from the start on that of its plans."""
        one = self.notification
        rule = one.rule
        if self.plans:
            rule = next(iter(self.plans.values())).rule
        elif one.segment_id is not None:
            segment = segment_find(channel_id=one.channel_id, segment_id=one.segment_id)
            rule = segment.rule if segment else NOBODY
        return Case(
            channel=self.channel,
            devices=self.devices,
            content=one.content,
            platforms=one.target_platforms,
            rule=rule,
            only_subscription_id=one.only_subscription_id,
            category=one.category,
            notification=one,
            now=one.started_at,
            is_over=self._over,
        )

    @property
    def _over(self) -> str:
        if self.notification.is_stopped:
            return "The notification was stopped."
        if self.notification.status == NotificationStatus.CANCELLED:
            return "The notification was cancelled."
        return ""

    def is_planned(self, platform: str) -> bool:
        """Whether every recipient on the platform has its delivery."""
        if not self.plans:
            return False
        plan = self.plans.get(platform)
        return plan is None or plan.status != PlanStatus.PLANNING

    def is_kept(self, platform: str) -> bool:
        """Whether the ledger has every delivery on the platform. Retention deletes a batch together
        with its deliveries."""
        ended, plan = self.notification.finished_at, self.plans.get(platform)
        if ended is None or plan is None:
            return True
        age = timedelta(days=settings.DELIVERY_RETENTION_DAYS)
        if plan.driver == Driver.IDS and not self.has_targets_left:
            return False
        if plan.recipient_count == 0:
            return True
        return ended > self.now - age and Batch.objects.filter(plan=plan).exists()

    @cached_property
    def has_targets_left(self) -> bool:
        return Target.objects.of(self.notification.pk).exists()


def _explained(about: _About, device: Subscription, sent: Sent | None) -> Explained:
    if sent is not None:
        return _from_ledger(about, device, sent)
    if not about.is_kept(device.platform):
        days = settings.DELIVERY_RETENTION_DAYS
        detail = f"Results of recipients are deleted {days} days after a notification ends."
        step = Step("retention", ok=False, detail=detail)
        return Explained(device, Verdict.UNKNOWN, step.step, [step])
    found = judged(about.case, device)
    if not about.is_planned(device.platform):
        return found
    changes = _changes(device, about.notification.started_at)
    if found.verdict in (Verdict.GETS, Verdict.BOUNCES):
        step = Step("changes", ok=False, detail=_NOT_PLANNED)
        steps = [*found.steps, step]
        return Explained(device, Verdict.UNKNOWN, step.step, steps, found.message, changes=changes)
    return Explained(
        device, found.verdict, found.because, found.steps, found.message, changes=changes
    )


_NOT_PLANNED: Final = (
    "It was no recipient when the audience was read. It would be one now, so something has changed"
    " since."
)


def _from_ledger(about: _About, device: Subscription, sent: Sent) -> Explained:
    """What happened, which is a fact."""
    delivery, message = sent.delivery, _shown(about.case, device)
    match delivery.status:
        case DeliveryStatus.DELIVERED:
            step = Step("delivery", ok=True, detail=_delivered_words(delivery))
            return Explained(device, Verdict.GOT, "", [step], message, sent)
        case DeliveryStatus.BOUNCED:
            words = words_for(Platform(device.platform), delivery.code)
            detail = " ".join(filter(None, (f"{words.title}.", words.meaning, words.remedy)))
            step = Step("delivery", ok=False, detail=detail)
            return Explained(device, Verdict.BOUNCED, delivery.code, [step], message, sent)
    step = Step("delivery", ok=True, detail=_waiting_words(about, delivery))
    because = "paused" if about.notification.is_paused else delivery.code
    return Explained(device, Verdict.WAITING, because, [step], message, sent)


def _delivered_words(delivery: Delivery) -> str:
    if delivery.clicked_at:
        return "The push service accepted it, and the device reported a click."
    if delivery.received_at or delivery.dismissed_at:
        return "The push service accepted it, and the device reported that it arrived."
    return (
        "The push service accepted it. The device has not reported that it arrived: it may be off,"
        " without a connection, or not show notifications."
    )


def _waiting_words(about: _About, delivery: Delivery) -> str:
    if about.notification.is_paused:
        return "The notification is paused."
    if delivery.attempts:
        return f"It is tried again after {delivery.attempts} attempts."
    return "Its turn has not come yet."


def _changes(device: Subscription, began: datetime | None) -> list[str]:
    """Facts about the device that are newer than the notification. Changes of attributes, tags and
    choices have no time."""
    moments = {
        "It subscribed": device.created_at,
        "It visited again, and may have been inactive before": device.registered_at,
        "Its time zone changed": device.timezone_changed_at,
        "It was linked to another person": device.linked_at,
        "It ended": device.expired_at,
    }
    newer = {words: at for words, at in moments.items() if at and began and at > began}
    if "It subscribed" in newer:
        newer = {words: newer[words] for words in newer if words in ("It subscribed", "It ended")}
    return [f"{words} at {format_timestamp(at)}." for words, at in newer.items()]


def _sent(notification: Notification, devices: Sequence[Subscription]) -> dict[UUID, Sent]:
    """The deliveries of the devices, by key."""
    rows = Delivery.objects.filter(
        notification_id=notification.pk, subscription_id__in=[each.pk for each in devices]
    )
    found = list(rows)
    services = dict(
        Batch.objects.filter(pk__in={each.batch_id for each in found}).values_list(
            "pk", "push_service"
        )
    )
    trace = notification.correlation.fields.get("trace_id", "")
    return {
        each.subscription_id: Sent(each, services.get(each.batch_id, ""), trace) for each in found
    }
