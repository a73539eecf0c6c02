"""The settings of drf-spectacular for the OpenAPI document. `settings.py` imports them."""

SPECTACULAR_SETTINGS = {
    "TITLE": "pushsvc",
    "VERSION": "1.0.0",
    "DESCRIPTION": (
        "Push notifications to browsers, Android and iOS.\n\n"
        "The channel's owner sends `Authorization: Key <API key>`. Browsers and devices send "
        "`X-Channel-ID`. Every error has a stable `code`.\n\n"
        "[Quick start](/docs/start) · [Examples](/docs/examples) · [Errors](/docs/errors) · "
        "[All guides](/)"
    ),
    "SERVE_INCLUDE_SCHEMA": False,
    "CONTACT": {"name": "The operator of this installation"},
    "LICENSE": {"name": "Apache-2.0"},
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "pushsvc.common.http.openapi.add_links",
        "pushsvc.site.openapi_document.name_shapes",
        "pushsvc.site.openapi_document.say_defaults",
        "pushsvc.site.openapi_document.place_nulls",
        "pushsvc.site.openapi_document.require_bodies",
        "pushsvc.site.openapi_document.place_usual_responses",
        "pushsvc.site.openapi_document.describe_ids",
        "pushsvc.site.openapi_document.describe_enums",
        "pushsvc.site.openapi_document.link_documents",
        "pushsvc.site.openapi_document.share_parts",
    ],
    "ENUM_NAME_OVERRIDES": {
        "Platform": "pushsvc.common.platforms.PLATFORM_VALUES",
        "NotificationStatus": "notifications_app.states.NotificationStatus.values",
        "AutomationEvent": "notifications_app.models.AutomationEvent.values",
        "AutomationRecipient": "notifications_app.models.Recipient.values",
        "CapChoice": "notifications_app.content.values.CAP_CHOICES",
        "AudienceKind": ["channel", "segment", "rule", "targets", "correction", "subscription"],
        "TargetState": ["reached", "unknown", "left_out", "waiting"],
        "ExplainStep": "notifications_app.api.explain_serializers.STEP_NAMES",
        "ExplainVerdict": "notifications_app.api.explain_serializers.VERDICTS",
        "TestMetric": "notifications_app.content.values.TEST_METRICS",
        "DeliveryOutcome": ["waiting", "delivered", "bounced"],
        "CredentialKind": ["vapid_key", "fcm_service_account", "apns_key"],
        "IdentityAlgorithm": ["HS256", "ES256"],
        "DeviceEvent": "notifications_app.events.EventKind.values",
        "InterruptionLevel": "notifications_app.content.fields.INTERRUPTION_LEVELS",
        "OnMissing": "notifications_app.content.values.ON_MISSING",
        "ClickBehavior": "pushsvc.common.links.CLICKS",
        "PromptEvent": ["shown", "accepted", "refused", "blocked"],
        "PromptKind": "channels_app.models.PromptKind.values",
        "TextDirection": "notifications_app.content.fields.DIRECTIONS",
        "Urgency": "notifications_app.content.fields.URGENCIES",
        "WebhookEvent": "channels_app.feeds.EVENTS",
        "WebhookFormat": "channels_app.models.WebhookFormat.values",
        "WebhookState": "channels_app.models.WebhookState.values",
        "StatisticsInterval": "notifications_app.api.statistics_views.INTERVALS",
        "HandOverEnd": ["first", "last"],
        "ReplayState": ["failed", "delivered"],
        "Visibility": "notifications_app.content.fields.VISIBILITIES",
    },
    "PATH_CONVERTER_OVERRIDES": {"id": {"type": "string", "format": "uuid"}},  # as in responses
    "ENUM_GENERATE_CHOICE_DESCRIPTION": False,  # would repeat each value
    "COMPONENT_SPLIT_PATCH": False,  # all fields of EditInput are optional
    "SERVERS": [{"url": "/"}],
    "TAGS": [
        {"name": "channel", "description": "For the channel's owner: statistics, credentials."},
        {"name": "subscriptions", "description": "Public: for browsers and devices."},
        {"name": "people", "description": "For the channel's owner: whose a device is."},
        {"name": "notifications", "description": "For the channel's owner: send, cancel, read."},
        {"name": "templates", "description": "For the channel's owner: content that sends name."},
        {"name": "schedules", "description": "For the channel's owner: sends that repeat."},
        {
            "name": "automations",
            "description": "For the channel's owner: sends that follow events.",
        },
        {"name": "newsfeeds", "description": "For the channel's owner: entries of RSS and Atom."},
        {"name": "tags", "description": "For the channel's owner: what devices follow."},
        {"name": "segments", "description": "For the channel's owner: who a send may be for."},
        {"name": "categories", "description": "For the channel's owner: what devices may refuse."},
        {"name": "webhooks", "description": "For the channel's owner: what it is told."},
        {"name": "events", "description": "Public: what devices report."},
    ],
}
