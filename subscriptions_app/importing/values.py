"""The values of an import."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final, NamedTuple

from subscriptions_app.addresses import Address

MAX_TAKEOVER_DAYS: Final = 90


@dataclass(frozen=True, slots=True)
class Row:
    """One subscriber with checked values. None keeps the stored value.

    `last_seen_at`: when the device was last seen where the row comes from. `expired_at`: the
    subscriber gets no messages since then.
    """

    address: Address
    push_service: str
    p256dh: str = ""
    auth: str = ""
    vapid_public_key: str | None = None
    external_id: str | None = None
    language: str | None = None
    timezone: str | None = None
    attributes: Mapping[str, Any] | None = None
    tags: Sequence[str] | None = None
    choices: Mapping[str, bool] | None = None
    created_at: datetime | None = None
    last_seen_at: datetime | None = None
    expired_at: datetime | None = None
    expired_code: str = ""


@dataclass(frozen=True, slots=True)
class PersonRow:
    """A person's choices, and whether the person opted out, with checked values."""

    external_id: str
    choices: Mapping[str, bool]
    opted_out: bool


class Outcome(StrEnum):
    CREATED = "created"
    UPDATED = "updated"
    UNCHANGED = "unchanged"
    REFUSED = "refused"


class Result(NamedTuple):
    """What became of a row. A refused row has a stable `code`, the name of the field, and a
    sentence for people."""

    outcome: Outcome
    code: str = ""
    attr: str = ""
    detail: str = ""


def refused(code: str, attr: str, detail: str) -> Result:
    return Result(Outcome.REFUSED, code, attr, str(detail))


@dataclass(frozen=True, slots=True)
class Options:
    """How to import. `takeover_days`: for so long, the first phone that registers one of these
    tokens with its own `auth` keeps everything that the row says. `dry_run`: nothing is stored."""

    takeover_days: int = 0
    dry_run: bool = False
