"""Accepts, tests, pauses, resumes, stops and cancels notifications; deletes a segment that no
notification needs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.db import transaction
from django.db.models.functions import Now

from channels_app import audit
from channels_app.models import Channel
from channels_app.selectors import is_enabled
from notifications_app import idempotency, selectors
from notifications_app.content import CONTENT_FIELDS, Content, SendRequest
from notifications_app.delivery.registry import TRANSPORTS
from notifications_app.delivery.types import Message
from notifications_app.errors import (
    NotCancellable,
    NotRunning,
    PayloadTooLarge,
    SegmentInUse,
    SegmentNotFound,
)
from notifications_app.models import Notification
from notifications_app.pipeline import halting
from notifications_app.querysets import NotificationQuerySet
from notifications_app.states import NotificationStatus
from notifications_app.tasks import wake_planner
from notifications_app.tracking import make_token
from pushsvc.common.errors import Fault, Invalid, NotFound
from pushsvc.common.ids import uuid7
from pushsvc.common.platforms import PLATFORM_NAMES, Platform
from pushsvc.common.store import sql
from pushsvc.common.timestamps import format_timestamp, parse_timestamp
from subscriptions_app.errors import PlatformNotEnabled
from subscriptions_app.segments.rules import Rule
from subscriptions_app.selectors import (
    Size,
    audience_size,
    segment_get,
    segment_hold,
    segment_locked,
    subscription_active,
)

_WAS_PENDING: Final = {"status": NotificationStatus.PENDING}
_IS_CANCELLED: Final = {"status": NotificationStatus.CANCELLED}
_ANY_ID: Final = UUID(int=0)  # a payload has the same size with any id


@dataclass(frozen=True, slots=True)
class Acceptance:
    """A notification that is stored and will be sent."""

    notification_id: UUID
    scheduled_at: datetime


@dataclass(frozen=True, slots=True)
class DryRun:
    """What a send would be on one platform: bytes for each device, and how many devices."""

    payload_bytes: int
    payload_limit: int
    audience: Size


def notification_accept(
    *, channel: Channel, request: SendRequest, body: Any, idempotency_key: str | None = None
) -> Acceptance:
    """Stores the notification in a committed transaction; it will be sent.

    With a key, safe to repeat: the same `body` (parsed JSON) returns the first acceptance again.
    Raises PlatformNotEnabled, SegmentNotFound, PayloadTooLarge, and what idempotency.answer_once
    raises.
    """
    if _is_one_statement(request, idempotency_key):
        return _store(channel, request)
    with transaction.atomic():
        if idempotency_key is None:
            return _store(channel, request)
        answer = idempotency.answer_once(
            channel_id=channel.id,
            key=idempotency_key,
            body=body,
            act=lambda: _as_answer(_store(channel, request)),
        )
        return _from_answer(answer)


def _is_one_statement(request: SendRequest, idempotency_key: str | None) -> bool:
    """Whether storing it inserts a row and does nothing else, which needs no transaction."""
    return idempotency_key is None and request.segment_id is None and not audit.is_by_staff()


def notification_test(*, channel: Channel, content: Content, subscription_id: UUID) -> UUID:
    """Sends the content at once to one subscription and to no other; the notification's id.

    It goes through the same pipeline and counts like any other notification. Raises NotFound if
    the channel has no such active subscription, and what `notification_accept` raises.
    """
    device = subscription_active(channel_id=channel.id, subscription_id=subscription_id)
    test = SendRequest(
        content=content,
        target_platforms=(Platform(device.platform),),
        only_subscription_id=device.id,
    )
    return notification_accept(channel=channel, request=test, body=None).notification_id


def notification_dry_run(*, channel: Channel, request: SendRequest) -> Mapping[Platform, DryRun]:
    """Checks all that `notification_accept` checks and stores nothing. By platform."""
    _check_platforms(channel, request)
    sizes = content_check(request)
    expiry_check(request)
    audience = audience_size(channel.id, _rule(channel.id, request.segment_id), sizes)
    return {
        platform: DryRun(size, TRANSPORTS[platform].max_payload, audience[platform])
        for platform, size in sizes.items()
    }


def notification_cancel(*, channel_id: UUID, notification_id: UUID) -> Notification:
    """Cancels a pending notification, so that it is not sent, and returns it. Safe to repeat.

    Raises NotFound, NotCancellable.
    """
    with transaction.atomic():
        own = Notification.objects.filter(id=notification_id, channel_id=channel_id)
        pending = own.filter(status=NotificationStatus.PENDING)
        cancelled = pending.become(NotificationStatus.CANCELLED, finished_at=Now())
        notification = selectors.notification_get(
            channel_id=channel_id, notification_id=notification_id
        )
        if cancelled and audit.is_by_staff():
            audit.record(notification, audit.Action.UPDATE, _WAS_PENDING, _IS_CANCELLED)
    if notification.status != NotificationStatus.CANCELLED:
        raise NotCancellable(notification.id, notification.status)
    return notification


def notification_pause(*, channel_id: UUID, notification_id: UUID) -> Notification:
    """Pauses a notification that is pending or processing, and returns it. Safe to repeat.

    A pending one does not start. Of one that is processing nobody else becomes a recipient, and no
    call begins later than ten seconds after this returns. Raises NotFound, NotRunning.
    """
    notification = _changed(halting.pause, channel_id, notification_id)
    if not notification.is_paused:
        state = "stopped" if notification.is_stopped else notification.status
        raise NotRunning(notification.id, state)
    return notification


def notification_resume(*, channel_id: UUID, notification_id: UUID) -> Notification:
    """Resumes a notification if it is paused, and returns it. Safe to repeat. Raises NotFound."""
    return _changed(halting.resume, channel_id, notification_id)


def notification_stop(*, channel_id: UUID, notification_id: UUID) -> Notification:
    """Stops a notification that is processing, for good, and returns it. Safe to repeat.

    No call begins later than ten seconds after this returns. The recipients that wait bounce as
    `stopped` within seconds, then the notification ends. Raises NotFound, NotRunning.
    """
    notification = _changed(halting.stop, channel_id, notification_id)
    if not notification.is_stopped:
        is_pending = notification.status == NotificationStatus.PENDING
        remedy = "Cancel it instead." if is_pending else ""
        raise NotRunning(notification.id, notification.status, remedy)
    return notification


def segment_delete(*, channel_id: UUID, segment_id: UUID) -> None:
    """Raises NotFound, and SegmentInUse while an unfinished notification targets it.

    A concurrent send that names the segment is either seen here or is refused.
    """
    with transaction.atomic():
        segment = segment_locked(channel_id=channel_id, segment_id=segment_id)
        user = selectors.segment_user(segment_id)
        if user is not None:
            raise SegmentInUse(user.id, user.status)
        audit.record(segment, audit.Action.DELETE, audit.fields_of(segment))
        segment.delete()


def _changed(
    change: Callable[[NotificationQuerySet[Notification]], object],
    channel_id: UUID,
    notification_id: UUID,
) -> Notification:
    change(Notification.objects.filter(id=notification_id, channel_id=channel_id))
    return selectors.notification_get(channel_id=channel_id, notification_id=notification_id)


def send_check(*, channel: Channel, request: SendRequest) -> None:
    """Raises for a send that may not be stored. Keeps its segment until the transaction ends."""
    audience_check(channel=channel, request=request)
    content_check(request)
    expiry_check(request)


def audience_check(*, channel: Channel, request: SendRequest) -> None:
    """Raises PlatformNotEnabled, SegmentNotFound. Keeps the segment until the transaction ends."""
    _check_platforms(channel, request)
    segment_id = request.segment_id
    if segment_id and not segment_hold(channel_id=channel.id, segment_id=segment_id):
        raise SegmentNotFound


def content_check(request: SendRequest) -> dict[Platform, int]:
    """Bytes of the message by platform. Raises Invalid, PayloadTooLarge."""
    for platform in request.target_platforms:
        _check_data_names(platform, request.content.data)
    message = Message(_ANY_ID, request.content, expires_at=0.0)
    token = make_token(_ANY_ID, _ANY_ID)
    return {
        platform: _payload_size(platform, message, token) for platform in request.target_platforms
    }


def expiry_check(request: SendRequest) -> None:
    """Raises Invalid for a send that would expire before it is due."""
    if request.expires_at is None:
        return
    now = sql.now()
    if request.expires_at <= max(request.scheduled_at or now, now):
        detail = "Must be later than `scheduled_at` and later than now."
        raise Invalid([Fault("expires_at", "out_of_range", detail)])


def _store(channel: Channel, request: SendRequest) -> Acceptance:
    send_check(channel=channel, request=request)
    notification = _insert(channel, request)
    if audit.is_by_staff():
        _record_composed(notification)
    if notification.scheduled_at <= notification.created_at:
        transaction.on_commit(wake_planner)
    return Acceptance(notification.id, notification.scheduled_at)


def _insert(channel: Channel, request: SendRequest) -> Notification:
    """`created_at`, and `scheduled_at` of a send at once, are the database's time."""
    times = {"scheduled_at": request.scheduled_at} if request.scheduled_at else {}
    notification = Notification(
        id=uuid7(),
        channel=channel,
        **{name: getattr(request.content, name) for name in CONTENT_FIELDS},
        data_names=list(request.content.data),
        target_platforms=request.target_platforms,
        segment_id=request.segment_id,
        only_subscription_id=request.only_subscription_id,
        expires_at=request.expires_at,
        **times,
    )
    sql.insert(notification)
    return notification


def _as_answer(acceptance: Acceptance) -> idempotency.Answer:
    return {
        "notification_id": str(acceptance.notification_id),
        "scheduled_at": format_timestamp(acceptance.scheduled_at),
    }


def _from_answer(answer: idempotency.Answer) -> Acceptance:
    return Acceptance(UUID(answer["notification_id"]), parse_timestamp(answer["scheduled_at"]))


def _record_composed(notification: Notification) -> None:
    note = f"A test for {notification.only_subscription_id}." if notification.is_test else ""
    after = audit.fields_of(notification)
    audit.record(notification, audit.Action.CREATE, after=after, note=note)


def _rule(channel_id: UUID, segment_id: UUID | None) -> Rule | None:
    if segment_id is None:
        return None
    try:
        rule: Rule = segment_get(channel_id=channel_id, segment_id=segment_id).rule
    except NotFound as error:
        raise SegmentNotFound from error
    return rule


def _check_platforms(channel: Channel, request: SendRequest) -> None:
    for platform in request.target_platforms:
        if not is_enabled(channel, platform):
            raise PlatformNotEnabled("target_platforms", platform)


def _check_data_names(platform: Platform, data: Mapping[str, str]) -> None:
    names = TRANSPORTS[platform].unusable_data_names(data)
    if names:
        detail = f"This name is reserved on {PLATFORM_NAMES[platform]}; choose another."
        raise Invalid([Fault(f"data.{name}", "reserved_name", detail) for name in names])


def _payload_size(platform: Platform, message: Message, token: str) -> int:
    transport = TRANSPORTS[platform]
    size = len(transport.payload(message, token))
    if size > transport.max_payload:
        raise PayloadTooLarge(platform, size, transport.max_payload)
    return size
