"""A client of pushsvc: `Client`, and `AsyncClient` with the same methods."""

from pushsvc_client.client import AsyncClient, Client
from pushsvc_client.errors import Fault, PushsvcError, Refused, Unreachable
from pushsvc_client.types import (
    Channel,
    ChannelStatistics,
    Message,
    Notification,
    NotificationStatus,
    Platform,
    Sent,
    Urgency,
)

__all__ = [
    "AsyncClient",
    "Channel",
    "ChannelStatistics",
    "Client",
    "Fault",
    "Message",
    "Notification",
    "NotificationStatus",
    "Platform",
    "PushsvcError",
    "Refused",
    "Sent",
    "Unreachable",
    "Urgency",
]
