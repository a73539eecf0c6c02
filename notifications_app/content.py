"""What a sender asks for: the content of a notification, its audience and its time. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Final
from uuid import UUID

from pushsvc.common.platforms import Platform


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """What a device gets of a notification, and how long and how urgently it is tried.

    The one list of these fields: the API's and the console's input, the notification's columns and
    the transports all use these names. Text that was not given is "". `ttl` is in seconds; 0 means
    deliver at once or drop.
    """

    title: str = ""
    body: str
    icon: str = ""
    url: str = ""
    image: str = ""
    data: Mapping[str, str] = field(default_factory=dict)
    ttl: int
    urgency: str = "normal"
    topic: str = ""


CONTENT_FIELDS: Final = tuple(each.name for each in fields(Content))


@dataclass(frozen=True, slots=True, kw_only=True)
class SendRequest:
    """One send. `segment_id` None means the whole channel, `scheduled_at` None means at once.
    After `expires_at` nobody is sent it.

    With `only_subscription_id` it is a test: that subscription gets it and no other.
    """

    content: Content
    target_platforms: tuple[Platform, ...]
    segment_id: UUID | None = None
    scheduled_at: datetime | None = None
    expires_at: datetime | None = None
    only_subscription_id: UUID | None = None
