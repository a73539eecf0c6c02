"""Accepting a notification, trying one out, cancelling one; deleting a segment that none needs."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.db import transaction
from django.db.models.functions import Now

from channels_app import audit
from channels_app.models import Channel
from notifications_app import idempotency, selectors
from notifications_app.delivery.fcm.transport import unusable_data_names
from notifications_app.delivery.registry import PAYLOADS, PLATFORMS
from notifications_app.delivery.types import Message
from notifications_app.errors import (
    NotCancellable,
    PayloadTooLarge,
    SegmentInUse,
    SegmentNotFound,
)
from notifications_app.models import Notification
from notifications_app.pipeline.targets import message_of
from notifications_app.states import NotificationStatus
from notifications_app.tasks import ring_planner
from notifications_app.tracking import make_token
from pushsvc.common.errors import Fault, Invalid, NotFound
from pushsvc.common.ids import uuid7
from pushsvc.common.platforms import Platform
from pushsvc.common.store import sql
from pushsvc.common.timestamps import format_timestamp
from subscriptions_app.errors import PlatformNotEnabled
from subscriptions_app.segments.rules import Rule
from subscriptions_app.selectors import (
    audience_size,
    segment_get,
    segment_hold,
    segment_locked,
    subscription_active,
)

_WAS_PENDING: Final = {"status": NotificationStatus.PENDING}
_IS_CANCELLED: Final = {"status": NotificationStatus.CANCELLED}
_ANYBODY: Final = UUID(int=0)  # a token is as long for one subscription as for another


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """What a sender asks for. `scheduled_at` None: at once. `ttl` is in seconds.

    `only_subscription_id`: a test, for one subscription and nobody else.
    """

    title: str
    body: str
    icon: str
    url: str
    image: str
    data: Mapping[str, str]
    ttl: int
    urgency: str
    topic: str
    target_platforms: tuple[str, ...]
    segment_id: UUID | None
    scheduled_at: datetime | None
    only_subscription_id: UUID | None = None


def notification_accept(
    *, channel: Channel, draft: Draft, body: Any, idempotency_key: str | None = None
) -> dict[str, Any]:
    """The answer to give with 202: the notification is stored, in a committed transaction.

    With a key, safe to repeat: the same `body` (parsed JSON) gets the first answer again. Raises
    PlatformNotEnabled, SegmentNotFound, PayloadTooLarge, and what idempotency.answer_once does.
    """
    with transaction.atomic():
        if idempotency_key is None:
            return _store(channel, draft)
        return idempotency.answer_once(
            channel_id=channel.id,
            key=idempotency_key,
            body=body,
            act=lambda: _store(channel, draft),
        )


def notification_test(*, channel: Channel, draft: Draft, subscription_id: UUID) -> UUID:
    """Sends the draft at once to one subscription and to nobody else; the notification's id.

    It goes through the same pipeline and counts like any other: that is what it tests. Raises
    NotFound where the channel has no such active subscription, else as `notification_accept`.
    """
    device = subscription_active(channel_id=channel.id, subscription_id=subscription_id)
    alone = replace(
        draft,
        target_platforms=(device.platform,),
        segment_id=None,
        scheduled_at=None,
        only_subscription_id=device.id,
    )
    return UUID(notification_accept(channel=channel, draft=alone, body=None)["notification_id"])


def notification_try(*, channel: Channel, draft: Draft) -> dict[str, Any]:
    """All that `notification_accept` checks, and nothing stored: size and audience by platform."""
    sizes = _payload_sizes(_drafted(channel, draft))
    audience = audience_size(channel.id, _rule(channel.id, draft.segment_id), sizes)
    return {
        "platforms": {
            platform: {
                "payload_bytes": size,
                "audience": audience[platform].size,
                "estimated": audience[platform].estimated,
            }
            for platform, size in sizes.items()
        }
    }


def notification_cancel(*, channel_id: UUID, notification_id: UUID) -> Notification:
    """The cancelled notification; it will not be sent. Safe to repeat.

    Raises NotFound, NotCancellable.
    """
    with transaction.atomic():
        cancelled = Notification.objects.filter(
            id=notification_id, channel_id=channel_id, status=NotificationStatus.PENDING
        ).update(status=NotificationStatus.CANCELLED, finished_at=Now())
        notification = selectors.notification_get(
            channel_id=channel_id, notification_id=notification_id
        )
        if cancelled and audit.is_by_staff():
            audit.record(notification, audit.Action.UPDATE, _WAS_PENDING, _IS_CANCELLED)
    if notification.status != NotificationStatus.CANCELLED:
        raise NotCancellable(notification.id, notification.status)
    return notification


def segment_delete(*, channel_id: UUID, segment_id: UUID) -> None:
    """Raises NotFound, and SegmentInUse while a notification needs it.

    A send that names it at the same time is either seen here, or finds it gone.
    """
    with transaction.atomic():
        segment = segment_locked(channel_id=channel_id, segment_id=segment_id)
        user = selectors.segment_user(segment_id)
        if user is not None:
            raise SegmentInUse(user.id, user.status)
        audit.record(segment, audit.Action.DELETE, audit.fields_of(segment))
        segment.delete()


def _store(channel: Channel, draft: Draft) -> dict[str, Any]:
    notification = _drafted(channel, draft)
    _payload_sizes(notification)
    segment_id = draft.segment_id
    if segment_id and not segment_hold(channel_id=channel.id, segment_id=segment_id):
        raise SegmentNotFound
    notification.created_at = now = sql.now()
    notification.scheduled_at = scheduled_at = draft.scheduled_at or now
    notification.save(force_insert=True)
    if audit.is_by_staff():
        _record_composed(notification)
    if scheduled_at <= now:
        transaction.on_commit(ring_planner)
    return _accepted(notification.id, scheduled_at)


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


def _drafted(channel: Channel, draft: Draft) -> Notification:
    """Not stored, and without a time unless the draft has one."""
    return Notification(id=uuid7(), channel=channel, **asdict(draft))


def _accepted(notification_id: UUID, scheduled_at: datetime) -> dict[str, Any]:
    return {
        "success": True,
        "message": f"Notification stored for processing with id {notification_id}.",
        "notification_id": str(notification_id),
        "scheduled_at": format_timestamp(scheduled_at),
        "status": NotificationStatus.PENDING.value,
    }


def _payload_sizes(notification: Notification) -> dict[str, int]:
    """Bytes by platform, of a message that may be sent: this is where a draft is judged."""
    enabled = notification.channel.platforms
    for platform in notification.target_platforms:
        if platform not in PLATFORMS or not enabled[platform]:
            raise PlatformNotEnabled("target_platforms", platform)
    _check_data_names(notification)
    message = message_of(notification, expires_at=0.0)
    token = make_token(notification.id, _ANYBODY)
    return {
        platform: _payload_size(platform, message, token)
        for platform in notification.target_platforms
    }


def _check_data_names(notification: Notification) -> None:
    """On Android `data` shares one level with our own fields and Google's."""
    if Platform.ANDROID in notification.target_platforms:
        detail = "This name is ours or Google's on Android; choose another."
        names = unusable_data_names(notification.data)
        if names:
            raise Invalid([Fault(f"data.{name}", "reserved_name", detail) for name in names])


def _payload_size(platform: str, message: Message, token: str) -> int:
    payload, limit = PAYLOADS[platform]
    size = len(payload(message, token))
    if size > limit:
        raise PayloadTooLarge(platform, size, limit)
    return size
