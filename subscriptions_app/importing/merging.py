"""Decides what a row of an import changes in a stored subscription. Pure functions.

What the device said to this service after the row's `last_seen_at` stays; the row only fills what
the device has not said. A row without `last_seen_at` changes only a subscription that an import
created and whose device has not registered since. The import gives such a subscription the same
`created_at` and `registered_at`.
"""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django.utils.translation import gettext

from pushsvc.common.ids import uuid7
from subscriptions_app.importing.values import Options, Result, Row, refused
from subscriptions_app.models import Subscription

UNSUBSCRIBED: Final = "unsubscribed"
OTHER_KEYS: Final = "other_keys"
DEVICE_UNPROVEN: Final = "device_unproven"
# The columns of which a row says something. `person` is added when it is known.
COLUMNS: Final = (
    "p256dh", "auth", "vapid_key_id", "push_service", "attributes", "timezone",
    "timezone_changed_at", "language", "choices", "proven_choices", "created_at", "registered_at",
    "expired_at", "expired_code", "is_set_aside", "takeover_until",
)  # fmt: skip


@dataclass(slots=True)
class Merged:
    """What is stored for a row. `known`: the subscription that it changes, after the rows before of
    its transaction. `external_id` None: the subscription keeps its person. `tags` None: it keeps
    its tags. `stored`: the subscription before the transaction."""

    row: Row
    known: Subscription | None
    id: UUID
    values: dict[str, Any]
    external_id: str | None
    tags: list[str] | None
    stored: Subscription | None = field(init=False)

    def __post_init__(self) -> None:
        self.stored = self.known

    def follow(self, before: "Merged") -> None:
        """Takes over what an earlier row of the transaction changes and this one keeps."""
        self.stored = before.stored
        self.external_id = before.external_id if self.external_id is None else self.external_id
        self.tags = before.tags if self.tags is None else self.tags

    def is_change(self) -> bool:
        known = self.known
        return (
            known is None
            or self.tags is not None
            or (self.external_id is not None and self.external_id != _external_id(known))
            or any(getattr(known, name) != value for name, value in self.values.items())
        )


def merged(
    row: Row,
    known: Subscription | None,
    tags: set[str],
    *,
    vapid_key_id: UUID | None,
    now: datetime,
    options: Options,
) -> Merged | Result:
    """`tags`: those of the known subscription. `vapid_key_id`: of the key that the row names, or
    for a new subscription without one, the channel's current key."""
    if known is None:
        values = _created(row, vapid_key_id, now, options)
        return Merged(row, None, uuid7(), values, row.external_id, list(row.tags or ()) or None)
    is_devices = _is_devices(row, known)
    if is_devices and row.auth and known.auth and row.auth != known.auth:
        detail = gettext("A device is registered at this address with other keys.")
        return refused(OTHER_KEYS, "auth", detail)
    external_id = _new_person(row, known, is_devices=is_devices)
    if external_id is not None and known.auth not in ("", row.auth) and not options.takeover_days:
        detail = gettext(
            "A device has registered this address with its own `auth`. Import with a "
            "takeover if you are sure that it is this person's."
        )
        return refused(DEVICE_UNPROVEN, "external_id", detail)
    values = _filled(row, known) if is_devices else _replaced(row, known, vapid_key_id, now)
    values |= _choices(row, known, external_id, is_devices=is_devices)
    values |= _expiry(row, known)
    values["takeover_until"] = _takeover(row, known, external_id, now, options)
    values["is_set_aside"] = False
    return Merged(row, known, known.pk, values, external_id, _new_tags(row, tags, is_devices))


def _created(
    row: Row, vapid_key_id: UUID | None, now: datetime, options: Options
) -> dict[str, Any]:
    seen = row.last_seen_at or row.created_at or now
    choices = dict(row.choices or {})
    until = (
        now + timedelta(days=options.takeover_days) if _may_be_taken(row.auth, options) else None
    )
    return {
        "p256dh": row.p256dh,
        "auth": row.auth,
        "vapid_key_id": vapid_key_id,
        "push_service": row.push_service,
        "attributes": dict(row.attributes or {}),
        "timezone": row.timezone or "",
        "timezone_changed_at": None,
        "language": row.language or "",
        "choices": choices,
        "proven_choices": {} if row.external_id else choices,
        "created_at": row.created_at or seen,
        "registered_at": seen,
        "expired_at": row.expired_at,
        "expired_code": (row.expired_code or UNSUBSCRIBED) if row.expired_at else "",
        "is_set_aside": False,
        "takeover_until": until,
    }


def _is_devices(row: Row, known: Subscription) -> bool:
    """Whether what is stored is newer than the row."""
    if row.last_seen_at is not None:
        return known.registered_at > row.last_seen_at
    return known.registered_at != known.created_at


def _new_person(row: Row, known: Subscription, *, is_devices: bool) -> str | None:
    """The person that the subscription gets. A device that signed out stays nobody's."""
    if row.external_id is None or row.external_id == _external_id(known):
        return None
    if is_devices and (known.person_id is not None or known.linked_at is not None):
        return None
    return row.external_id


def _external_id(known: Subscription) -> str | None:
    return known.person.external_id if known.person else None


def _filled(row: Row, known: Subscription) -> dict[str, Any]:
    """What the device has not said."""
    return {
        "auth": known.auth or row.auth,
        "attributes": known.attributes or dict(row.attributes or {}),
        "timezone": known.timezone or row.timezone or "",
        "language": known.language or row.language or "",
        "created_at": min(known.created_at, row.created_at or known.created_at),
    }


def _replaced(
    row: Row, known: Subscription, vapid_key_id: UUID | None, now: datetime
) -> dict[str, Any]:
    """What the row says about a subscription that is not newer."""
    created = min(known.created_at, row.created_at or row.last_seen_at or known.created_at)
    is_untouched = known.registered_at == known.created_at
    values: dict[str, Any] = {
        "p256dh": row.p256dh or known.p256dh,
        "auth": row.auth or known.auth,
        "vapid_key_id": vapid_key_id or known.vapid_key_id,
        "push_service": row.push_service,
        "created_at": created,
        "registered_at": row.last_seen_at or (created if is_untouched else known.registered_at),
    }
    for name in ("attributes", "timezone", "language"):
        given = getattr(row, name)
        values[name] = getattr(known, name) if given is None else given
    if values["timezone"] != known.timezone:
        values["timezone_changed_at"] = now
    return values


def _choices(
    row: Row, known: Subscription, external_id: str | None, *, is_devices: bool
) -> dict[str, Any]:
    """A device that changes its person leaves its choices behind, as at a sign-in."""
    given, stored = dict(row.choices or {}), known.choices
    has_left = external_id is not None and known.person_id is not None
    if has_left:
        return {"choices": given, "proven_choices": {}}
    choices = {**given, **stored} if is_devices else {**stored, **given}
    added = {key: value for key, value in given.items() if choices[key] is value}
    is_linked = external_id is not None or known.person_id is not None
    proven = {} if is_linked else {**known.proven_choices, **added}
    return {"choices": choices, "proven_choices": proven}


def _expiry(row: Row, known: Subscription) -> dict[str, Any]:
    """A subscription that ended becomes active only if its device was seen elsewhere since."""
    ended, seen = known.expired_at, row.last_seen_at
    if row.expired_at is not None:
        if ended is None and row.expired_at > known.registered_at:
            return {"expired_at": row.expired_at, "expired_code": row.expired_code or UNSUBSCRIBED}
    elif ended is not None and seen is not None and seen > ended:
        return {"expired_at": None, "expired_code": ""}
    return {"expired_at": ended, "expired_code": known.expired_code}


def _takeover(
    row: Row, known: Subscription, external_id: str | None, now: datetime, options: Options
) -> datetime | None:
    """A takeover that is still possible is not prolonged, so that importing twice is the same as
    once. A device that had its own `auth` before gets the bounds of one that takes over."""
    until = known.takeover_until
    is_open = until is not None and until > now
    is_linked_unproven = external_id is not None and known.auth not in ("", row.auth)
    if not is_open and (
        _may_be_taken(known.auth or row.auth, options)
        or (is_linked_unproven and options.takeover_days)
    ):
        return now + timedelta(days=options.takeover_days)
    return until


def _may_be_taken(auth: str, options: Options) -> bool:
    return not auth and options.takeover_days > 0


def _new_tags(row: Row, tags: set[str], is_devices: bool) -> list[str] | None:
    if row.tags is None or set(row.tags) == tags or (is_devices and tags):
        return None
    return list(row.tags)
