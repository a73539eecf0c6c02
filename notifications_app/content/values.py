"""Values of a send: its content, its audience and its time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Final, Self, get_type_hints
from uuid import UUID

from notifications_app.content.fields import (
    DEFAULT_TTL,
    MAX_BODY,
    MAX_TITLE,
    MAX_TTL,
    URGENCIES,
    Field,
    Table,
    Type,
    choice,
    flag,
    shown,
)
from pushsvc.common.platforms import Platform

# If a recipient lacks a value: an empty place in the text, or a bounce.
EMPTY: Final = "empty"
BOUNCE: Final = "bounce"
ON_MISSING: Final = {EMPTY: "gets the text without it", BOUNCE: "gets nothing"}


_URGENCY: Final = "Whether devices in power-saving mode are woken (RFC 8030 section 5.3)."
_TTL: Final = "Seconds for which delivery is tried; 0: deliver immediately or drop."
_TOPIC: Final = "A newer notification with the same topic replaces the older one on the device."
_PERSONALIZE: Final = (
    "Whether placeholders such as `{{ name }}` stand for values of each recipient."
)
_ON_MISSING: Final = "What becomes of recipients without a value for a placeholder without default."
_VARS: Final = "Values of the send for its placeholders."
_VARIANTS: Final = (
    "Contents of which each device gets one, by chance: 2 to 10. See docs/ab-tests.md."
)
_DATA: Final = "Passed to the device unchanged."


@dataclass(frozen=True, kw_only=True)
class Content:
    """What a device gets of a notification, and how long and how urgently it is sent.

    Declares each field once. The API's input and output, the console's form, the audit log and the
    storage are made from it; fields of `web`, `android`, `ios`, `actions` and `translations` are
    in `content/fields.py`. A text that was not given is "".
    """

    title: Annotated[str, shown("Title", "Shown above the main text.", MAX_TITLE)] = ""
    body: Annotated[str, shown("Text", "Main text.", MAX_BODY, 1, required=True)]
    icon: Annotated[str, Field(Type.LINK, "Icon", "URL of the icon image.")] = ""
    url: Annotated[str, Field(Type.LINK, "Opens", "Destination opened on click.")] = ""
    image: Annotated[str, Field(Type.LINK, "Large image", "URL of a large image.")] = ""
    data: Annotated[Mapping[str, str], Field(Type.TEXTS, "Data", _DATA, is_audited=False)] = field(
        default_factory=dict
    )
    ttl: Annotated[int, Field(Type.NUMBER, "Time to live", _TTL, MAX_TTL)] = DEFAULT_TTL
    urgency: Annotated[str, choice("Urgency", _URGENCY, URGENCIES)] = "normal"
    topic: Annotated[str, Field(Type.TOPIC, "Topic", _TOPIC)] = ""
    actions: Annotated[
        Sequence[Mapping[str, str]],
        Field(Type.ACTIONS, "Buttons", "Buttons of the notification."),
    ] = field(default_factory=list)
    web: Annotated[Mapping[str, Any], Field(Type.WEB, "Only on Web", "For browsers alone.")] = (
        field(default_factory=dict)
    )
    android: Annotated[
        Mapping[str, Any], Field(Type.ANDROID, "Only on Android", "For Android alone.")
    ] = field(default_factory=dict)
    ios: Annotated[Mapping[str, Any], Field(Type.IOS, "Only on iOS", "For iOS alone.")] = field(
        default_factory=dict
    )
    translations: Annotated[
        Mapping[str, Mapping[str, Any]],
        Field(Type.TRANSLATIONS, "Languages", "Texts by language (BCP 47)."),
    ] = field(default_factory=dict)
    personalize: Annotated[bool, flag("Placeholders", _PERSONALIZE)] = False
    vars: Annotated[
        Mapping[str, str | int | float],
        Field(Type.VARS, "Values of placeholders", _VARS, is_audited=False),
    ] = field(default_factory=dict)
    on_missing: Annotated[str, choice("Without a value", _ON_MISSING, ON_MISSING)] = EMPTY
    variants: Annotated[
        Sequence[Mapping[str, Any]], Field(Type.VARIANTS, "Variants", _VARIANTS)
    ] = field(default_factory=list)

    def of_variant(self, number: int | None) -> Self:
        """The content that devices with the variant of this number get; itself for None."""
        if number is None or number >= len(self.variants):
            return self
        given = self.variants[number]
        own = {name: each for name, each in given.items() if name not in ABOUT_VARIANT}
        for name in ("web", "android", "ios"):
            own[name] = {**getattr(self, name), **own.get(name, {})}
        texts = own.get("translations", {})
        own["translations"] = {
            tag: {**self.translations.get(tag, {}), **texts.get(tag, {})}
            for tag in (*self.translations, *(texts.keys() - self.translations.keys()))
        }
        return replace(self, **own, variants=[])

    @property
    def versions(self) -> list[tuple[str, Self]]:
        """The contents that devices get, each with the path of its variant, as in errors."""
        if not self.variants:
            return [("", self)]
        numbers = range(len(self.variants))
        return [(f"variants.{number}.", self.of_variant(number)) for number in numbers]

    def with_texts(self, changed: Mapping[str, Any]) -> Self:
        """A copy with these texts. Used for each recipient, because `dataclasses.replace` takes ten
        times as long."""
        copy = object.__new__(type(self))
        copy.__dict__.update(self.__dict__)
        copy.__dict__.update(changed)
        return copy


ABOUT_VARIANT: Final = ("name", "weight")
CONTENT: Final[Table] = {
    name: hint.__metadata__[0]
    for name, hint in get_type_hints(Content, include_extras=True).items()
}
# What a send has that does not give the field.
DEFAULTS: Final[Mapping[str, Any]] = {
    name: getattr(Content(body=""), name) for name, each in CONTENT.items() if not each.required
}
# Fields that a send may lack, even if its template has them.
REMOVABLE_FIELDS: Final = tuple(name for name, value in DEFAULTS.items() if value in ("", {}, []))
AUDITED_FIELDS: Final = tuple(name for name, each in CONTENT.items() if each.is_audited)


# Whether the channel's caps count for a send.
RESPECT: Final = "respect"
IGNORE: Final = "ignore"
CAP_CHOICES: Final = (RESPECT, IGNORE)

# What a test of variants compares: the rate of recipients that reported it.
TEST_METRICS: Final = ("clicked", "received")
# What becomes of a test whose numbers say nothing, beside the name of a variant.
LEADER: Final = "leader"
HOLD: Final = "hold"


class AudienceKind(StrEnum):
    """The ways in which a send names its audience."""

    CHANNEL = "channel"
    SEGMENT = "segment"
    RULE = "rule"
    TARGETS = "targets"
    CORRECTION = "correction"
    SUBSCRIPTION = "subscription"


# The fields of a send that name its audience; a send has at most one of them.
AUDIENCE_FIELDS: Final[Mapping[str, AudienceKind]] = {
    "segment_id": AudienceKind.SEGMENT,
    "rule": AudienceKind.RULE,
    "external_ids": AudienceKind.TARGETS,
    "subscription_ids": AudienceKind.TARGETS,
    "targets": AudienceKind.TARGETS,
    "replaces": AudienceKind.CORRECTION,
}
MAX_TARGETS: Final = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetId:
    """A person or a subscription that a send names, by one of the two ids. `vars`: its own values
    for placeholders, which override those of the send."""

    external_id: str | None = None
    subscription_id: UUID | None = None
    vars: Mapping[str, str | int | float] | None = field(default=None, hash=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class SendRequest:
    """One send. Without `segment_id`, `rule`, `targets` and `replaces` it is for the whole channel.

    Empty `target_platforms` mean every platform that the channel has enabled. `scheduled_at` None
    means immediately. `local_at`: the time of each device's clock, from `scheduled_at` on, or of a
    day. `quiet_hours`: from and to when nobody is sent it by its own clock, or `channel` or
    `ignore`. No call is made after `expires_at`. Subscribers who opted out of the
    `category` are skipped; "" means no category. `template_id`: the template from which content was
    copied.

    `rate_per_minute`: how many recipients workers take up in a minute; 0 means as many as they can,
    None what the channel says. `cap`: whether caps of the channel leave out and count recipients,
    `respect` or `ignore`. `name` and `labels` are for staff and reports alone.

    `test`: how the variants are tested before the best one goes to the rest: `share` in percent,
    `minutes`, `metric`, and `inconclusive`: LEADER, HOLD or the name of a variant.

    `replaces`: the notification that it corrects. Then `rule` is its audience and `root_id` as in
    Notification, both from `sends/corrections.py`.

    `only_subscription_id` makes it a test: only that subscription gets it.
    """

    content: Content
    target_platforms: tuple[Platform, ...]
    segment_id: UUID | None = None
    category: str = ""
    rule: Mapping[str, Any] | None = None
    targets: tuple[TargetId, ...] = ()
    scheduled_at: datetime | None = None
    local_at: str | None = None
    quiet_hours: str | Mapping[str, str] = "channel"
    expires_at: datetime | None = None
    rate_per_minute: int | None = None
    cap: str = RESPECT
    name: str = ""
    labels: tuple[str, ...] = ()
    test: Mapping[str, Any] | None = None
    replaces: UUID | None = None
    root_id: UUID | None = None
    only_subscription_id: UUID | None = None
    template_id: UUID | None = None
