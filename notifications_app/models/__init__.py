"""The tables of notifications_app."""

from notifications_app.models.contacts import Contact, Once
from notifications_app.models.images import IMAGE_NAME_LENGTH, Image, ImageRemoval
from notifications_app.models.notification import (
    MAX_LABEL,
    MAX_NOTIFICATION_NAME,
    MOST_LABELS,
    Draft,
    IdempotencyRecord,
    Notification,
)
from notifications_app.models.rollups import ActionCount, EventHour, HourlyStat, OutcomeMinute
from notifications_app.models.schedules import (
    AHEAD,
    MAX_ONCE_DAYS,
    MAX_SCHEDULE_NAME,
    Occurrence,
    OccurrenceCode,
    Schedule,
)
from notifications_app.models.targets import Target
from notifications_app.models.templates import MAX_TEMPLATE_NAME, Template
from notifications_app.models.work import (
    BREAKING_BATCH,
    HAS_NO_RATE,
    NO_SUBSCRIPTION,
    RECIPIENTS_LEFT,
    SMALL_BATCH,
    WANTED_SINCE,
    Batch,
    Delivery,
    Driver,
    Plan,
    SendRate,
)

__all__ = [
    "AHEAD",
    "BREAKING_BATCH",
    "HAS_NO_RATE",
    "IMAGE_NAME_LENGTH",
    "MAX_LABEL",
    "MAX_NOTIFICATION_NAME",
    "MAX_ONCE_DAYS",
    "MAX_SCHEDULE_NAME",
    "MAX_TEMPLATE_NAME",
    "MOST_LABELS",
    "NO_SUBSCRIPTION",
    "RECIPIENTS_LEFT",
    "SMALL_BATCH",
    "WANTED_SINCE",
    "ActionCount",
    "Batch",
    "Contact",
    "Delivery",
    "Draft",
    "Driver",
    "EventHour",
    "HourlyStat",
    "IdempotencyRecord",
    "Image",
    "ImageRemoval",
    "Notification",
    "Occurrence",
    "OccurrenceCode",
    "Once",
    "OutcomeMinute",
    "Plan",
    "Schedule",
    "SendRate",
    "Target",
    "Template",
]
