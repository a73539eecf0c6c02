"""A client of pushsvc: `Client`, and `AsyncClient` with the same methods."""

from pushsvc_client.client import AsyncClient, Client
from pushsvc_client.errors import FieldError, InvalidWebhook, PushsvcError, Refused, Unreachable
from pushsvc_client.types import (
    Channel,
    ChannelPlatforms,
    ChannelStatistics,
    Message,
    Notification,
    NotificationDetails,
    NotificationStatus,
    Platform,
    Sent,
    Urgency,
)
from pushsvc_client.webhooks import Webhook, verify_webhook

__all__ = [
    "AsyncClient",
    "Channel",
    "ChannelPlatforms",
    "ChannelStatistics",
    "Client",
    "FieldError",
    "InvalidWebhook",
    "Message",
    "Notification",
    "NotificationDetails",
    "NotificationStatus",
    "Platform",
    "PushsvcError",
    "Refused",
    "Sent",
    "Unreachable",
    "Urgency",
    "Webhook",
    "verify_webhook",
]
