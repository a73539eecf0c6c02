"""The shapes of the API, by the names that docs/openapi.yaml has.

`make openapi` writes this module. In answers, times are ISO 8601 texts in UTC.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal, NotRequired, TypeAlias, TypedDict


class AbTest(TypedDict):
    """How variants are tested on a part of the audience, before the best one goes to the rest."""

    share: int
    minutes: int
    metric: NotRequired[TestMetric | None]
    inconclusive: NotRequired[str | None]


class AbTestOutput(TypedDict):
    """A test of variants, and its decision."""

    share: int
    minutes: int
    metric: TestMetric
    inconclusive: str
    decides_at: str | None
    on_hold: bool
    variant: str | None
    decided_at: str | None
    decided_by: str | None
    p_value: float | None


class Action(TypedDict):
    """A button."""

    id: str
    title: str
    url: NotRequired[str | None]
    web_url: NotRequired[str | None]
    android_url: NotRequired[str | None]
    ios_url: NotRequired[str | None]
    icon: NotRequired[str | None]


class AndroidContent(TypedDict):
    """For Android, as FCM passes it on."""

    title: NotRequired[str | None]
    body: NotRequired[str | None]
    image: NotRequired[str | None]
    url: NotRequired[str | None]
    channel_id: NotRequired[str | None]
    sound: NotRequired[str | None]
    color: NotRequired[str | None]
    small_icon: NotRequired[str | None]
    click_action: NotRequired[str | None]
    tag: NotRequired[str | None]
    count: NotRequired[int | None]
    visibility: NotRequired[Visibility | None]
    notification_priority: NotRequired[str | None]
    ticker: NotRequired[str | None]
    direct_boot_ok: NotRequired[bool | None]
    analytics_label: NotRequired[str | None]
    data_only: NotRequired[bool | None]


class AppVersionExists(TypedDict):
    """See [segments](/docs/segments)."""

    field: Literal["app_version"]
    operator: Literal["exists"]
    value: bool


class AppVersionIs(TypedDict):
    """See [segments](/docs/segments)."""

    field: Literal["app_version"]
    operator: Literal["eq", "ne", "gt", "gte", "lt", "lte"]
    value: str


class AttributeExists(TypedDict):
    """See [segments](/docs/segments)."""

    attribute: str
    operator: Literal["exists"]
    value: bool


class AttributeHasText(TypedDict):
    """See [segments](/docs/segments)."""

    attribute: str
    operator: Literal["contains", "starts_with"]
    value: str


class AttributeIs(TypedDict):
    """See [segments](/docs/segments)."""

    attribute: str
    operator: Literal["eq", "ne", "gt", "gte", "lt", "lte"]
    value: AttributeValue


class AttributeIsOneOf(TypedDict):
    """See [segments](/docs/segments)."""

    attribute: str
    operator: Literal["in"]
    value: list[AttributeValue]


class AudienceOutput(TypedDict):
    """Whom the notification is for."""

    kind: AudienceKind
    segment_id: str | None
    category: str | None
    rule: AudienceRule
    replaces: str | None
    subscription_id: str | None


class AutomationDayOutput(TypedDict):
    """What an automation did on a day."""

    begins_at: str
    ends_at: str
    notification_id: str | None
    fired: int
    skipped: AutomationSkippedOutput


class AutomationInput(TypedDict):
    """An automation to make, or what replaces one."""

    name: str
    enabled: NotRequired[bool | None]
    trigger: TriggerInput
    delay_minutes: int
    recipient: NotRequired[AutomationRecipient | None]
    notification: ScheduledSendInput
    once_per_days: NotRequired[int | None]


class AutomationKnown(TypedDict):
    """When an automation last contacted the person."""

    automation_id: str
    at: str


class AutomationOutput(TypedDict):
    """An automation."""

    automation_id: str
    name: str
    enabled: bool
    trigger: TriggerInput
    delay_minutes: int
    recipient: AutomationRecipient
    notification: ScheduledSendInput
    once_per_days: int | None
    waiting: int
    disabled_code: str | None
    created_at: str
    updated_at: str


class AutomationSkippedOutput(TypedDict):
    """Devices whose time came and that were not sent to, by reason."""

    repeated: int
    condition: int
    gone: int
    platform: int
    stopped: int
    late: int


class CancelOutput(TypedDict):
    """That the notification is cancelled."""

    success: bool
    message: str
    notificationId: str


class CapInput(TypedDict):
    """How many sends of the channel may contact a person in any time of this length."""

    limit: int
    hours: int


class CategoryFields(TypedDict):
    """The fields of a category that can be changed."""

    name: str
    description: NotRequired[str | None]
    default: bool
    position: NotRequired[int | None]


class CategoryInput(TypedDict):
    """A new category."""

    name: str
    description: NotRequired[str | None]
    default: bool
    position: NotRequired[int | None]
    key: str


class CategoryOutput(TypedDict):
    """A category."""

    key: str
    name: str
    description: str
    default: bool
    position: int
    created_at: str


class ChannelAudienceOutput(TypedDict):
    """Whom the channel reaches."""

    devices: DeviceCountsOutput
    people: int
    anonymous_devices: int


class ChannelOutput(TypedDict):
    """A channel."""

    channel_id: str
    name: str
    created_at: str
    platforms: PlatformsOutput


class ChannelPlatformsOutput(TypedDict):
    """The state of each platform of a channel."""

    platforms: PlatformStatesOutput


class ChannelStatisticsOutput(TypedDict):
    """A channel with its counts."""

    channel_info: ChannelOutput
    subscriber_count: int
    notification_stats: NotificationStatsOutput


class ContactKnown(TypedDict):
    """When a notification contacted the person, for caps."""

    notification_id: str
    at: str


class ContentOutput(TypedDict):
    """The fields of a send. Text that was not given is ""."""

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
    vars: dict[str, AttributeValue]
    on_missing: OnMissing
    variants: list[dict[str, Any]]


class CountryIs(TypedDict):
    """See [segments](/docs/segments)."""

    field: Literal["country"]
    operator: Literal["eq", "ne"]
    value: str


class CountryIsOneOf(TypedDict):
    """See [segments](/docs/segments)."""

    field: Literal["country"]
    operator: Literal["in"]
    value: list[str]


class CredentialOutput(TypedDict):
    """Which credential a platform uses; never a secret."""

    kind: CredentialKind
    id: str


class DaysAgo(TypedDict):
    """A time that moves with the clock."""

    days_ago: int


class DeliverySettingsInput(TypedDict):
    """All delivery settings of a channel. A setting that is not given gets its default."""

    timezone: NotRequired[str | None]
    rate_per_minute: NotRequired[int | None]
    category_required: NotRequired[bool | None]
    quiet_hours: NotRequired[QuietTimes | None]
    inbox_days: NotRequired[int | None]
    caps: NotRequired[list[CapInput] | None]


class DeliverySettingsOutput(TypedDict):
    """A channel's delivery settings."""

    timezone: str
    rate_per_minute: int | None
    category_required: bool
    quiet_hours: dict[str, str] | None
    inbox_days: int
    caps: list[CapInput]


class DeviceCountsOutput(TypedDict):
    """Active subscriptions by platform."""

    web: int
    android: int
    ios: int


class DeviceInput(TypedDict):
    """Names a device, by a browser's endpoint or a phone's token.  For a phone,
    `provider_token` takes precedence over `endpoint`. For a browser, only `endpoint`
    counts. The other field is not validated. Undeclared fields are ignored, because
    browsers add their own, but a misspelling of a declared field is refused.
    """

    platform: NotRequired[Platform | None]
    endpoint: NotRequired[str | None]
    provider_token: NotRequired[str | None]


class DeviceKnown(TypedDict):
    """Everything that is stored of a device."""

    subscription_id: str
    channel_id: str
    platform: Platform
    address: str
    p256dh: str
    auth: str
    push_service: str
    expired_code: str
    attributes: Attributes
    tags: list[str]
    timezone: str
    language: str
    choices: dict[str, bool]
    created_at: str
    registered_at: str
    expired_at: str | None
    last_clicked_at: str | None
    deliveries: list[OutcomeKnown]


class DryRunOutput(TypedDict):
    """What a send would do."""

    platforms: dict[str, PlatformDryRunOutput]
    releases: NotRequired[list[DryRunReleaseOutput]]
    unknown: NotRequired[UnknownOutput]
    detail: NotRequired[str]
    capped: NotRequired[DryRunSizeOutput]
    takes_at_least_seconds: NotRequired[int]


class DryRunReleaseOutput(TypedDict):
    """A moment at which it is time for part of the audience."""

    release_at: str
    timezones: int
    platforms: list[Platform]


class DryRunSizeOutput(TypedDict):
    """A number of active subscriptions."""

    size: int
    estimated: bool


class EditInput(TypedDict):
    """Any fields of a send. A field that is missing stays as it is; null takes its default.
    `body` has none.
    """

    title: NotRequired[str | None]
    body: NotRequired[str]
    icon: NotRequired[str | None]
    url: NotRequired[str | None]
    image: NotRequired[str | None]
    data: NotRequired[dict[str, str] | None]
    ttl: NotRequired[int | None]
    urgency: NotRequired[Urgency | None]
    topic: NotRequired[str | None]
    actions: NotRequired[list[Action] | None]
    web: NotRequired[WebContent | None]
    android: NotRequired[AndroidContent | None]
    ios: NotRequired[IosContent | None]
    translations: NotRequired[dict[str, Translation] | None]
    personalize: NotRequired[bool | None]
    vars: NotRequired[dict[str, AttributeValue] | None]
    on_missing: NotRequired[OnMissing | None]
    variants: NotRequired[list[Variant] | None]
    scheduled_at: NotRequired[datetime | str | None]
    local_at: NotRequired[str | None]
    quiet_hours: NotRequired[str | QuietTimes | None]
    expires_at: NotRequired[datetime | str | None]
    rate_per_minute: NotRequired[int | None]
    cap: NotRequired[CapChoice | None]
    name: NotRequired[str | None]
    labels: NotRequired[list[str] | None]
    segment_id: NotRequired[str | None]
    category: NotRequired[str | None]
    rule: NotRequired[AudienceRule]
    external_ids: NotRequired[list[str] | None]
    subscription_ids: NotRequired[list[str] | None]
    targets: NotRequired[list[TargetInput] | None]
    test: NotRequired[AbTest | None]
    replaces: NotRequired[str | None]
    target_platforms: NotRequired[list[str] | None]


class ErasedCount(TypedDict):
    """What was deleted."""

    devices: int


class ErasedOutput(TypedDict):
    """That nothing is stored of the person any more."""

    erased: ErasedCount


class EventInput(TypedDict):
    """An event of one delivery."""

    token: str
    event: DeviceEvent
    action: NotRequired[str | None]


class EventsInput(TypedDict):
    """Events of devices. Unknown fields are refused, because an app may have misspelt one."""

    events: list[EventInput]


class ExplainInput(TypedDict):
    """What to explain, and for whom."""

    send: NotRequired[SendInput | None]
    notification_id: NotRequired[str | None]
    external_id: NotRequired[str | None]
    subscription_id: NotRequired[str | None]


class ExplainOutput(TypedDict):
    """Each device, the active ones first."""

    as_of: str
    devices: list[ExplainedDeviceOutput]


class ExplainedDeliveryOutput(TypedDict):
    """The delivery of the device."""

    status: DeliveryOutcome
    code: str
    detail: str
    attempts: int
    due_at: str | None
    finished_at: str | None
    received_at: str | None
    clicked_at: str | None
    push_service: str
    trace: str


class ExplainedDeviceOutput(TypedDict):
    """A device, and what becomes or became of the message for it."""

    subscription_id: str
    platform: Platform
    verdict: ExplainVerdict
    because: str
    steps: list[ExplainedStepOutput]
    changes: list[str]
    variant: str | None
    message: ExplainedMessageOutput | None
    delivery: ExplainedDeliveryOutput | None


class ExplainedMessageOutput(TypedDict):
    """The texts that the device shows."""

    title: str
    body: str
    url: str
    icon: str
    image: str
    buttons: list[str]


class ExplainedStepOutput(TypedDict):
    """One decision about a device."""

    step: ExplainStep
    ok: bool
    detail: str
    rule: AudienceRule
    at: str | None
    language: str | None
    bytes: int | None
    missing: list[str] | None


class ExportedDeliveryOutput(TypedDict):
    """A row of the export of deliveries."""

    subscription_id: str
    external_id: str | None
    platform: Platform
    outcome: DeliveryOutcome
    code: str | None
    detail: str | None
    attempts: int
    action: str | None
    finished_at: str | None
    received_at: str | None
    clicked_at: str | None
    dismissed_at: str | None


class ExportedKeysOutput(TypedDict):
    """The keys of a browser, as it gave them."""

    p256dh: str
    auth: str


class ExportedSubscriptionOutput(TypedDict):
    """A row of the export of subscriptions."""

    subscription_id: str
    platform: Platform
    active: bool
    external_id: str | None
    language: str | None
    timezone: str | None
    attributes: Attributes
    tags: list[str]
    choices: dict[str, bool]
    created_at: str
    last_seen_at: str
    expired_at: str | None
    expired_code: str | None
    endpoint: NotRequired[str]
    keys: NotRequired[ExportedKeysOutput]
    vapid_public_key: NotRequired[str | None]
    provider_token: NotRequired[str]
    auth: NotRequired[str | None]


class FieldError(TypedDict):
    """One error of the input."""

    attr: str
    code: str
    detail: str


class HandOverOutput(TypedDict):
    """How long after their time the notifications that ended in one hour or day were handed
    over to push services.
    """

    at: str
    which: HandOverEnd
    p50_seconds: float
    p95_seconds: float
    notifications: int


class HasClicked(TypedDict):
    """See [segments](/docs/segments)."""

    field: Literal["last_clicked_at"]
    operator: Literal["exists"]
    value: bool


class HasTag(TypedDict):
    """See [segments](/docs/segments)."""

    tag: str


class IdentityKeyInput(TypedDict):
    """A new identity key."""

    algorithm: IdentityAlgorithm
    public_key: NotRequired[str | None]


class IdentityKeyOutput(TypedDict):
    """An identity key, without its secret."""

    identity_key_id: str
    algorithm: IdentityAlgorithm
    public_key: str | None
    created_at: str


class ImportOutput(TypedDict):
    """What became of the rows."""

    created: int
    updated: int
    unchanged: int
    refused: int
    refusals: list[RefusalOutput]
    attributes_dropped: list[str]


class InboxInput(TypedDict):
    """A device with its proof, or a person in its place, and which page. Undeclared fields are
    ignored, because browsers add their own, but a misspelling of a declared field is
    refused.
    """

    platform: NotRequired[Platform | None]
    endpoint: NotRequired[str | None]
    provider_token: NotRequired[str | None]
    keys: NotRequired[KeysInput | None]
    auth: NotRequired[str | None]
    identity_token: NotRequired[str | None]
    limit: NotRequired[int | None]
    before: NotRequired[str | None]


class InboxMessageOutput(TypedDict):
    """A message as the device would show it now, in its language and with its values."""

    notification_id: str
    sent_at: str
    title: str
    body: str
    url: str
    icon: str
    image: str
    actions: list[dict[str, str]]
    data: dict[str, str]
    received: bool
    clicked: bool
    dismissed: bool
    token: str


class InboxOutput(TypedDict):
    """A page of messages, the newest first."""

    messages: list[InboxMessageOutput]
    unread: int


class IosContent(TypedDict):
    """For iOS, as Apple's payload keys say."""

    title: NotRequired[str | None]
    body: NotRequired[str | None]
    image: NotRequired[str | None]
    url: NotRequired[str | None]
    subtitle: NotRequired[str | None]
    sound: NotRequired[str | SoundFile | None]
    badge: NotRequired[int | None]
    category: NotRequired[str | None]
    thread_id: NotRequired[str | None]
    interruption_level: NotRequired[InterruptionLevel | None]
    relevance_score: NotRequired[float | None]
    target_content_id: NotRequired[str | None]
    content_available: NotRequired[bool | None]


class KeysInput(TypedDict):
    """The keys of a browser's PushSubscription."""

    p256dh: str
    auth: str


class LanguageIs(TypedDict):
    """See [segments](/docs/segments)."""

    field: Literal["language"]
    operator: Literal["eq", "ne", "starts_with"]
    value: str


class LanguageIsOneOf(TypedDict):
    """See [segments](/docs/segments)."""

    field: Literal["language"]
    operator: Literal["in"]
    value: list[str]


class LeftOutOutput(TypedDict):
    """Devices of the audience that did not become recipients."""

    opted_out: int
    capped: int
    repeated: int


class LinkInput(TypedDict):
    """A device and its person."""

    subscription_id: str
    external_id: str | None


class LinkedOutput(TypedDict):
    """What was linked."""

    linked: int
    unknown: list[str]


class LinksInput(TypedDict):
    """Devices to link."""

    links: list[LinkInput]


class MembersInput(TypedDict):
    """The devices that get the tag, or lose it."""

    external_ids: NotRequired[list[str] | None]
    subscription_ids: NotRequired[list[str] | None]
    remove: NotRequired[bool | None]


class MembersOutput(TypedDict):
    """What was changed."""

    devices: int
    full: int
    unknown: UnknownMembers


class MessageOutput(TypedDict):
    """A confirmation."""

    message: str


class NewsfeedEntry(TypedDict):
    """The values of an entry for placeholders, as plain text; "" if the entry has none."""

    title: str
    summary: str
    link: str
    image: str
    author: str
    categories: str
    published: str


class NewsfeedInput(TypedDict):
    """A newsfeed to make, or what replaces one."""

    name: str
    url: str
    enabled: NotRequired[bool | None]
    every_minutes: NotRequired[int | None]
    daily_limit: NotRequired[int | None]
    notification: ScheduledSendInput


class NewsfeedOutput(TypedDict):
    """A newsfeed."""

    newsfeed_id: str
    name: str
    url: str
    enabled: bool
    every_minutes: int
    daily_limit: int
    notification: ScheduledSendInput
    next_check_at: str | None
    checked_at: str | None
    last_error: str | None
    failures: int
    entries: int
    sent_today: int
    last_notification_id: str | None
    disabled_code: str | None
    created_at: str
    updated_at: str


class NewsfeedPreview(TypedDict):
    """What a newsfeed would send of its newest entry."""

    checked_at: str | None
    last_error: str | None
    entry: NewsfeedEntry | None
    notification: dict[str, Any] | None


class NotificationDetailsOutput(TypedDict):
    """A notification with all that is known of its result."""

    notification_id: str
    status: NotificationStatus
    name: str
    labels: list[str]
    paused: bool
    stopped: bool
    edited_at: str | None
    template_id: str | None
    api_key: str | None
    audience: AudienceOutput
    corrected_by: list[str]
    timing: TimingOutput
    content: ContentOutput
    platforms: dict[str, PlatformDetailsOutput]
    left_out: LeftOutOutput
    releases: list[ReleaseOutput]
    reasons: list[ReasonOutput]
    limited_by: str | None
    rate_per_minute: int | None
    received_count: int
    clicked_count: int
    dismissed_count: int
    actions_clicked: dict[str, int]
    variants: list[VariantOutput]
    test: AbTestOutput | None


class NotificationEnded(TypedDict):
    """See [segments](/docs/segments)."""

    notification: str
    outcome: Literal["delivered", "bounced", "received", "clicked", "not_clicked", "not_received"]


class NotificationListedOutput(TypedDict):
    """A notification with its counts. Text that was not given is ""."""

    notification_id: str
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


class NotificationOutput(TypedDict):
    """A notification with its counts. Text that was not given is ""."""

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


class NotificationStatsOutput(TypedDict):
    """Sums over a channel's notifications."""

    total_notifications_sent: int
    total_recipients: int
    total_delivered: int
    total_bounced: int
    total_clicked: int


class OccurrenceOutput(TypedDict):
    """What became of an occurrence."""

    occurs_at: str
    notification_id: str | None
    code: str


class OutcomeKnown(TypedDict):
    """What became of a notification for the device."""

    notification_id: str
    title: str
    body: str
    outcome: str
    code: str
    finished_at: str | None
    received_at: str | None
    clicked_at: str | None
    dismissed_at: str | None


class OutcomesOutput(TypedDict):
    """The recipients of one platform in one hour or day."""

    at: str
    platform: Platform
    recipients: int
    delivered: int
    bounced: int
    stopped: int
    opted_out: int
    expired: int
    deferred: int
    clicked: int


class PauseOutput(TypedDict):
    """Why a platform is paused."""

    code: str
    detail: str
    since: str
    retried_at: str | None
    retry_at: str


class PausedOutput(TypedDict):
    """Whether the notification is paused."""

    notification_id: str
    paused: bool


class PersonDeviceOutput(TypedDict):
    """A device of the person."""

    subscription_id: str
    platform: Platform
    active: bool
    created_at: str
    last_seen_at: str
    timezone: str
    language: str
    attributes: Attributes
    tags: list[str]


class PersonExists(TypedDict):
    """See [segments](/docs/segments)."""

    field: Literal["external_id"]
    operator: Literal["exists"]
    value: bool


class PersonInput(TypedDict):
    """What to change of a person. What is left out stays as it is."""

    opted_out: NotRequired[bool | None]
    choices: NotRequired[Choices]
    attributes: NotRequired[AttributeChanges]
    add_tags: NotRequired[list[str] | None]
    remove_tags: NotRequired[list[str] | None]


class PersonKnown(TypedDict):
    """Everything that is stored of a person."""

    external_id: str
    channel_id: str
    created_at: str
    opted_out_at: str | None
    choices: dict[str, bool]
    devices: list[DeviceKnown]
    values: list[ValuesKnown]
    contacts: list[ContactKnown]
    schedules: list[ScheduleKnown]
    automations: list[AutomationKnown]
    waiting: list[WaitingKnown]


class PersonOutput(TypedDict):
    """A person."""

    external_id: str
    created_at: str
    opted_out: bool
    choices: dict[str, bool]
    devices: list[PersonDeviceOutput]


class PlatformDetailsOutput(TypedDict):
    """The counts of one platform."""

    recipient_count: int
    delivered_count: int
    bounced_count: int
    stopped_count: int
    opted_out_count: int
    expired_count: int
    planned: bool


class PlatformDryRunOutput(TypedDict):
    """What one platform would get."""

    payload_bytes: int
    audience: int
    estimated: bool
    largest_sampled_bytes: NotRequired[int]
    push_services: NotRequired[dict[str, ServiceDryRunOutput]]


class PlatformIs(TypedDict):
    """See [segments](/docs/segments)."""

    field: Literal["platform"]
    operator: Literal["eq", "ne"]
    value: Platform


class PlatformIsOneOf(TypedDict):
    """See [segments](/docs/segments)."""

    field: Literal["platform"]
    operator: Literal["in"]
    value: list[Platform]


class PlatformStateOutput(TypedDict):
    """One platform of a channel."""

    enabled: bool
    subscriber_count: int
    paused: PauseOutput | None
    credential: CredentialOutput | None


class PlatformStatesOutput(TypedDict):
    """The platforms of a channel."""

    web: PlatformStateOutput
    android: PlatformStateOutput
    ios: PlatformStateOutput


class PlatformsOutput(TypedDict):
    """Which platforms are enabled."""

    web: bool
    android: bool
    ios: bool


class PreferenceOutput(TypedDict):
    """A category, and whether its notifications are wanted."""

    key: str
    name: str
    description: str
    chosen: bool


class PreferencesInput(TypedDict):
    """A device, and what it chooses. Undeclared fields are ignored, because browsers add their
    own, but a misspelling of a declared field is refused.
    """

    platform: NotRequired[Platform | None]
    endpoint: NotRequired[str | None]
    provider_token: NotRequired[str | None]
    keys: NotRequired[KeysInput | None]
    auth: NotRequired[str | None]
    identity_token: NotRequired[str | None]
    choices: NotRequired[Choices]
    opted_out: NotRequired[bool | None]


class PreferencesOutput(TypedDict):
    """What the device or the person wants now."""

    categories: list[PreferenceOutput]
    opted_out: NotRequired[bool]


class Problem(TypedDict):
    """An error (RFC 9457). Decide by its `code`."""

    type: str
    title: str
    status: int
    code: str
    detail: str
    errors: NotRequired[list[FieldError]]
    request_id: NotRequired[str]


class PromptColorsOutput(TypedDict):
    """Colors that replace those of the prompt."""

    accent: NotRequired[str]
    accentText: NotRequired[str]
    background: NotRequired[str]
    text: NotRequired[str]


class PromptEventInput(TypedDict):
    """What a visitor did with a prompt."""

    kind: PromptKind
    event: PromptEvent


class PromptOptionsOutput(TypedDict):
    """The options of prompt.mjs, by the names that scripts have for them. See
    [prompts](/docs/prompts).
    """

    kind: PromptKind
    target: NotRequired[str]
    afterPages: int
    afterSeconds: int
    againAfterDays: int
    maxRefusals: int
    scheme: str
    colors: NotRequired[PromptColorsOutput]
    texts: NotRequired[dict[str, PromptTextsOutput]]
    categories: NotRequired[list[PreferenceOutput]]


class PromptOutput(TypedDict):
    """The prompt that the console describes."""

    prompt: NotRequired[PromptOptionsOutput]


class PromptTextsOutput(TypedDict):
    """Texts that replace those of the prompt."""

    title: NotRequired[str]
    body: NotRequired[str]
    allow: NotRequired[str]
    later: NotRequired[str]


class ProvidersConfigInput(TypedDict):
    """Credentials of push services. Missing fields do not change."""

    fcm_service_account: NotRequired[str | None]
    apns_key: NotRequired[str | None]
    apns_key_id: NotRequired[str | None]
    apns_team_id: NotRequired[str | None]
    apns_topic: NotRequired[str | None]
    apns_environment: NotRequired[str | None]


class ProvidersInput(TypedDict):
    """A channel's credentials."""

    providers_config: ProvidersConfigInput


QuietTimes = TypedDict("QuietTimes", {"from": "str", "to": "str"})


class ReasonOutput(TypedDict):
    """How many recipients bounced for a reason."""

    platform: Platform
    code: str
    count: int


class RecurrenceInput(TypedDict):
    """When a schedule sends: days of a rule, and times of those days."""

    rule: str
    at: list[str]
    timezone: str
    starts_on: NotRequired[str | None]
    ends_on: NotRequired[str | None]
    count: NotRequired[int | None]


class RefusalOutput(TypedDict):
    """A row that is not imported."""

    line: int
    code: str
    attr: str
    detail: str


class ReleaseOutput(TypedDict):
    """Part of the audience that is sent from one moment on."""

    release_at: str
    platforms: list[Platform]
    planned: bool
    recipient_count: int


class ReplayInput(TypedDict):
    """Which messages to send again."""

    since: datetime | str
    until: NotRequired[datetime | str | None]
    state: NotRequired[ReplayState | None]


class ReplayOutput(TypedDict):
    """How many messages are sent again."""

    messages: int


class RuleAll(TypedDict):
    """See [segments](/docs/segments)."""

    all: list[SegmentRule]


class RuleAny(TypedDict):
    """See [segments](/docs/segments)."""

    any: list[SegmentRule]


RuleNot = TypedDict("RuleNot", {"not": "SegmentRule"})


class ScheduleInput(TypedDict):
    """A schedule to make, or what replaces one."""

    name: str
    enabled: NotRequired[bool | None]
    notification: ScheduledSendInput
    recurrence: RecurrenceInput
    once_per_days: NotRequired[int | None]


class ScheduleKnown(TypedDict):
    """When a schedule with `once_per_days` last contacted the person."""

    notification_id: str
    at: str
    schedule_id: str


class ScheduleOutput(TypedDict):
    """A schedule."""

    schedule_id: str
    name: str
    enabled: bool
    notification: ScheduledSendInput
    recurrence: RecurrenceInput
    once_per_days: int | None
    next_at: str | None
    last_notification_id: str | None
    disabled_code: str | None
    created_at: str
    updated_at: str


class ScheduledSendInput(TypedDict):
    """The notification that a schedule sends. Null removes a field of the template."""

    title: NotRequired[str | None]
    body: NotRequired[str]
    icon: NotRequired[str | None]
    url: NotRequired[str | None]
    image: NotRequired[str | None]
    data: NotRequired[dict[str, str] | None]
    ttl: NotRequired[int | None]
    urgency: NotRequired[Urgency | None]
    topic: NotRequired[str | None]
    actions: NotRequired[list[Action] | None]
    web: NotRequired[WebContent | None]
    android: NotRequired[AndroidContent | None]
    ios: NotRequired[IosContent | None]
    translations: NotRequired[dict[str, Translation] | None]
    personalize: NotRequired[bool | None]
    vars: NotRequired[dict[str, AttributeValue] | None]
    on_missing: NotRequired[OnMissing | None]
    variants: NotRequired[list[Variant] | None]
    quiet_hours: NotRequired[str | QuietTimes | None]
    rate_per_minute: NotRequired[int | None]
    cap: NotRequired[CapChoice | None]
    name: NotRequired[str | None]
    labels: NotRequired[list[str] | None]
    segment_id: NotRequired[str | None]
    category: NotRequired[str | None]
    rule: NotRequired[AudienceRule]
    test: NotRequired[AbTest | None]
    target_platforms: NotRequired[list[str] | None]
    template_id: NotRequired[str | None]


class SegmentInput(TypedDict):
    """A segment to make, or what replaces one."""

    name: str
    rule: SegmentRule


class SegmentOutput(TypedDict):
    """A segment."""

    segment_id: str
    name: str
    rule: SegmentRule
    created_at: str
    updated_at: str


class SendInput(TypedDict):
    """A notification to send. Null removes a field of the template."""

    title: NotRequired[str | None]
    body: NotRequired[str]
    icon: NotRequired[str | None]
    url: NotRequired[str | None]
    image: NotRequired[str | None]
    data: NotRequired[dict[str, str] | None]
    ttl: NotRequired[int | None]
    urgency: NotRequired[Urgency | None]
    topic: NotRequired[str | None]
    actions: NotRequired[list[Action] | None]
    web: NotRequired[WebContent | None]
    android: NotRequired[AndroidContent | None]
    ios: NotRequired[IosContent | None]
    translations: NotRequired[dict[str, Translation] | None]
    personalize: NotRequired[bool | None]
    vars: NotRequired[dict[str, AttributeValue] | None]
    on_missing: NotRequired[OnMissing | None]
    variants: NotRequired[list[Variant] | None]
    scheduled_at: NotRequired[datetime | str | None]
    local_at: NotRequired[str | None]
    quiet_hours: NotRequired[str | QuietTimes | None]
    expires_at: NotRequired[datetime | str | None]
    rate_per_minute: NotRequired[int | None]
    cap: NotRequired[CapChoice | None]
    name: NotRequired[str | None]
    labels: NotRequired[list[str] | None]
    segment_id: NotRequired[str | None]
    category: NotRequired[str | None]
    rule: NotRequired[AudienceRule]
    external_ids: NotRequired[list[str] | None]
    subscription_ids: NotRequired[list[str] | None]
    targets: NotRequired[list[TargetInput] | None]
    test: NotRequired[AbTest | None]
    replaces: NotRequired[str | None]
    target_platforms: NotRequired[list[str] | None]
    template_id: NotRequired[str | None]
    dry_run: NotRequired[bool | None]


class SendOutput(TypedDict):
    """That the notification is accepted."""

    success: bool
    message: str
    notification_id: str
    scheduled_at: str
    status: NotificationStatus


class SentOutput(TypedDict):
    """The notifications that were sent in one hour or day."""

    at: str
    sent: int


class SentTestOutput(TypedDict):
    """The message of a test."""

    message_id: str


class ServiceDryRunOutput(TypedDict):
    """What a push service would get."""

    payload_bytes: int
    payload_limit: int


class ShownIdentityKeyOutput(TypedDict):
    """A new identity key with its secret."""

    identity_key_id: str
    algorithm: IdentityAlgorithm
    public_key: str | None
    created_at: str
    secret: str | None


class ShownWebhookOutput(TypedDict):
    """A webhook with a new secret."""

    webhook_id: str
    url: str
    events: list[WebhookEvent]
    description: str
    format: WebhookFormat
    enabled: bool
    disabled_code: str | None
    created_at: str
    health: WebhookHealthOutput
    secret: str


class SizeOutput(TypedDict):
    """How many subscribers a segment has."""

    size: int
    estimated: bool


class SoundFile(TypedDict):
    """A sound with its volume."""

    name: str
    critical: NotRequired[bool]
    volume: NotRequired[float]


class StatisticsOutput(TypedDict):
    """Sums of each hour or day, oldest first."""

    outcomes: list[OutcomesOutput]
    subscribers: list[SubscribersOutput]
    notifications: list[SentOutput]
    hand_over: list[HandOverOutput]


class StoppedOutput(TypedDict):
    """That the notification is stopped."""

    notification_id: str
    stopped: bool


class StoredWebPushKeyInput(TypedDict):
    """A key pair that another push service or library used."""

    private_key: str


class StoredWebPushKeyOutput(TypedDict):
    """A key pair of the channel, without its private key."""

    public_key: str
    current: bool


class SubscribeInput(TypedDict):
    """A device, and what it reports. Undeclared fields are ignored, because browsers add their
    own, but a misspelling of a declared field is refused.
    """

    platform: NotRequired[Platform | None]
    endpoint: NotRequired[str | None]
    provider_token: NotRequired[str | None]
    keys: NotRequired[KeysInput | None]
    attributes: NotRequired[Attributes | None]
    tags: NotRequired[list[str] | None]
    add_tags: NotRequired[list[str] | None]
    remove_tags: NotRequired[list[str] | None]
    vapid_public_key: NotRequired[str | None]
    auth: NotRequired[str | None]
    previous_endpoint: NotRequired[str | None]
    previous_auth: NotRequired[str | None]
    previous_subscription_id: NotRequired[str | None]
    external_id: NotRequired[str | None]
    identity_token: NotRequired[str | None]
    timezone: NotRequired[str | None]
    language: NotRequired[str | None]


class SubscribersOutput(TypedDict):
    """How the subscribers of one platform changed in one hour or day."""

    at: str
    platform: Platform
    gained: int
    lost: int


class SubscriptionOutput(TypedDict):
    """The device's subscription."""

    message: str
    subscriptionId: str
    resubscribe: NotRequired[str]


class TagOutput(TypedDict):
    """A tag of the channel."""

    tag: str
    devices: int
    more: bool


class TargetInput(TypedDict):
    """A person or a subscription."""

    external_id: NotRequired[str | None]
    subscription_id: NotRequired[str | None]
    vars: NotRequired[dict[str, AttributeValue] | None]


class TargetOutput(TypedDict):
    """A person or a subscription that the send named, and what became of it."""

    external_id: str | None
    subscription_id: str | None
    state: TargetState
    devices: int


class TemplateContent(TypedDict):
    """The content of a template: any of these fields of a send. What is missing is left to the
    send.
    """

    title: NotRequired[str | None]
    body: NotRequired[str | None]
    icon: NotRequired[str | None]
    url: NotRequired[str | None]
    image: NotRequired[str | None]
    data: NotRequired[dict[str, str] | None]
    ttl: NotRequired[int | None]
    urgency: NotRequired[Urgency | None]
    topic: NotRequired[str | None]
    actions: NotRequired[list[Action] | None]
    web: NotRequired[WebContent | None]
    android: NotRequired[AndroidContent | None]
    ios: NotRequired[IosContent | None]
    translations: NotRequired[dict[str, Translation] | None]
    personalize: NotRequired[bool | None]
    vars: NotRequired[dict[str, AttributeValue] | None]
    on_missing: NotRequired[OnMissing | None]
    variants: NotRequired[list[Variant] | None]


class TemplateInput(TypedDict):
    """A template to make, or what replaces one."""

    name: str
    content: TemplateContent


class TemplateOutput(TypedDict):
    """A template."""

    template_id: str
    name: str
    content: TemplateContent
    created_at: str
    updated_at: str


class TimeIs(TypedDict):
    """See [segments](/docs/segments)."""

    field: Literal["created_at", "last_seen_at", "last_clicked_at"]
    operator: Literal["gt", "gte", "lt", "lte"]
    value: Moment


class TimezoneIs(TypedDict):
    """See [segments](/docs/segments)."""

    field: Literal["timezone"]
    operator: Literal["eq"]
    value: str


class TimezoneIsOneOf(TypedDict):
    """See [segments](/docs/segments)."""

    field: Literal["timezone"]
    operator: Literal["in"]
    value: list[str]


class TimingOutput(TypedDict):
    """When the notification was sent."""

    scheduled_at: str
    started_at: str | None
    deadline_at: str | None
    expires_at: str | None
    finished_at: str | None
    local_at: str | None
    quiet_hours: dict[str, str] | None
    zones_too_late: int


class Translation(TypedDict):
    """The texts for one language. What is missing is as for a more general language."""

    title: NotRequired[str | None]
    body: NotRequired[str | None]
    url: NotRequired[str | None]
    image: NotRequired[str | None]
    actions: NotRequired[dict[str, str] | None]


class TriggerInput(TypedDict):
    """What an automation follows."""

    event: AutomationEvent
    tag: NotRequired[str | None]
    name: NotRequired[str | None]
    label: NotRequired[str | None]
    action: NotRequired[str | None]
    hours: NotRequired[int | None]


class UnknownMembers(TypedDict):
    """Ids that the channel does not have. They are no error."""

    external_ids: list[str]
    subscription_ids: list[str]


class UnknownOutput(TypedDict):
    """Ids that the channel does not have."""

    external_ids: list[str]
    subscription_ids: list[str]


class UnsubscribeOutput(TypedDict):
    """That the device is not subscribed."""

    message: str


class ValuesKnown(TypedDict):
    """Values that a direct send gave for the person's message."""

    notification_id: str
    vars: dict[str, AttributeValue]


class Variant(TypedDict):
    """One of several contents. What is missing is as in the send."""

    name: str
    weight: NotRequired[int | None]
    title: NotRequired[str | None]
    body: NotRequired[str | None]
    url: NotRequired[str | None]
    image: NotRequired[str | None]
    icon: NotRequired[str | None]
    web: NotRequired[WebContent | None]
    android: NotRequired[AndroidContent | None]
    ios: NotRequired[IosContent | None]
    translations: NotRequired[dict[str, Translation] | None]


class VariantOutput(TypedDict):
    """The result of a variant. The counts of all variants add up to those of the notification."""

    name: str
    weight: int
    recipient_count: int
    delivered_count: int
    bounced_count: int
    received_count: int
    clicked_count: int
    dismissed_count: int
    clicked_between: list[float]


class WaitingKnown(TypedDict):
    """When an automation will contact a device, if its condition holds then."""

    automation_id: str
    at: str
    subscription_id: str


class WebContent(TypedDict):
    """For browsers. The options of the standard's showNotification(), and the app's badge."""

    title: NotRequired[str | None]
    body: NotRequired[str | None]
    image: NotRequired[str | None]
    url: NotRequired[str | None]
    badge: NotRequired[str | None]
    require_interaction: NotRequired[bool | None]
    silent: NotRequired[bool | None]
    renotify: NotRequired[bool | None]
    tag: NotRequired[str | None]
    lang: NotRequired[str | None]
    app_badge: NotRequired[int | None]
    click: NotRequired[ClickBehavior | None]
    dir: NotRequired[TextDirection | None]


class WebPushKeyOutput(TypedDict):
    """The key that browsers subscribe with, and earlier ones."""

    public_key: str
    retired_keys: list[str]


class WebhookHealthOutput(TypedDict):
    """How the last calls went."""

    last_delivered_at: str | None
    last_failed_at: str | None
    last_answer: str | None
    held_until: str | None
    waiting: int


class WebhookInput(TypedDict):
    """A new webhook."""

    url: str
    events: list[WebhookEvent]
    description: NotRequired[str | None]
    format: NotRequired[WebhookFormat | None]


class WebhookMessageOutput(TypedDict):
    """What became of one message at one webhook."""

    message_id: str
    type: str
    created_at: str
    state: WebhookState
    attempts: int
    next_attempt_at: str | None
    finished_at: str | None
    answer: str


class WebhookOutput(TypedDict):
    """A webhook, without its secret."""

    webhook_id: str
    url: str
    events: list[WebhookEvent]
    description: str
    format: WebhookFormat
    enabled: bool
    disabled_code: str | None
    created_at: str
    health: WebhookHealthOutput


class WebhookUpdate(TypedDict):
    """What replaces the webhook's values. Fields that are missing get their defaults."""

    url: str
    events: list[WebhookEvent]
    description: NotRequired[str | None]
    format: NotRequired[WebhookFormat | None]
    enabled: NotRequired[bool | None]


class WinnerInput(TypedDict):
    """Which variant goes to those who were not in the test."""

    variant: str


class WinnerOutput(TypedDict):
    """That the test is decided."""

    notification_id: str
    variant: str


AttributeChange: TypeAlias = str | float | None
AttributeValue: TypeAlias = str | float
AudienceKind: TypeAlias = Literal[
    "channel", "segment", "rule", "targets", "correction", "subscription"
]
AudienceRule: TypeAlias = (
    RuleAll
    | RuleAny
    | RuleNot
    | AttributeIs
    | AttributeIsOneOf
    | AttributeExists
    | AttributeHasText
    | PlatformIs
    | PlatformIsOneOf
    | TimeIs
    | LanguageIs
    | LanguageIsOneOf
    | TimezoneIs
    | TimezoneIsOneOf
    | CountryIs
    | CountryIsOneOf
    | AppVersionIs
    | AppVersionExists
    | HasClicked
    | PersonExists
    | HasTag
    | NotificationEnded
    | None
)
AutomationEvent: TypeAlias = Literal[
    "subscriptions.created",
    "subscriptions.tagged",
    "notifications.clicked",
    "notifications.unclicked",
]
AutomationRecipient: TypeAlias = Literal["device", "person"]
CapChoice: TypeAlias = Literal["respect", "ignore"]
Choices: TypeAlias = dict[str, bool | None] | None
ClickBehavior: TypeAlias = Literal["open", "navigate", "focus"]
CredentialKind: TypeAlias = Literal["vapid_key", "fcm_service_account", "apns_key"]
DeliveryOutcome: TypeAlias = Literal["waiting", "delivered", "bounced"]
DeviceEvent: TypeAlias = Literal["received", "clicked", "dismissed"]
ExplainStep: TypeAlias = Literal[
    "notification",
    "active",
    "platform",
    "audience",
    "category",
    "once",
    "cap",
    "test",
    "release",
    "content",
    "paused",
    "delivery",
    "retention",
    "changes",
]
ExplainVerdict: TypeAlias = Literal[
    "gets", "bounces", "left_out", "not_in_audience", "got", "bounced", "waiting", "unknown"
]
HandOverEnd: TypeAlias = Literal["first", "last"]
IdentityAlgorithm: TypeAlias = Literal["HS256", "ES256"]
InterruptionLevel: TypeAlias = Literal["passive", "active", "time-sensitive", "critical"]
Moment: TypeAlias = datetime | str | DaysAgo
NotificationStatus: TypeAlias = Literal["pending", "processing", "sent", "failed", "cancelled"]
OnMissing: TypeAlias = Literal["empty", "bounce"]
Platform: TypeAlias = Literal["web", "android", "ios"]
PromptEvent: TypeAlias = Literal["shown", "accepted", "refused", "blocked"]
PromptKind: TypeAlias = Literal["bell", "slide-in", "button", "categories"]
ReplayState: TypeAlias = Literal["failed", "delivered"]
SegmentRule: TypeAlias = (
    RuleAll
    | RuleAny
    | RuleNot
    | AttributeIs
    | AttributeIsOneOf
    | AttributeExists
    | AttributeHasText
    | PlatformIs
    | PlatformIsOneOf
    | TimeIs
    | LanguageIs
    | LanguageIsOneOf
    | TimezoneIs
    | TimezoneIsOneOf
    | CountryIs
    | CountryIsOneOf
    | AppVersionIs
    | AppVersionExists
    | HasClicked
    | PersonExists
    | HasTag
    | NotificationEnded
)
TargetState: TypeAlias = Literal["reached", "unknown", "left_out", "waiting"]
TestMetric: TypeAlias = Literal["clicked", "received"]
TextDirection: TypeAlias = Literal["auto", "ltr", "rtl"]
Urgency: TypeAlias = Literal["very-low", "low", "normal", "high"]
Visibility: TypeAlias = Literal["private", "public", "secret"]
WebhookEvent: TypeAlias = Literal[
    "notifications.finished",
    "notifications.cancelled",
    "notification.decided",
    "notifications.clicked",
    "notifications.dismissed",
    "subscriptions.created",
    "subscriptions.expired",
    "subscriptions.imported",
    "credential.paused",
    "credential.resumed",
    "limit.learned",
    "schedule.disabled",
    "automation.disabled",
    "newsfeed.disabled",
    "alert.raised",
]
WebhookFormat: TypeAlias = Literal["standard", "slack", "teams"]
WebhookState: TypeAlias = Literal["waiting", "delivered", "failed"]
AttributeChanges: TypeAlias = dict[str, AttributeChange] | None
Attributes: TypeAlias = dict[str, AttributeValue]
