"""The tables of notifications_app."""

from notifications_app.models.notification import Draft, IdempotencyRecord, Notification
from notifications_app.models.rollups import ActionCount, EventHour, HourlyStat, OutcomeMinute
from notifications_app.models.targets import Target
from notifications_app.models.templates import MAX_TEMPLATE_NAME, Template
from notifications_app.models.work import (
    BREAKING_BATCH,
    RECIPIENTS_LEFT,
    SMALL_BATCH,
    WANTED_SINCE,
    Batch,
    Delivery,
    Driver,
    Plan,
)

__all__ = [
    "BREAKING_BATCH",
    "MAX_TEMPLATE_NAME",
    "RECIPIENTS_LEFT",
    "SMALL_BATCH",
    "WANTED_SINCE",
    "ActionCount",
    "Batch",
    "Delivery",
    "Draft",
    "Driver",
    "EventHour",
    "HourlyStat",
    "IdempotencyRecord",
    "Notification",
    "OutcomeMinute",
    "Plan",
    "Target",
    "Template",
]
