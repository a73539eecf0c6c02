"""Reads of notifications, always within one channel."""

from datetime import datetime
from uuid import UUID

from notifications_app.models import Notification
from pushsvc.common import sql
from pushsvc.common.errors import NotFound


def notification_get(*, channel_id: UUID, notification_id: UUID) -> Notification:
    """Raises NotFound, also for another channel's."""
    found = Notification.objects.filter(id=notification_id, channel_id=channel_id).first()
    if found is None:
        raise NotFound("There is no such notification.")
    return found


def notification_page(*, channel_id: UUID, limit: int, offset: int) -> list[Notification]:
    """Newest first. An offset past the end is an empty page."""
    notifications = Notification.objects.filter(channel_id=channel_id).defer("data")
    return list(notifications.order_by("-created_at", "-id")[offset : offset + limit])


def database_now() -> datetime:
    moment: datetime = sql.rows("SELECT statement_timestamp()", {})[0][0]
    return moment
