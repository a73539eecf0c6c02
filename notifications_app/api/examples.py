"""Examples of the OpenAPI document."""

from typing import Any, Final

from drf_spectacular.utils import OpenApiExample

ID: Final = "019aa2f0-5a3e-7c11-9f3a-3f0c6d1f7b52"
_LISTED: Final[dict[str, Any]] = {
    "notification_id": ID,
    "title": "Your order",
    "body": "It left our warehouse this morning.",
    "icon": "https://example.com/icon.png",
    "url": "https://example.com/orders/4711",
    "recipient_count": 1200,
    "delivered_count": 1187,
    "bounced_count": 13,
    "clicked_count": 94,
    "scheduled_at": "2026-11-20T15:11:00.000Z",
    "created_at": "2026-11-20T15:10:58.123Z",
    "status": "sent",
    "target_platforms": ["web"],
    "segment_id": None,
}

SEND: Final = OpenApiExample("At once", {"body": "Hello"}, request_only=True)
SEND_LATER: Final = OpenApiExample(
    "Later, with everything",
    {
        "title": "Your order",
        "body": "It left our warehouse this morning.",
        "url": "https://example.com/orders/4711",
        "icon": "https://example.com/icon.png",
        "scheduled_at": "2026-11-20T16:11:00+01:00",
        "target_platforms": ["web"],
        "category": "orders",
        "data": {"order": "4711"},
        "ttl": 3600,
        "expires_at": "2026-11-20T18:00:00+01:00",
        "urgency": "high",
        "topic": "order-4711",
        "actions": [
            {
                "id": "track",
                "title": "Track it",
                "url": "https://example.com/track",
                "android_url": "myshop://track/4711",
            }
        ],
        "web": {"require_interaction": True, "badge": "https://example.com/badge.png"},
        "android": {
            "url": "myshop://orders/4711",
            "channel_id": "orders",
            "sound": "ding",
            "color": "#ff8800",
        },
        "ios": {"subtitle": "Order 4711", "sound": "ding.wav", "badge": 1},
        "translations": {"de": {"title": "Ihre Bestellung", "actions": {"track": "Verfolgen"}}},
    },
    request_only=True,
)
SEND_DIRECT: Final = OpenApiExample(
    "To two people",
    {
        "body": "Your parcel is here.",
        "external_ids": ["user-42", "user-43"],
        "target_platforms": ["all"],
    },
    request_only=True,
)
SEND_RULE: Final = OpenApiExample(
    "To whom a rule selects",
    {
        "body": "New for you",
        "rule": {"attribute": "plan", "operator": "eq", "value": "pro"},
    },
    request_only=True,
)
SEND_CORRECTION: Final = OpenApiExample(
    "In place of an earlier notification",
    {"body": "The final score is 2:1.", "replaces": ID},
    request_only=True,
)
SEND_TEMPLATE: Final = OpenApiExample(
    "What a template says, with another address",
    {"template_id": ID, "url": "https://example.com/orders/4711"},
    request_only=True,
)
SENT: Final = OpenApiExample(
    "Stored",
    {
        "success": True,
        "message": f"Notification stored for processing with id {ID}.",
        "notification_id": ID,
        "scheduled_at": "2026-11-20T15:11:00.000Z",
        "status": "pending",
    },
)
DRY_RUN: Final = OpenApiExample(
    "Dry run",
    {
        "platforms": {
            "web": {
                "payload_bytes": 312,
                "audience": 1200,
                "estimated": False,
                "push_services": {
                    "fcm": {"payload_bytes": 312, "payload_limit": 3993},
                    "mozilla": {"payload_bytes": 312, "payload_limit": 2912},
                },
            }
        }
    },
)
DRY_RUN_DIRECT: Final = OpenApiExample(
    "Dry run of a send to targets",
    {
        "platforms": {"web": {"payload_bytes": 312, "audience": 2, "estimated": False}},
        "unknown": {"external_ids": ["user-43"], "subscription_ids": []},
        "detail": "The targets also have devices on iOS, which get nothing.",
    },
)
TARGETS: Final = OpenApiExample(
    "A page",
    {"external_id": "user-42", "subscription_id": None, "state": "reached", "devices": 2},
)
CANCELLED: Final = OpenApiExample(
    "Cancelled",
    {
        "success": True,
        "message": f'Notification {ID} "Your order" is cancelled.',
        "notificationId": ID,
    },
)
EDIT: Final = OpenApiExample(
    "Another text and no url", {"body": "It left our warehouse.", "url": None}, request_only=True
)
PAUSED: Final = OpenApiExample("Paused", {"notification_id": ID, "paused": True})
RESUMED: Final = OpenApiExample("Resumed", {"notification_id": ID, "paused": False})
STOPPED: Final = OpenApiExample("Stopped", {"notification_id": ID, "stopped": True})
LISTED: Final = OpenApiExample("A page", _LISTED)
READ: Final = OpenApiExample(
    "A notification",
    {"notification_id": ID, "channel_id": ID, **_LISTED},
)
DETAILS: Final = OpenApiExample(
    "A notification",
    {
        "notification_id": ID,
        "status": "sent",
        "paused": False,
        "stopped": False,
        "edited_at": None,
        "template_id": None,
        "api_key": "psk_BUMkgwc9",
        "audience": {
            "kind": "channel",
            "segment_id": None,
            "category": "news",
            "rule": None,
            "replaces": None,
            "subscription_id": None,
        },
        "corrected_by": [],
        "timing": {
            "scheduled_at": "2026-11-20T15:11:00.000Z",
            "started_at": "2026-11-20T15:11:00.412Z",
            "deadline_at": "2026-11-23T15:11:00.412Z",
            "expires_at": None,
            "finished_at": "2026-11-20T15:11:04.870Z",
            "local_at": None,
            "quiet_hours": {"from": "22:00", "to": "08:00"},
            "zones_too_late": 0,
        },
        "content": {
            "title": "Your order",
            "body": "It left our warehouse this morning.",
            "icon": "https://example.com/icon.png",
            "url": "https://example.com/orders/4711",
            "image": "",
            "data": {"order": "4711"},
            "ttl": 259200,
            "urgency": "normal",
            "topic": "",
            "actions": [{"id": "track", "title": "Track it"}],
            "web": {"require_interaction": True},
            "android": {},
            "ios": {},
            "translations": {"de": {"title": "Ihre Bestellung"}},
        },
        "platforms": {
            "web": {
                "recipient_count": 1200,
                "delivered_count": 1187,
                "bounced_count": 13,
                "stopped_count": 0,
                "opted_out_count": 0,
                "expired_count": 0,
                "planned": True,
            }
        },
        "left_out": {"opted_out": 42, "capped": 0, "repeated": 0},
        "releases": [
            {
                "release_at": "2026-11-20T15:11:00.412Z",
                "platforms": ["web"],
                "planned": True,
                "recipient_count": 1200,
            }
        ],
        "reasons": [{"platform": "web", "code": "endpoint_gone", "count": 13}],
        "limited_by": None,
        "rate_per_minute": None,
        "name": "Spring sale, reminder",
        "labels": ["spring-sale"],
        "received_count": 1102,
        "clicked_count": 94,
        "dismissed_count": 210,
        "actions_clicked": {"track": 31},
    },
)
