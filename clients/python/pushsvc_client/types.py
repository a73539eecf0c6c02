"""The service's answers. Times are ISO 8601 texts in UTC."""

from typing import Any, Literal, Required, TypedDict

Platform = Literal["web", "android", "ios"]
Urgency = Literal["very-low", "low", "normal", "high"]
NotificationStatus = Literal["pending", "processing", "sent", "failed", "cancelled"]
FINAL: frozenset[NotificationStatus] = frozenset({"sent", "failed", "cancelled"})


class Action(TypedDict, total=False):
    """A button of a notification."""

    id: Required[str]
    title: Required[str]
    url: str | None
    web_url: str | None
    android_url: str | None
    ios_url: str | None
    icon: str | None


class OnPlatform(TypedDict, total=False):
    """What replaces the common content on a platform. None: nothing there. In other fields of a
    message, None is the same as no field."""

    title: str | None
    body: str | None
    url: str | None
    image: str | None


class OnWeb(OnPlatform, total=False):
    badge: str | None
    require_interaction: bool | None
    silent: bool | None
    renotify: bool | None
    tag: str | None
    lang: str | None
    dir: Literal["auto", "ltr", "rtl"] | None
    app_badge: int | None


class OnAndroid(OnPlatform, total=False):
    channel_id: str | None
    sound: str | None
    color: str | None
    small_icon: str | None
    click_action: str | None
    tag: str | None
    count: int | None
    visibility: Literal["private", "public", "secret"] | None
    notification_priority: Literal["min", "low", "default", "high", "max"] | None
    ticker: str | None
    direct_boot_ok: bool | None
    analytics_label: str | None
    data_only: bool | None


class Sound(TypedDict, total=False):
    name: Required[str]
    critical: bool | None
    volume: float | None


class OnIos(OnPlatform, total=False):
    subtitle: str | None
    sound: str | Sound | None
    badge: int | None
    category: str | None
    thread_id: str | None
    interruption_level: Literal["passive", "active", "time-sensitive", "critical"] | None
    relevance_score: float | None
    target_content_id: str | None
    content_available: bool | None


class Translation(TypedDict, total=False):
    """The texts for one language. `actions`: titles of buttons by their ids."""

    title: str | None
    body: str | None
    url: str | None
    image: str | None
    actions: dict[str, str] | None


class Target(TypedDict, total=False):
    """One of the two ids. `vars`: its own values for placeholders."""

    external_id: str | None
    subscription_id: str | None
    vars: dict[str, str | float] | None


class Message(TypedDict, total=False):
    """What can be sent. /docs of the service describes each field. A send needs a `body`, its own
    or that of its template. None takes a field of the template away."""

    template_id: str | None
    body: str
    title: str | None
    url: str | None
    icon: str | None
    image: str | None
    scheduled_at: str | None
    expires_at: str | None
    segment_id: str | None
    category: str | None
    rule: dict[str, Any] | None
    external_ids: list[str] | None
    subscription_ids: list[str] | None
    targets: list[Target] | None
    target_platforms: list[Platform | Literal["all"]] | None
    data: dict[str, str] | None
    ttl: int | None
    urgency: Urgency | None
    topic: str | None
    actions: list[Action] | None
    web: OnWeb | None
    android: OnAndroid | None
    ios: OnIos | None
    translations: dict[str, Translation] | None
    personalize: bool | None
    vars: dict[str, str | float] | None
    on_missing: Literal["empty", "bounce"] | None


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
    kind: Literal["channel", "segment", "rule", "targets", "subscription"]
    segment_id: str | None
    category: str | None
    rule: dict[str, Any] | None
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
    actions: list[dict[str, str]]
    web: dict[str, Any]
    android: dict[str, Any]
    ios: dict[str, Any]
    translations: dict[str, dict[str, Any]]
    personalize: bool
    vars: dict[str, str | float]
    on_missing: Literal["empty", "bounce"]


class PlatformDetails(TypedDict):
    recipient_count: int
    delivered_count: int
    bounced_count: int
    planned: bool


class LeftOut(TypedDict):
    opted_out: int


class Release(TypedDict):
    release_at: str
    platforms: list[Platform]
    planned: bool
    recipient_count: int


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
    template_id: str | None
    api_key: str | None
    audience: Audience
    timing: Timing
    content: Content
    platforms: dict[Platform, PlatformDetails]
    left_out: LeftOut
    releases: list[Release]
    reasons: list[Reason]
    limited_by: str | None
    received_count: int
    clicked_count: int
    dismissed_count: int
    actions_clicked: dict[str, int]


class PlatformPause(TypedDict):
    code: str
    detail: str
    since: str
    retried_at: str | None
    retry_at: str


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
