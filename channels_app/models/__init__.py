"""The tables of channels_app."""

from channels_app.models.accounts import (
    Account,
    CacheEntry,
    Mail,
    Membership,
    Reader,
    Role,
)
from channels_app.models.channels import (
    GRACE,
    MAX_INBOX_DAYS,
    ApiKey,
    Channel,
    Identity,
    IdentityKey,
    ProviderCredential,
    Scope,
    Tries,
    VapidKey,
)
from channels_app.models.totals import (
    PROMPT_EVENTS,
    ChannelCounter,
    ChannelHour,
    PromptHour,
    PromptKind,
)
from channels_app.models.webhooks import (
    Alert,
    Feed,
    Webhook,
    WebhookAttempt,
    WebhookFormat,
    WebhookMessage,
    WebhookState,
)

__all__ = [
    "GRACE",
    "MAX_INBOX_DAYS",
    "PROMPT_EVENTS",
    "Account",
    "Alert",
    "ApiKey",
    "CacheEntry",
    "Channel",
    "ChannelCounter",
    "ChannelHour",
    "Feed",
    "Identity",
    "IdentityKey",
    "Mail",
    "Membership",
    "PromptHour",
    "PromptKind",
    "ProviderCredential",
    "Reader",
    "Role",
    "Scope",
    "Tries",
    "VapidKey",
    "Webhook",
    "WebhookAttempt",
    "WebhookFormat",
    "WebhookMessage",
    "WebhookState",
]
