"""The tables of subscriptions, people, categories, tags and segments."""

from subscriptions_app.models.categories import (
    CATEGORY_KEY,
    MAX_CATEGORY_DESCRIPTION,
    MAX_CATEGORY_KEY,
    MAX_CATEGORY_NAME,
    MAX_POSITION,
    Category,
)
from subscriptions_app.models.clicks import LastClick
from subscriptions_app.models.people import (
    MAX_EXTERNAL_ID,
    MOST_DEVICES,
    OPTED_OUT,
    Person,
)
from subscriptions_app.models.segments import (
    MAX_DEVICE_NAME,
    MAX_SEGMENT_NAME,
    Segment,
    TestDevice,
)
from subscriptions_app.models.subscriptions import (
    MAX_ATTRIBUTES,
    MAX_LANGUAGE,
    MAX_TIMEZONE,
    NOT_FOUND_APART,
    Subscription,
    SubscriptionQuerySet,
)
from subscriptions_app.models.tags import MAX_TAG, Tag, TagRemoval

__all__ = [
    "CATEGORY_KEY",
    "MAX_ATTRIBUTES",
    "MAX_CATEGORY_DESCRIPTION",
    "MAX_CATEGORY_KEY",
    "MAX_CATEGORY_NAME",
    "MAX_DEVICE_NAME",
    "MAX_EXTERNAL_ID",
    "MAX_LANGUAGE",
    "MAX_POSITION",
    "MAX_SEGMENT_NAME",
    "MAX_TAG",
    "MAX_TIMEZONE",
    "MOST_DEVICES",
    "NOT_FOUND_APART",
    "OPTED_OUT",
    "Category",
    "LastClick",
    "Person",
    "Segment",
    "Subscription",
    "SubscriptionQuerySet",
    "Tag",
    "TagRemoval",
    "TestDevice",
]
