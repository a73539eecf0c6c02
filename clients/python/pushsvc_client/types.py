"""The service's answers. Times are ISO 8601 texts in UTC."""

from typing import Literal, Required, TypedDict

Platform = Literal["web", "android", "ios"]
Urgency = Literal["very-low", "low", "normal", "high"]
NotificationStatus = Literal["pending", "processing", "sent", "failed", "cancelled"]
FINAL: frozenset[NotificationStatus] = frozenset({"sent", "failed", "cancelled"})


class Message(TypedDict, total=False):
    """What can be sent. /docs of the service describes each field."""

    body: Required[str]
    title: str
    url: str
    icon: str
    image: str
    scheduled_at: str
    expires_at: str
    segment_id: str
    target_platforms: list[Platform]
    data: dict[str, str]
    ttl: int
    urgency: Urgency
    topic: str


class Sent(TypedDict):
    success: bool
    message: str
    notification_id: str
    scheduled_at: str
    status: NotificationStatus


class Notification(TypedDict):
    notification_id: str
    channel_id: str
    title: str
    body: str
    icon: str
    url: str
    recipient_count: int
    delivered_count: int
    bounced_count: int
    clicked_count: int
    scheduled_at: str
    created_at: str
    status: NotificationStatus
    target_platforms: list[Platform]
    segment_id: str | None


class Channel(TypedDict):
    channel_id: str
    name: str
    created_at: str
    platforms: dict[Platform, bool]


class NotificationStatistics(TypedDict):
    total_notifications_sent: int
    total_recipients: int
    total_delivered: int
    total_bounced: int
    total_clicked: int


class ChannelStatistics(TypedDict):
    channel_info: Channel
    subscriber_count: int
    notification_stats: NotificationStatistics


class Audience(TypedDict):
    kind: Literal["channel", "segment", "subscription"]
    segment_id: str | None
    subscription_id: str | None


class Timing(TypedDict):
    scheduled_at: str
    started_at: str | None
    deadline_at: str | None
    expires_at: str | None
    finished_at: str | None


class Content(TypedDict):
    title: str
    body: str
    icon: str
    url: str
    image: str
    data: dict[str, str]
    ttl: int
    urgency: Urgency
    topic: str


class PlatformDetails(TypedDict):
    recipient_count: int
    delivered_count: int
    bounced_count: int
    planned: bool


class Reason(TypedDict):
    platform: Platform
    code: str
    count: int


class NotificationDetails(TypedDict):
    notification_id: str
    status: NotificationStatus
    paused: bool
    stopped: bool
    edited_at: str | None
    audience: Audience
    timing: Timing
    content: Content
    platforms: dict[Platform, PlatformDetails]
    reasons: list[Reason]
    received_count: int
    clicked_count: int
    dismissed_count: int


class PlatformPause(TypedDict):
    code: str
    detail: str
    since: str


class Credential(TypedDict):
    kind: Literal["vapid_key", "fcm_service_account", "apns_key"]
    id: str


class PlatformState(TypedDict):
    enabled: bool
    subscriber_count: int
    paused: PlatformPause | None
    credential: Credential | None


class ChannelPlatforms(TypedDict):
    platforms: dict[Platform, PlatformState]
