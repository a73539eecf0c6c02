"""Explains which devices of a person a send reaches, and why others get nothing.

What happened is read from the ledger; only devices without a delivery there are judged, as of now.
Reads rows by their keys, however large the channel is, and stores nothing.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cached_property
from typing import Final
from uuid import UUID

from django.conf import settings
from django.utils.translation import gettext, ngettext

from channels_app.models import Channel
from notifications_app.models import Batch, Delivery, Driver, Notification, Plan, Target
from notifications_app.pipeline.contacts import caps_from
from notifications_app.pipeline.splitting import rest_of, variants_of
from notifications_app.pipeline.transitions import QUIET_HOURS
from notifications_app.reporting.bounce_reasons import words_for
from notifications_app.reporting.judging import (
    Case,
    Explained,
    Sent,
    Step,
    StepName,
    Verdict,
    judged,
    paused,
    shown,
)
from notifications_app.states import DeliveryStatus, NotificationStatus, PlanStatus
from pushsvc.common.errors import NotFound
from pushsvc.common.platforms import Platform
from pushsvc.common.store import sql
from pushsvc.common.texts import later, localized
from pushsvc.common.timestamps import format_timestamp
from subscriptions_app.models import MOST_DEVICES, Person, Subscription
from subscriptions_app.people.services import person_get
from subscriptions_app.segments.rules import NOBODY
from subscriptions_app.segments.selectors import segment_find


@dataclass(frozen=True, slots=True)
class Explanation:
    as_of: datetime
    devices: Sequence[Explained]
    notification: Notification | None = None


def devices_asked(
    channel_id: UUID, *, external_id: str | None = None, subscription_id: UUID | None = None
) -> tuple[Person | None, list[Subscription]]:
    """The person, and the newest MOST_DEVICES devices, active ones first; or the subscription
    alone. Raises NotFound, also for ids of another channel."""
    devices = Subscription.objects.filter(channel_id=channel_id).select_related("person")
    if subscription_id is not None:
        found = list(devices.filter(pk=subscription_id))
        if not found:
            raise NotFound(gettext("The channel has no such subscription."))
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
        raise NotFound(gettext("There is no such notification."))
    now = sql.now()
    plans: dict[str, list[Plan]] = defaultdict(list)
    own = Plan.objects.filter(notification=found)
    for plan in own.without_keepers().order_by("part"):
        plans[plan.platform].append(plan)
    sent = _sent(found, devices)
    about = _About(channel, found, plans, now, devices)
    explained = [_explained(about, each, sent.get(each.pk)) for each in devices]
    named = [replace(each, variant=about.case.variant(each.device)) for each in explained]
    return Explanation(now, named, found)


@dataclass(frozen=True)
class _About:
    """A stored notification. `plans`: by platform, from its start on."""

    channel: Channel
    notification: Notification
    plans: Mapping[str, Sequence[Plan]]
    now: datetime
    devices: Sequence[Subscription]

    @cached_property
    def case(self) -> Case:
        """Its audience: from the start on that of its plans."""
        one = self.notification
        rule = one.rule
        if self.plans:
            rule = next(iter(self.plans.values()))[0].rule
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
            caps=caps_from(one.caps),
            once=one.once,
            notification=one,
            now=one.started_at,
            timing=one.timed,
            due_at=max(one.scheduled_at, self.now),
            expires_at=one.expires_at,
            planned={each.pk for each in self.devices if self.is_planned(each)},
            is_over=self._over,
            variants=variants_of(one, [each.pk for each in self.devices]),
            has_test=one.test is not None,
            untested=self.untested,
            root_id=one.root_id,
        )

    @cached_property
    def untested(self) -> set[UUID]:
        return rest_of(self.notification, [each.pk for each in self.devices])

    @property
    def _over(self) -> str:
        if self.notification.is_stopped:
            return gettext("The notification was stopped.")
        if self.notification.status == NotificationStatus.CANCELLED:
            return gettext("The notification was cancelled.")
        return ""

    def is_planned(self, device: Subscription) -> bool:
        """Whether the device has its delivery, if it is a recipient. One whose time zone has
        changed since the start may have to wait for the last part."""
        if not self.plans:
            return False
        waiting = [
            each
            for each in self.plans.get(device.platform, ())
            if each.status == PlanStatus.PLANNING
        ]
        return not any(self._may_reach(each, device) for each in waiting)

    def _may_reach(self, plan: Plan, device: Subscription) -> bool:
        if plan.bucket_from is not None:
            return plan.follows_test == (device.pk in self.untested)
        if plan.driver != Driver.MOVERS:
            return plan.zones is None or device.timezone in plan.zones
        changed_at, began = device.timezone_changed_at, self.notification.started_at
        has_moved = changed_at is not None and began is not None and changed_at >= began
        return has_moved or self.notification.has_targets

    def is_kept(self, platform: str) -> bool:
        """Whether the ledger has every delivery on the platform. Retention deletes a batch together
        with its deliveries."""
        ended, plans = self.notification.finished_at, self.plans.get(platform)
        if ended is None or not plans:
            return True
        age = timedelta(days=settings.DELIVERY_RETENTION_DAYS)
        if self.notification.has_targets and not self.has_targets_left:
            return False
        if not any(each.recipient_count for each in plans):
            return True
        return ended > self.now - age and Batch.objects.filter(plan__in=plans).exists()

    @cached_property
    def has_targets_left(self) -> bool:
        return Target.objects.of(self.notification.pk).exists()


def _explained(about: _About, device: Subscription, sent: Sent | None) -> Explained:
    if sent is not None:
        return _from_ledger(about, device, sent)
    if not about.is_kept(device.platform):
        days = settings.DELIVERY_RETENTION_DAYS
        detail = ngettext(
            "Results of recipients are deleted %(days)s day after a notification ends.",
            "Results of recipients are deleted %(days)s days after a notification ends.",
            days,
        ) % {"days": days}
        step = Step(StepName.RETENTION, ok=False, detail=detail)
        return Explained(device, Verdict.UNKNOWN, step.step, [step])
    found = judged(about.case, device)
    if not about.is_planned(device):
        return found
    changes = _changes(device, about.notification.started_at)
    if found.verdict in (Verdict.GETS, Verdict.BOUNCES, Verdict.WAITING):
        step = Step(StepName.CHANGES, ok=False, detail=_NOT_PLANNED)
        steps = [*found.steps, step]
        return Explained(device, Verdict.UNKNOWN, step.step, steps, found.message, changes=changes)
    return Explained(
        device, found.verdict, found.because, found.steps, found.message, changes=changes
    )


_NOT_PLANNED: Final = later(
    "It was no recipient when the audience was read. It would be one now, so something has changed"
    " since."
)


def _from_ledger(about: _About, device: Subscription, sent: Sent) -> Explained:
    """What happened, which is a fact."""
    delivery, message = sent.delivery, shown(about.case, device)
    match delivery.status:
        case DeliveryStatus.DELIVERED:
            step = Step(StepName.DELIVERY, ok=True, detail=_delivered_words(delivery))
            return Explained(device, Verdict.GOT, "", [step], message, sent)
        case DeliveryStatus.BOUNCED:
            words = words_for(Platform(device.platform), delivery.code)
            detail = " ".join(
                str(each) for each in (f"{words.title}.", words.meaning, words.remedy) if each
            )
            step = Step(StepName.DELIVERY, ok=False, detail=detail)
            return Explained(device, Verdict.BOUNCED, delivery.code, [step], message, sent)
    pause, rate = paused(about.case, device), about.notification.rate_per_minute
    detail = pause.detail if pause else _waiting_words(delivery, rate)
    step = Step(StepName.DELIVERY, ok=True, detail=detail)
    because = StepName.PAUSED if pause else delivery.code or ("send_rate" if rate else "")
    return Explained(device, Verdict.WAITING, because, [step], message, sent)


def _delivered_words(delivery: Delivery) -> str:
    if delivery.clicked_at:
        return gettext("The push service accepted it, and the device reported a click.")
    if delivery.received_at or delivery.dismissed_at:
        return gettext("The push service accepted it, and the device reported that it arrived.")
    return gettext(
        "The push service accepted it. The device has not reported that it arrived: it may be off,"
        " without a connection, or not show notifications."
    )


def _waiting_words(delivery: Delivery, rate: int | None) -> str:
    if delivery.code == QUIET_HOURS and delivery.due_at:
        words = gettext("Its quiet hours end at %(at)s.")
        return words % {"at": format_timestamp(delivery.due_at)}
    if delivery.attempts:
        return ngettext(
            "It is tried again after %(attempts)s attempt.",
            "It is tried again after %(attempts)s attempts.",
            delivery.attempts,
        ) % {"attempts": delivery.attempts}
    if rate:
        return ngettext(
            "Its turn has not come yet. The send goes to at most %(rate)s recipient a minute.",
            "Its turn has not come yet. The send goes to at most %(rate)s recipients a minute.",
            rate,
        ) % {"rate": localized(f"{rate:,}")}
    return gettext("Its turn has not come yet.")


def _changes(device: Subscription, began: datetime | None) -> list[str]:
    """Facts about the device that are newer than the notification. Changes of attributes, tags and
    choices have no time."""
    subscribed, ended = gettext("It subscribed at %(at)s."), gettext("It ended at %(at)s.")
    moments = {
        subscribed: device.created_at,
        gettext(
            "It visited again at %(at)s, and may have been inactive before."
        ): device.registered_at,
        gettext("Its time zone changed at %(at)s."): device.timezone_changed_at,
        gettext("It was linked to another person at %(at)s."): device.linked_at,
        ended: device.expired_at,
    }
    newer = {words: at for words, at in moments.items() if at and began and at > began}
    if subscribed in newer:
        newer = {words: newer[words] for words in newer if words in (subscribed, ended)}
    return [words % {"at": format_timestamp(at)} for words, at in newer.items()]


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
