"""What goes into a transport and what comes out of it: the same for every platform."""

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final, TypeAlias
from uuid import UUID

from notifications_app.content import Content

MAX_TEXT: Final = 200
MAX_RETRY_AFTER: Final = 3_600.0


@dataclass(frozen=True, slots=True)
class Accepted:
    """The push service took the message; whether the device shows it is not known."""

    provider_id: str = ""


@dataclass(frozen=True, slots=True)
class Deferred:
    """Worth another attempt, not before `retry_after` seconds where given.

    `outage`: the service is ailing (5xx, timeouts, resets), which a breaker counts; being asked to
    slow down is not that.
    """

    code: str
    detail: str = ""
    retry_after: float | None = None
    outage: bool = False


@dataclass(frozen=True, slots=True)
class Rejected:
    """This message to this device will never be taken; the device itself is not in doubt."""

    code: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Gone:
    """This endpoint is dead since `as_of` (aware), or since now.

    `suspect`: an error of ours can look the same, so many of them at once expire nobody.
    """

    code: str
    detail: str = ""
    as_of: datetime | None = None
    suspect: bool = False


@dataclass(frozen=True, slots=True)
class Misconfigured:
    """The channel's credentials were refused."""

    code: str
    detail: str = ""


# The code of a call that raised, though a transport must not.
INTERNAL_ERROR: Final = "internal_error"

Outcome: TypeAlias = Accepted | Deferred | Rejected | Gone | Misconfigured


@dataclass(frozen=True, slots=True)
class Message:
    """One notification for all its recipients.

    `expires_at` is its deadline on this process's monotonic clock.
    """

    notification_id: UUID
    content: Content
    expires_at: float


@dataclass(frozen=True, slots=True)
class Target:
    """What a transport needs of one recipient.

    `address`: a browser's endpoint or a phone's token; `token`: the tracking token.
    """

    subscription_id: UUID
    address: str = field(repr=False)
    token: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class BrowserTarget(Target):
    """`p256dh` and `auth`: base64url, with or without padding."""

    p256dh: str = field(repr=False)
    auth: str = field(repr=False)
    vapid_key_id: UUID


def stored_texts(secret: str, names: Iterable[str]) -> dict[str, str]:
    """Those texts of the JSON object that credentials are stored as. Raises ValueError, whose words
    hold nothing of the secret."""
    try:
        values = json.loads(secret)
        texts = {name: values[name] for name in names}
    except (ValueError, TypeError, KeyError, RecursionError):
        raise ValueError("no JSON object with these names") from None
    if not all(isinstance(text, str) for text in texts.values()):
        raise ValueError("not texts")
    return texts


def clean_text(text: str) -> str:
    """A stranger's text, fit for a text column and a page of ours: on one line, without control
    characters, lone surrogates and invisible marks, at most MAX_TEXT characters."""
    line = " ".join(text.split())
    return "".join(character for character in line if character.isprintable())[:MAX_TEXT]


def parse_retry_after(value: str | None, now: datetime) -> float | None:
    """Seconds from 0 to MAX_RETRY_AFTER that a Retry-After header asks for (RFC 9110 section
    10.2.3), or None if it is missing or says nothing. `now` is aware."""
    if value is None:
        return None
    seconds = _seconds(value, now)
    return None if math.isnan(seconds) else min(max(seconds, 0.0), MAX_RETRY_AFTER)


def _seconds(value: str, now: datetime) -> float:
    """NaN where the value says nothing."""
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
