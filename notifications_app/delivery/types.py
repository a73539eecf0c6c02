"""What transports take and return, on every platform."""

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final, Self, TypeAlias, TypeGuard
from urllib.parse import urlsplit
from uuid import UUID

from notifications_app.content.values import Content

MAX_TEXT: Final = 200
MAX_RETRY_AFTER: Final = 3_600.0


@dataclass(frozen=True, slots=True)
class Accepted:
    """The push service took the message. Whether the device shows it is not known."""


@dataclass(frozen=True, slots=True)
class Deferred:
    """Another attempt may succeed, but not within `retry_after` seconds.

    `outage`: the push service fails (5xx, timeouts, resets); breakers count this. A request to slow
    down is not an outage. `was_called`: False if no call was made, so that the outcome says nothing
    about the push service.
    """

    code: str
    detail: str = ""
    retry_after: float | None = None
    outage: bool = False
    was_called: bool = field(default=True, compare=False)


@dataclass(frozen=True, slots=True)
class Rejected:
    """The push service will never take this message for this device. The address is still valid.

    `was_called`: as in Deferred.
    """

    code: str
    detail: str = ""
    was_called: bool = field(default=True, compare=False)


@dataclass(frozen=True, slots=True)
class Gone:
    """The address is dead since `as_of` (aware), or since now.

    `suspect`: a wrong configuration could cause the same response, so many suspects at once expire
    no subscription. `attempts`: until this many attempts were made, the recipient is tried again,
    because the cause may be brief.
    """

    code: str
    detail: str = ""
    as_of: datetime | None = None
    suspect: bool = False
    attempts: int = 1


@dataclass(frozen=True, slots=True)
class Misconfigured:
    """The channel's credentials were refused. `was_called`: as in Deferred."""

    code: str
    detail: str = ""
    was_called: bool = field(default=True, compare=False)


# The code of a Deferred call that a web push service throttled.
THROTTLED: Final = "throttled"
# The code of a call that raised, though a transport must not.
INTERNAL_ERROR: Final = "internal_error"

Outcome: TypeAlias = Accepted | Deferred | Rejected | Gone | Misconfigured


def is_throttled(outcome: Outcome) -> TypeGuard[Deferred]:
    return isinstance(outcome, Deferred) and outcome.code == THROTTLED


@dataclass(frozen=True, slots=True)
class Site:
    """The channel's site. `url`: its address, or "". `name`: the title of a notification without
    one: the site's host, as our worker shows it, or else the channel's name."""

    url: str
    name: str

    @classmethod
    def of(cls, url: str, channel_name: str) -> Self:
        return cls(url, urlsplit(url).hostname or channel_name)


@dataclass(frozen=True, slots=True, eq=False)
class Message:
    """One notification for all its recipients, or for one of them.

    `expires_at` is its deadline on this process's monotonic clock. Messages compare by identity, so
    that transports can cache what they build from one for all recipients of a batch. `content`:
    what all recipients get. `common`: the message for all, if this one is for one recipient. `own`:
    the fields of the content that have their own texts for this recipient. `site`: for a push
    service whose browsers show messages without the site's worker. `root_id`: the notification in
    whose place a correction is shown.
    """

    notification_id: UUID
    content: Content
    expires_at: float
    common: "Message | None" = None
    own: Mapping[str, Any] = field(default_factory=dict)
    site: Site | None = None
    root_id: UUID | None = None

    @property
    def whole(self) -> Content:
        """The content with this recipient's texts. Transports insert `own` into cached results
        instead, because a copy for each recipient takes longer than all other personalizing."""
        return self.content.with_texts(self.own)

    def time_to_live(self, now: float) -> int:
        """The remaining time in whole seconds, at least 1; 0 if the content's ttl is 0. `now` is on
        the clock of `expires_at`."""
        return max(1, math.ceil(self.expires_at - now)) if self.content.ttl else 0


@dataclass(slots=True)  # not frozen, because each message makes one, which takes longer
class Destination:
    """What a transport needs for one recipient.

    `address`: a browser's endpoint or a phone's token; `token`: the tracking token.
    """

    subscription_id: UUID
    address: str = field(repr=False)
    token: str = field(repr=False)


@dataclass(slots=True)
class BrowserDestination(Destination):
    """`p256dh` and `auth`: base64url, with or without padding."""

    p256dh: str = field(repr=False)
    auth: str = field(repr=False)
    vapid_key_id: UUID


def stored_texts(secret: str, names: Iterable[str]) -> dict[str, str]:
    """The named texts of a stored JSON object. Raises ValueError, whose text does not contain the
    secret."""
    try:
        values = json.loads(secret)
        texts = {name: values[name] for name in names}
    except (ValueError, TypeError, KeyError, RecursionError):
        raise ValueError("not a JSON object with these names") from None
    if not all(isinstance(text, str) for text in texts.values()):
        raise ValueError("not texts")
    return texts


def clean_text(text: str) -> str:
    """Makes a push service's text safe to store and show: one line of at most MAX_TEXT characters,
    without control characters, lone surrogates and invisible marks."""
    line = " ".join(text.split())
    if not line.isprintable():
        line = "".join(character for character in line if character.isprintable())
    return line[:MAX_TEXT]


def parse_retry_after(
    value: str | None, now: datetime, most: float = MAX_RETRY_AFTER
) -> float | None:
    """The seconds of a Retry-After header (RFC 9110 section 10.2.3), from 0 to `most`;
    None if it is missing or malformed. `now` is aware."""
    if value is None:
        return None
    seconds = _seconds(value, now)
    return None if math.isnan(seconds) else min(max(seconds, 0.0), most)


def _seconds(value: str, now: datetime) -> float:
    """NaN if the value is malformed."""
    try:
        return float(value)
    except ValueError:
        pass
    try:
        moment = parsedate_to_datetime(value)
        aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return (aware - now).total_seconds()
    except (ValueError, OverflowError):
        return math.nan
