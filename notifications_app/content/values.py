"""Values of a send: its content, its audience and its time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from enum import StrEnum
from typing import Any, Final, Self
from uuid import UUID

from pushsvc.common.platforms import Platform

# If a recipient lacks a value: an empty place in the text, or a bounce.
EMPTY: Final = "empty"
BOUNCE: Final = "bounce"
ON_MISSING: Final = (EMPTY, BOUNCE)


@dataclass(frozen=True, kw_only=True)
class Content:
    """What a device gets of a notification, and how long and how urgently it is sent.

    The API's and the console's input, the notification's columns and the transports all use the
    names of these fields. A text that was not given is "". `ttl` is in seconds; 0 means deliver at
    once or drop. The last fields are JSON as `send_schema` accepts it. `vars` are values of the
    send for placeholders; there are some only with `personalize`.
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
    actions: Sequence[Mapping[str, str]] = field(default_factory=list)
    web: Mapping[str, Any] = field(default_factory=dict)
    android: Mapping[str, Any] = field(default_factory=dict)
    ios: Mapping[str, Any] = field(default_factory=dict)
    translations: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    personalize: bool = False
    vars: Mapping[str, str | int | float] = field(default_factory=dict)
    on_missing: str = EMPTY

    def with_texts(self, changed: Mapping[str, Any]) -> Self:
        """A copy with these texts. Used for each recipient, because `dataclasses.replace` takes ten
        times as long."""
        copy = object.__new__(type(self))
        copy.__dict__.update(self.__dict__)
        copy.__dict__.update(changed)
        return copy

    @property
    def extras(self) -> dict[str, Any] | None:
        """The EXTRA_FIELDS that were given. None if there are none, as in most sends."""
        given = {name: getattr(self, name) for name in EXTRA_FIELDS}
        stored = {name: value for name, value in given.items() if value and value != EMPTY}
        return stored or None


CONTENT_FIELDS: Final = tuple(each.name for each in fields(Content))
# Fields that a send may lack, also if its template has them.
REMOVABLE_FIELDS: Final = (
    "title",
    "url",
    "icon",
    "image",
    "data",
    "topic",
    "actions",
    "web",
    "android",
    "ios",
    "translations",
    "vars",
)
# Stored together in one column. Each other field has its own column, including `vars`, which the
# audit log must not show.
EXTRA_FIELDS: Final = (
    "actions",
    "web",
    "android",
    "ios",
    "translations",
    "personalize",
    "on_missing",
)
COLUMN_FIELDS: Final = tuple(name for name in CONTENT_FIELDS if name not in EXTRA_FIELDS)


class AudienceKind(StrEnum):
    """The ways in which a send names its audience."""

    CHANNEL = "channel"
    SEGMENT = "segment"
    RULE = "rule"
    TARGETS = "targets"
    SUBSCRIPTION = "subscription"


# The fields of a send that name its audience; a send has at most one of them.
AUDIENCE_FIELDS: Final[Mapping[str, AudienceKind]] = {
    "segment_id": AudienceKind.SEGMENT,
    "rule": AudienceKind.RULE,
    "external_ids": AudienceKind.TARGETS,
    "subscription_ids": AudienceKind.TARGETS,
    "targets": AudienceKind.TARGETS,
}
MAX_TARGETS: Final = 1_000

# In `only_subscription_id` of notifications to a rule or to targets. So planners of the previous
# version, which support neither, find no recipients instead of the whole channel.
NO_SUBSCRIPTION: Final = UUID(int=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetId:
    """A person or a subscription that a send names, by one of the two ids. `vars`: its own values
    for placeholders, which override those of the send."""

    external_id: str | None = None
    subscription_id: UUID | None = None
    vars: Mapping[str, str | int | float] | None = field(default=None, hash=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class SendRequest:
    """One send. Without `segment_id`, `rule` and `targets` it is for the whole channel.

    Empty `target_platforms` mean every platform that the channel has enabled. `scheduled_at` None
    means at once. No call is made after `expires_at`. Devices that refuse the `category` are left
    out; "" means no category. `template_id`: the template from which content was copied.

    `only_subscription_id` makes it a test: only that subscription gets it.
    """

    content: Content
    target_platforms: tuple[Platform, ...]
    segment_id: UUID | None = None
    category: str = ""
    rule: Mapping[str, Any] | None = None
    targets: tuple[TargetId, ...] = ()
    scheduled_at: datetime | None = None
    expires_at: datetime | None = None
    only_subscription_id: UUID | None = None
    template_id: UUID | None = None
