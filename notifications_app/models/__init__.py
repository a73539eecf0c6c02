"""What notifications_app stores."""

from notifications_app.models.notification import Draft, IdempotencyRecord, Notification, Urgency
from notifications_app.models.rollups import HourlyStat, OutcomeMinute
from notifications_app.models.work import (
    BREAKING_BATCH,
    RECIPIENTS_LEFT,
    WANTED_SINCE,
    Batch,
    Delivery,
    Plan,
)

__all__ = [
    "BREAKING_BATCH",
    "RECIPIENTS_LEFT",
    "WANTED_SINCE",
    "Batch",
    "Delivery",
    "Draft",
    "HourlyStat",
    "IdempotencyRecord",
    "Notification",
    "OutcomeMinute",
    "Plan",
    "Urgency",
]
