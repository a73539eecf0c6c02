"""Explains sends and notifications, and records in the audit log who asked about whom."""

from dataclasses import dataclass
from uuid import UUID

from channels_app import audit
from channels_app.models import Channel
from notifications_app.content.values import SendRequest
from notifications_app.pipeline.contacts import caps_from
from notifications_app.reporting.explaining import (
    Explanation,
    devices_asked,
    notification_explained,
    send_explained,
)
from notifications_app.reporting.judging import Case
from notifications_app.sends.checks import (
    caps_of,
    channel_check,
    content_check,
    time_check,
    with_defaults,
)
from notifications_app.sends.dry_run import audience_rule
from pushsvc.common.store import sql
from subscriptions_app.models import Person, Subscription


@dataclass(frozen=True, slots=True)
class Who:
    """The person or the subscription that is asked about: one of the two ids."""

    external_id: str | None = None
    subscription_id: UUID | None = None


def send_explain(*, channel: Channel, request: SendRequest, who: Who) -> Explanation:
    """Explains a send without storing it. Raises NotFound for `who`, and what
    `notification_dry_run` raises for the send."""
    person, devices = _found(channel, who)
    request = with_defaults(channel, request)
    channel_check(channel, request)
    content_check(request)
    due = time_check(channel, request)
    case = Case(
        channel=channel,
        devices=devices,
        content=request.content,
        platforms=request.target_platforms,
        rule=audience_rule(channel.id, request),
        targets=request.targets,
        category=request.category,
        caps=caps_from(caps_of(channel, request)),
        timing=due.timing,
        due_at=max(due.at or sql.now(), sql.now()),
        expires_at=request.expires_at,
        has_test=request.test is not None,
        root_id=request.root_id,
    )
    _record(person, devices, "A send was explained.")
    return send_explained(case)


def notification_explain(*, channel: Channel, notification_id: UUID, who: Who) -> Explanation:
    """Explains a stored notification. Raises NotFound."""
    person, devices = _found(channel, who)
    explained = notification_explained(channel, notification_id, devices)
    _record(person, devices, f"Notification {notification_id} was explained.")
    return explained


def _found(channel: Channel, who: Who) -> tuple[Person | None, list[Subscription]]:
    return devices_asked(
        channel.pk, external_id=who.external_id, subscription_id=who.subscription_id
    )


def _record(person: Person | None, devices: list[Subscription], note: str) -> None:
    """An entry about the person, or about the device that belongs to nobody."""
    audit.record(person or devices[0], audit.Action.ACCESS, note=note)
