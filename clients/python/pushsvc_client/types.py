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
    url: str
    web_url: str
    android_url: str
    ios_url: str
    icon: str


class OnPlatform(TypedDict, total=False):
    """What replaces the common content on a platform. None: nothing there."""

    title: str | None
    body: str | None
    url: str | None
    image: str | None


class OnWeb(OnPlatform, total=False):
    badge: str
    require_interaction: bool
    silent: bool
    renotify: bool
    tag: str
    lang: str
    dir: Literal["auto", "ltr", "rtl"]
    app_badge: int


class OnAndroid(OnPlatform, total=False):
    channel_id: str
    sound: str
    color: str
    small_icon: str
    click_action: str
    tag: str
    count: int
    visibility: Literal["private", "public", "secret"]
    notification_priority: Literal["min", "low", "default", "high", "max"]
    ticker: str
    direct_boot_ok: bool
    analytics_label: str
    data_only: bool


class Sound(TypedDict, total=False):
    name: Required[str]
    critical: bool
    volume: float


class OnIos(OnPlatform, total=False):
    subtitle: str
    sound: str | Sound
    badge: int
    category: str
    thread_id: str
    interruption_level: Literal["passive", "active", "time-sensitive", "critical"]
    relevance_score: float
    target_content_id: str
    content_available: bool


class Translation(TypedDict, total=False):
    """The texts for one language. `actions`: titles of buttons by their ids."""

    title: str
    body: str
    url: str
    image: str
    actions: dict[str, str]


class Target(TypedDict, total=False):
    """One of the two ids. `vars`: its own values for placeholders."""

    external_id: str
    subscription_id: str
    vars: dict[str, str | float]


class Message(TypedDict, total=False):
    """What can be sent. /docs of the service describes each field. A send needs a `body`, its own
    or that of its template. None takes a field of the template away."""

    template_id: str
    body: str
    title: str | None
    url: str | None
    icon: str | None
    image: str | None
    scheduled_at: str
    expires_at: str
    segment_id: str
    category: str
    rule: dict[str, Any]
    external_ids: list[str]
    subscription_ids: list[str]
    targets: list[Target]
    target_platforms: list[Platform | Literal["all"]]
    data: dict[str, str] | None
    ttl: int
    urgency: Urgency
    topic: str | None
    actions: list[Action] | None
    web: OnWeb | None
    android: OnAndroid | None
    ios: OnIos | None
    translations: dict[str, Translation] | None
    personalize: bool
    vars: dict[str, str | float] | None
    on_missing: Literal["empty", "bounce"]


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
