"""Reads what a worker needs to serve batches: messages, due recipients, addresses and keys."""

import math
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple, Self
from uuid import UUID

from django.conf import settings

from channels_app.models import Channel
from channels_app.selectors import channel_get
from notifications_app.content.personal import values_of
from notifications_app.content.placeholders import Values
from notifications_app.delivery.messages import Messages, Unsendable
from notifications_app.delivery.registry import TRANSPORTS, Credentials, VapidKeys
from notifications_app.delivery.types import Destination, Message, Site
from notifications_app.models import Notification
from notifications_app.pipeline.destinations import destination_of, read_destinations
from notifications_app.pipeline.lease import Lease
from notifications_app.pipeline.transitions import (
    OPTED_OUT,
    PERSON_CHANGED,
    QUIET_HOURS,
    UNSUBSCRIBED,
    DueDelivery,
    Limits,
    Transition,
    postpone,
)
from notifications_app.querysets import RUNNING_COUNTS
from notifications_app.selectors import NamedNow, naming, still_named
from notifications_app.states import STATES
from notifications_app.timing import Timing
from pushsvc.common.correlation import Correlation
from pushsvc.common.platforms import Platform
from pushsvc.common.store import sql
from subscriptions_app.categories.consent import refusing
from subscriptions_app.devices.selectors import DeliveryDevice, delivery_devices


class Recipient(NamedTuple):
    """A recipient to serve now, with an active subscription. `unsendable`: why no message can be
    made for it, or None; then `message` is the common one. `quiet_at`: when quiet hours begin where
    it is, on the monotonic clock, if that is soon."""

    delivery: DueDelivery
    message: Message
    limits: Limits
    device: DeliveryDevice
    destination: Destination
    unsendable: Unsendable | None = None
    quiet_at: float = math.inf

    @property
    def is_first_attempt(self) -> bool:
        return not self.delivery.attempts

    @property
    def is_proven(self) -> bool:
        return self.device.is_proven


@dataclass(frozen=True)
class PassRead:
    """What was read for a pass. `recipients`: the recipients to serve, in this order. `withdrawn`:
    recipients that must not get the message any more, with the code of their bounce. `postponed`:
    the transitions of recipients that have quiet hours now.
    `credential_version`: the version that a refusal pauses; 0 if the platform cannot be paused.
    `correlations`: of the notifications, by batch."""

    recipients: Sequence[Recipient]
    withdrawn: Sequence[tuple[DueDelivery, str]]
    postponed: Sequence[Transition]
    credentials: Credentials | VapidKeys
    credential_version: int
    correlations: Mapping[int, Correlation]


class Halted(Exception):
    """A notification of the claim is paused or stopped, so no call may be made for it."""


@dataclass(frozen=True)
class _Terms:
    """What is the same for all recipients of a batch."""

    notification_id: UUID
    messages: Messages
    limits: Limits
    wanted_at: datetime
    timing: Timing | None
    category: str
    named_by: UUID | None
    sent_vars: Mapping[str, Any]
    notification_text: str
    correlation: Correlation

    @property
    def needs(self) -> frozenset[str]:
        """The fields of devices that its texts and its quiet hours need."""
        own = {"timezone"} if self.has_quiet_hours else set()
        return self.messages.needs | own

    @property
    def has_quiet_hours(self) -> bool:
        return self.timing is not None and self.timing.quiet is not None


def read(leases: Sequence[Lease], *, even_paused: bool = False) -> PassRead:
    """Reads the batches of a claim. `even_paused`: as in `read_destinations`. Raises Halted, and
    what `read_destinations` raises if the credentials cannot be used."""
    platform, channel_id = leases[0].platform, leases[0].channel_id
    terms = _terms(leases)
    due = [_due_delivery(row, terms) for row in due_deliveries(terms)]
    ids = {each.subscription_id for each in due}
    needed = frozenset().union(*(own.needs for own in terms.values()))
    clock = _QuietClock(leases[0])
    reachable = read_destinations(platform, channel_id, ids, needed=needed, even_paused=even_paused)
    opted_out = _opted_out(channel_id, terms, due)
    named = _named(terms, due)
    recipients, withdrawn, postponed = [], [], []
    for delivery in due:
        own, device = terms[delivery.batch_id], reachable.devices.get(delivery.subscription_id)
        pair = (own.named_by, delivery.subscription_id) if own.named_by else None
        if device is None:
            withdrawn.append((delivery, UNSUBSCRIBED))
        elif pair and pair not in named:
            withdrawn.append((delivery, PERSON_CHANGED))
        elif own.category and delivery.subscription_id in opted_out[own.category]:
            withdrawn.append((delivery, OPTED_OUT))
        elif until := clock.until(own.timing, device.timezone):
            postponed.append(postpone(delivery, until, deadline=own.limits.deadline))
        else:
            now = named.get(pair) if pair and own.named_by == own.notification_id else None
            found = _recipient(platform, own, delivery, device, now)
            if own.timing and own.timing.quiet:
                found = clock.applied(found, own.timing)
            recipients.append(found)
    return PassRead(
        recipients,
        withdrawn,
        postponed,
        reachable.credentials,
        reachable.credential_version,
        {batch_id: own.correlation for batch_id, own in terms.items()},
    )


def read_quiet(leases: Sequence[Lease]) -> tuple[Sequence[Transition], Set[int]]:
    """The transitions of the due recipients of batches that cannot be served now, but who have
    quiet hours now and would not be called anyway, and ids of the batches with other recipients.
    Raises Halted."""
    terms = _terms(leases)
    if not any(own.has_quiet_hours for own in terms.values()):
        return [], terms.keys()
    due = [_due_delivery(row, terms) for row in due_deliveries(terms)]
    ids = {each.subscription_id for each in due}
    zones = {each.id: each.timezone for each in delivery_devices(ids, asked={"timezone"})}
    clock, postponed, others = _QuietClock(leases[0]), [], set()
    for delivery in due:
        own, zone = terms[delivery.batch_id], zones.get(delivery.subscription_id)
        until = None if zone is None else clock.until(own.timing, zone)
        if until:
            postponed.append(postpone(delivery, until, deadline=own.limits.deadline))
        else:
            others.add(delivery.batch_id)
    return postponed, others


def _due_delivery(row: tuple[Any, ...], terms: Mapping[int, _Terms]) -> DueDelivery:
    *columns, quiet_until = row
    wanted_at = terms[row[0]].wanted_at
    return DueDelivery(*(*columns, max(wanted_at, quiet_until or wanted_at)))


class _QuietClock:
    """The quiet hours of the zones of a pass, by the database's clock at its begin."""

    def __init__(self, lease: Lease) -> None:
        self._lease = lease
        self._now = lease.now()
        self._until: dict[tuple[Timing, str], datetime | None] = {}
        self._begins: dict[tuple[Timing, str], float] = {}

    def until(self, timing: Timing | None, zone: str) -> datetime | None:
        """When they end in the zone; None if it has none now."""
        if timing is None or timing.quiet is None:
            return None
        key = timing, zone
        if key not in self._until:
            self._until[key] = timing.quiet_until(zone, self._now)
        return self._until[key]

    def applied(self, recipient: Recipient, timing: Timing) -> Recipient:
        """With when they begin. A recipient that was called before is wanted from the end of its
        last quiet hours before its first call on, because its attempts began anew then."""
        delivery, zone = recipient.delivery, recipient.device.timezone
        if called_at := delivery.first_attempt_at:
            ended_at = timing.quiet_ended(zone, called_at) or delivery.wanted_at
            delivery = delivery._replace(wanted_at=max(delivery.wanted_at, ended_at))
        return recipient._replace(delivery=delivery, quiet_at=self.begins(timing, zone))

    def begins(self, timing: Timing, zone: str) -> float:
        """When they begin in the zone, on the monotonic clock, if that is during the pass."""
        key = timing, zone
        if key not in self._begins:
            seconds = settings.LEASE_SECONDS
            found = timing.quiet_within(zone, self._now, seconds=seconds)
            self._begins[key] = self._lease.local(found) if found else math.inf
        return self._begins[key]


def _recipient(
    platform: Platform,
    own: _Terms,
    delivery: DueDelivery,
    device: DeliveryDevice,
    named: NamedNow | None,
) -> Recipient:
    messages = own.messages
    message, unsendable = messages.of(device.language), None
    if messages.is_personal:
        found = messages.for_recipient(device.language, _values(platform, own, device, named))
        if isinstance(found, Unsendable):
            unsendable = found
        else:
            message = found
    destination = destination_of(platform, own.notification_id, device)
    return Recipient(delivery, message, own.limits, device, destination, unsendable)


def _values(
    platform: Platform, own: _Terms, device: DeliveryDevice, named: NamedNow | None
) -> Values:
    return values_of(
        platform=platform,
        notification_id=own.notification_text,
        attributes=device.attributes,
        sent_vars={**own.sent_vars, **named.vars} if named and named.vars else own.sent_vars,
        external_id=named.external_id if named else device.external_id,
        language=device.language,
        timezone=device.timezone,
    )


def _opted_out(
    channel_id: UUID, terms: Mapping[int, _Terms], due: Sequence[DueDelivery]
) -> Mapping[str, Set[UUID]]:
    """The subscriptions that refuse each category now. Choices may have changed since the
    recipients were planned."""
    by_category = defaultdict(list)
    for delivery in due:
        if category := terms[delivery.batch_id].category:
            by_category[category].append(delivery.subscription_id)
    return {category: refusing(channel_id, category, ids) for category, ids in by_category.items()}


def _named(
    terms: Mapping[int, _Terms], due: Sequence[DueDelivery]
) -> Mapping[tuple[UUID, UUID], NamedNow]:
    """By (id of the notification with the targets, subscription id): how targets name the
    subscriptions of due deliveries. Subscriptions that no target names any more are missing. Must
    be read after the addresses, because the device could be linked to another person in
    between."""
    with_terms = ((terms[delivery.batch_id], delivery) for delivery in due)
    of_targets = [
        (own.named_by, delivery.subscription_id) for own, delivery in with_terms if own.named_by
    ]
    return still_named(of_targets) if of_targets else {}


def _terms(leases: Sequence[Lease]) -> Mapping[int, _Terms]:
    """The terms of each batch, by its id. Raises Halted."""
    # One statement, so that an edit of text and deadline is read completely or not at all.
    ids = {lease.plan_id for lease in leases}
    found = sql.rows(READ_PLANS, {"ids": list(ids)}, is_prepared=sql.are_few(ids))
    plans = {row[0]: _PlanRead.of(row) for row in found}
    if any(plan.notification.is_halted for plan in plans.values()):
        raise Halted
    channel = _declaring_channel(leases[0])
    kinds = {(lease.plan_id, lease.variant): lease for lease in leases}
    named_by = naming(plan.notification for plan in plans.values())
    of_kinds = {
        kind: _terms_of(plans[lease.plan_id], lease, channel, named_by)
        for kind, lease in kinds.items()
    }
    return {lease.batch_id: of_kinds[lease.plan_id, lease.variant] for lease in leases}


def _declaring_channel(lease: Lease) -> Channel | None:
    """The channel, if browsers at the push service show declarative messages."""
    is_declaring = lease.push_service in TRANSPORTS[lease.platform].declarative_services
    return channel_get(lease.channel_id) if is_declaring else None


class _PlanRead(NamedTuple):
    """What a pass needs of a plan. `until`: as in Plan. `call_until`: no call may begin later."""

    part: int
    until: UUID | None
    release_at: datetime
    has_rate: bool | None
    call_until: datetime
    notification: Notification

    @classmethod
    def of(cls, row: Sequence[Any]) -> Self:
        """From a row of READ_PLANS."""
        _, part, until, release_at, has_rate, call_until, *values = row
        notification = sql.read_row(Notification, _NOTIFICATION_FIELDS, values)
        return cls(part, until, release_at, has_rate, call_until, notification)


def _terms_of(
    plan: _PlanRead, lease: Lease, channel: Channel | None, named_by: Mapping[UUID, UUID]
) -> _Terms:
    notification, limits = plan.notification, _limits(plan.notification, plan.call_until)
    return _Terms(
        notification_id=notification.pk,
        messages=Messages(
            notification.pk,
            notification.content.of_variant(lease.variant),
            lease.platform,
            expires_at=lease.local(limits.deadline),
            site=Site.of(channel.site_url, channel.name) if channel else None,
            root_id=notification.root_id,
        ),
        limits=limits,
        wanted_at=_wanted_at(plan, lease),
        timing=notification.timed,
        category=notification.category,
        named_by=named_by.get(notification.pk),
        sent_vars=notification.vars or {},
        notification_text=str(notification.pk),
        correlation=notification.correlation,
    )


def _wanted_at(plan: _PlanRead, lease: Lease) -> datetime:
    """The time from which recipients are to get the message, moved by the duration of pauses. With
    a rate, it is the claim."""
    if plan.has_rate:
        return lease.claimed_at
    notification = plan.notification
    asked_at = max(notification.scheduled_at, notification.created_at)
    released_at = plan.release_at if plan.part and plan.until is None else asked_at
    return released_at + timedelta(seconds=notification.paused_seconds)


def due_deliveries(batch_ids: Collection[int]) -> list[tuple[Any, ...]]:
    """The columns of DueDelivery, except `wanted_at`, of due recipients, and until when one was
    postponed by quiet hours. The fewest attempts first, and of these the uncalled ones first. So a
    recipient that crashes workers, or that fails repeatedly while few calls may be made, does not
    hold up the others."""
    return sql.rows(READ_DUE, {"ids": list(batch_ids)}, is_prepared=sql.are_few(batch_ids))


def _limits(notification: Notification, deadline: datetime) -> Limits:
    return Limits(
        deadline=deadline,
        attempts=settings.HAND_OVER_ATTEMPTS if notification.ttl else 1,
        seconds=settings.HAND_OVER_SECONDS + notification.paused_seconds,
    )


# Without the counts to which shares are added, because a pass does not need them.
_NOTIFICATION_FIELDS: Final = [
    each for each in Notification._meta.concrete_fields if each.attname not in RUNNING_COUNTS
]

# In SQL, because the ORM needs longer to compile these statements than the database to run them.
READ_PLANS: Final = f"""
SELECT plan.id, plan.part, plan.until, plan.release_at, plan.has_rate,
  least(plan.deadline_at, notification.expires_at),
  {", ".join(f"notification.{each.column}" for each in _NOTIFICATION_FIELDS)}
FROM notifications_app_plan plan
JOIN notifications_app_notification notification ON notification.id = plan.notification_id
WHERE plan.id = ANY(%(ids)s::bigint[])
"""  # noqa: S608 - names of our own

READ_DUE: Final = sql.with_constants(
    """
SELECT batch_id, subscription_id, attempts, first_attempt_at, solo_attempts,
  CASE WHEN code = %(quiet_hours)s THEN due_at END
FROM notifications_app_delivery
WHERE batch_id = ANY(%(ids)s::bigint[]) AND status = %(delivery_waiting)s
  AND (due_at IS NULL OR due_at <= statement_timestamp())
ORDER BY solo_attempts, attempts, due_at NULLS FIRST, subscription_id
""",
    STATES | {"quiet_hours": QUIET_HOURS},
)
