"""Accepting a notification, trying one out, cancelling one."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.db import transaction
from django.db.models.functions import Now

from channels_app.models import Channel
from channels_app.selectors import channel_totals
from notifications_app import idempotency, selectors
from notifications_app.addressing import message_of
from notifications_app.delivery.android import unusable_data_names
from notifications_app.delivery.registry import PAYLOADS, PLATFORMS
from notifications_app.delivery.types import Message
from notifications_app.errors import NotCancellable, PayloadTooLarge, SegmentNotFound
from notifications_app.models import Notification
from notifications_app.states import NotificationStatus
from notifications_app.tasks import ring_planner
from notifications_app.tracking import make_token
from pushsvc.common.errors import Fault, Invalid
from pushsvc.common.ids import uuid7
from pushsvc.common.platforms import Platform
from pushsvc.common.timestamps import format_timestamp
from subscriptions_app.errors import PlatformNotEnabled

_ANYBODY: Final = UUID(int=0)  # a token is as long for one subscription as for another


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """What a sender asks for. `scheduled_at` None: at once. `ttl` is in seconds."""

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


def notification_try(*, channel: Channel, draft: Draft) -> dict[str, Any]:
    """All that `notification_accept` checks, and nothing stored: size and audience by platform."""
    sizes = _payload_sizes(_drafted(channel, draft))
    totals = asdict(channel_totals(channel.id))
    return {
        "platforms": {
            platform: {
                "payload_bytes": size,
                "audience": totals[f"{platform}_subscribers"],
                "estimated": False,
            }
            for platform, size in sizes.items()
        }
    }


def notification_cancel(*, channel_id: UUID, notification_id: UUID) -> Notification:
    """The cancelled notification; it will not be sent. Safe to repeat.

    Raises NotFound, NotCancellable.
    """
    Notification.objects.filter(
        id=notification_id, channel_id=channel_id, status=NotificationStatus.PENDING
    ).update(status=NotificationStatus.CANCELLED, finished_at=Now())
    notification = selectors.notification_get(
        channel_id=channel_id, notification_id=notification_id
    )
    if notification.status != NotificationStatus.CANCELLED:
        raise NotCancellable(notification.id, notification.status)
    return notification


def _store(channel: Channel, draft: Draft) -> dict[str, Any]:
    notification = _drafted(channel, draft)
    _payload_sizes(notification)
    notification.created_at = now = selectors.database_now()
    notification.scheduled_at = scheduled_at = draft.scheduled_at or now
    notification.save(force_insert=True)
    if scheduled_at <= now:
        transaction.on_commit(ring_planner)
    return _accepted(notification.id, scheduled_at)


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
    if notification.segment_id is not None:
        raise SegmentNotFound
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
