"""Stores the rows of an import, with the channel's counters.

Locks are taken in the order of devices/services.py, for SLICE rows at once.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any, Final, cast
from uuid import UUID

from django.utils.translation import gettext

from channels_app import audit
from channels_app.models import Channel, VapidKey
from channels_app.selectors import is_enabled
from pushsvc.common.platforms import Platform
from pushsvc.common.store import sql
from subscriptions_app.addresses import address_lock
from subscriptions_app.categories.consent import stored_category_keys
from subscriptions_app.devices.capacity import CapacityScarce, capacity_room
from subscriptions_app.errors import (
    CategoryUnknown,
    PlatformNotEnabled,
    SubscriptionsFull,
    TooManyDevices,
    VapidKeyUnknown,
)
from subscriptions_app.importing.merging import COLUMNS, Merged, merged
from subscriptions_app.importing.rehearsal import Kept, Place, Rehearsal, persons_rehearsed
from subscriptions_app.importing.tagging import tags_of, tags_write
from subscriptions_app.importing.values import Options, Outcome, Result, Row, refused
from subscriptions_app.models import OPTED_OUT, Person, Subscription
from subscriptions_app.people.counting import (
    Changes,
    PersonsChanged,
    Standing,
    changes_count,
)
from subscriptions_app.people.services import people_get_or_create

SLICE: Final = 500  # rows in one transaction
_Numbered = Sequence[tuple[int, Row]]
_Results = dict[int, Result]


def subscriptions_import(
    *,
    channel: Channel,
    rows: Sequence[Row],
    options: Options = Options(),  # noqa: B008 (frozen)
    rehearsal: Rehearsal | None = None,
) -> list[Result]:
    """Stores the rows in their order, SLICE of them in each transaction. Returns a result for each.

    A row is known by its address, so importing it again changes nothing. merging.py decides what
    it changes. A row of a person who opted out is stored, but gets no messages. Nothing is deleted
    for a row: if the channel is full, or the person has too many devices, the row is refused.

    Needs no proof of a row's `external_id`: only call it for the channel's owner. `rehearsal`: what
    earlier calls of the same dry run would have stored.
    """
    if options.dry_run and rehearsal is None:
        with Rehearsal() as own:
            return subscriptions_import(channel=channel, rows=rows, options=options, rehearsal=own)
    known = _Known.of(channel)
    results: _Results = {}
    for start in range(0, len(rows), SLICE):
        accepted = []
        for number, row in enumerate(rows[start : start + SLICE], start):
            problem = known.problem(row)
            if problem is None:
                accepted.append((number, row))
            else:
                results[number] = problem
        if accepted:
            results |= _store(known, accepted, options, rehearsal)
    return [results[number] for number in range(len(rows))]


@dataclass(frozen=True)
class _Known:
    """What all rows of an import are compared with."""

    channel: Channel
    vapid_keys: Mapping[str, UUID]
    current_key: UUID
    categories: frozenset[str]

    @classmethod
    def of(cls, channel: Channel) -> "_Known":
        keys = list(VapidKey.objects.filter(channel=channel).only("public_key", "retired_at"))
        return cls(
            channel,
            {key.public_key: key.pk for key in keys},
            next(key.pk for key in keys if key.retired_at is None),
            stored_category_keys(channel.pk),
        )

    def problem(self, row: Row) -> Result | None:
        platform, key = row.address.platform, row.vapid_public_key
        if not is_enabled(self.channel, platform):
            return _refused(PlatformNotEnabled("platform", platform))
        if platform == Platform.WEB and key is not None and key not in self.vapid_keys:
            return _refused(VapidKeyUnknown())
        unknown = next((each for each in row.choices or {} if each not in self.categories), None)
        return None if unknown is None else _refused(CategoryUnknown(f"choices.{unknown}"))

    def vapid_key_id(self, row: Row, stored: Subscription | None) -> UUID | None:
        if row.address.platform != Platform.WEB:
            return None
        if row.vapid_public_key is not None:
            return self.vapid_keys[row.vapid_public_key]
        return None if stored else self.current_key


def _refused(error: PlatformNotEnabled | VapidKeyUnknown | CategoryUnknown) -> Result:
    first = error.errors[0]
    return refused(first.code, first.attr, first.detail)


def _place(row: Row) -> Place:
    return row.address.platform, row.address.digest


def _store(
    known: _Known, numbered: _Numbered, options: Options, rehearsal: Rehearsal | None
) -> _Results:
    """Stores the rows in one transaction. If a person would have too many devices, stores the
    halves apart, so that only that person's rows are refused."""
    alone = False
    while True:
        try:
            with sql.brief_transaction():
                return _Slice(known, numbered, options, rehearsal).store(alone=alone)
        except PersonsChanged:
            continue
        except CapacityScarce:
            alone = True
        except TooManyDevices as error:
            if len(numbered) == 1:
                return {numbered[0][0]: refused(error.code, "external_id", error.detail)}
            half = len(numbered) // 2
            results = _store(known, numbered[:half], options, rehearsal)
            return results | _store(known, numbered[half:], options, rehearsal)


class _Slice:
    """Rows in a transaction. It reads and writes each address once, so that locks are taken in
    order and the audit log has one entry: another row of an address is judged by what the rows
    before would have stored."""

    def __init__(
        self,
        known: _Known,
        numbered: _Numbered,
        options: Options,
        rehearsal: Rehearsal | None,
    ) -> None:
        self._known, self._numbered, self._options = known, numbered, options
        self._channel, self._rehearsal = known.channel, rehearsal
        self._addresses = {_place(row): row.address for _, row in numbered}
        self._stored: dict[Place, Subscription] = {}
        self._set_aside: dict[tuple[Place, str], Subscription] = {}
        self._rehearsed: dict[Place, Kept] = {}
        self._tags: dict[UUID, set[str]] = {}
        self._changed: dict[Place, Merged] = {}

    def store(self, *, alone: bool) -> _Results:
        """`alone`: no other transaction holds the lock of the channel's capacity."""
        now = self._lock_addresses()
        self._read()
        results = {number: self._judged(row, now) for number, row in self._numbered}
        full = self._drop_without_room(alone=alone)
        for number, row in self._numbered:
            if _place(row) in full and results[number].outcome != Outcome.REFUSED:
                detail = gettext("The channel has its maximum of subscribers.")
                results[number] = refused(SubscriptionsFull.code, "", detail)
        if self._changed:
            self._write(now)
        return results

    def _lock_addresses(self) -> datetime:
        """As registration.py does. Returns the time."""
        names = sorted(
            address_lock(self._channel.pk, each.platform, each.digest)
            for each in self._addresses.values()
        )
        statement = _NOW if self._rehearsal else _LOCK
        moment: datetime = sql.rows(statement, {"names": sql.array(names)})[-1][1]
        return moment

    def _read(self) -> None:
        """Reads what is at the addresses, or would be after the earlier slices of a dry run."""
        for each in self._read_subscriptions():
            place = (each.platform, bytes(each.address_sha256))
            if not each.is_set_aside:
                self._stored[place] = each
            elif each.auth:
                self._set_aside.setdefault((place, each.auth), each)
        if self._rehearsal:
            found = {place: self._rehearsal.kept(place) for place in self._addresses}
            self._rehearsed = {place: each for place, each in found.items() if each is not None}
        self._stored |= {place: each.subscription() for place, each in self._rehearsed.items()}
        self._tags = self._read_tags()

    def _read_tags(self) -> dict[UUID, set[str]]:
        """Those of the subscriptions that get tags."""
        given = {_place(row) for _, row in self._numbered if row.tags is not None}
        found = [*self._stored.items(), *((key[0], row) for key, row in self._set_aside.items())]
        return tags_of([row.pk for place, row in found if place in given]) | {
            self._stored[place].pk: set(each.tags)
            for place, each in self._rehearsed.items()
            if each.tags is not None
        }

    def _read_subscriptions(self) -> Sequence[Subscription]:
        parameters = {
            "channel": self._channel.pk,
            "platforms": sql.array(platform for platform, _ in self._addresses),
            "digests": [digest for _, digest in self._addresses],
        }
        ids = [each[0] for each in sql.rows(_FIND, parameters)]
        found = Subscription.objects.filter(pk__in=ids)
        ordered = found.order_by("id") if self._rehearsal else found.locked_by_id()
        rows = list(ordered.select_related("person")) if ids else []
        if any(row.person_id is not None and row.person is None for row in rows):
            raise PersonsChanged
        return rows

    def _judged(self, row: Row, now: datetime) -> Result:
        known = self._find(row, now)
        found = merged(
            row,
            known,
            self._tags.get(known.pk, set()) if known else set(),
            vapid_key_id=self._known.vapid_key_id(row, known),
            now=now,
            options=self._options,
        )
        if isinstance(found, Result):
            return found
        if not found.is_change():
            return Result(Outcome.UNCHANGED)
        self._note(found)
        return Result(Outcome.UPDATED if known else Outcome.CREATED)

    def _find(self, row: Row, now: datetime) -> Subscription | None:
        """The subscription at the address after the rows before. One that was set aside counts only
        if the row has its `auth` and there is no other."""
        place = _place(row)
        if (changed := self._changed.get(place)) is not None:
            values = _column_values(changed, self._persons, now)
            person = _person(changed, self._persons)
            return Kept.of(changed.known, values, person, changed.tags).subscription()
        return self._stored.get(place) or self._set_aside.get((place, row.auth))

    @cached_property
    def _persons(self) -> Mapping[str, Person]:
        """The persons of the rows, for judging. Missing ones are created only by `_write`."""
        named = {row.external_id for _, row in self._numbered} - {None}
        return persons_rehearsed(self._channel.pk, cast("set[str]", named))

    def _note(self, change: Merged) -> None:
        place = _place(change.row)
        before = self._changed.get(place)
        if before is not None:
            change.follow(before)
        if change.tags is not None:
            self._tags[change.id] = set(change.tags)
        self._changed[place] = change

    def _drop_without_room(self, *, alone: bool) -> Collection[Place]:
        """Drops the new subscriptions for which the channel has no room. Returns their places."""
        new = [place for place, each in self._changed.items() if each.stored is None]
        if not new:
            return ()
        before = self._rehearsal.created if self._rehearsal else 0
        room = capacity_room(self._channel, before + len(new), alone=alone) - before
        dropped = set(new[max(0, room) :])
        for place in dropped:
            del self._changed[place]
        return dropped

    def _tags_after(self, each: Merged) -> Collection[str] | None:
        """As Kept.tags."""
        before = self._rehearsed.get(_place(each.row))
        return before.tags if before and each.tags is None else each.tags

    def _write(self, now: datetime) -> None:
        changed = list(self._changed.values())
        wanted = {each.external_id for each in changed} - {None}
        find = persons_rehearsed if self._rehearsal else people_get_or_create
        persons = find(self._channel.pk, cast("set[str]", wanted))
        changes = Changes(is_import=True)
        written = [_column_values(each, persons, now) for each in changed]
        for each, values in zip(changed, written, strict=True):
            before = Standing.of(each.stored) if each.stored else None
            after = Standing(
                values["platform"],
                values["person_id"],
                values["expired_at"] is None,
                values["id"],
                values.get("expired_code", ""),
            )
            changes.note(before, after)
        created = sum(each.stored is None for each in changed)
        if self._rehearsal:
            self._rehearsal.count(changes.persons)
            self._rehearsal.keep(
                {
                    _place(each.row): Kept.of(each.known, values, _person(each, persons), tags)
                    for each, values in zip(changed, written, strict=True)
                    for tags in [self._tags_after(each)]
                }
            )
            self._rehearsal.created += created
            return
        parameters = {"channel": self._channel.pk, "rows": json.dumps(written, default=str)}
        sql.execute(_UPSERT, parameters)
        tags_write(self._channel.pk, changed)
        changes_count(self._channel.pk, changes)
        note = f"Subscribers imported: {created} created, {len(changed) - created} updated."
        audit.record(self._channel, audit.Action.UPDATE, note=note)


def _person(each: Merged, persons: Mapping[str, Person]) -> Person | None:
    if each.external_id is not None:
        return persons[each.external_id]
    return each.known.person if each.known else None


def _column_values(each: Merged, persons: Mapping[str, Person], now: datetime) -> dict[str, Any]:
    known = each.known
    stored = {name: getattr(known, name) for name in COLUMNS} if known else {}
    person = _person(each, persons)
    values = {
        **stored,
        **each.values,
        "id": each.id,
        "platform": each.row.address.platform,
        "address": each.row.address.text,
        "person_id": person.pk if person else None,
    }
    if person and person.opted_out_at is not None and values["expired_at"] is None:
        values |= {"expired_at": now, "expired_code": OPTED_OUT}
    return values


# Raw, because the ORM has no advisory locks. The locks are taken in the order of the array. The
# first one bounds how many slices lock addresses at once: all sessions share PostgreSQL's table of
# locks, and if it is full, every transaction fails. So imports occupy at most a third of it.
SLOTS: Final = f"""
greatest(1, current_setting('max_locks_per_transaction')::int
  * current_setting('max_connections')::int / {3 * SLICE})
"""
_LOCK: Final = f"""
SELECT pg_advisory_xact_lock(hashtextextended(name, 0)), clock_timestamp()
FROM unnest(('import ' || mod(pg_backend_pid(), {SLOTS})) || %(names)s::text[]) AS name
"""  # noqa: S608 - numbers of our own
_NOW: Final = "SELECT NULL, clock_timestamp()"

# LATERAL with OFFSET 0, so that each address is read by the unique index. Otherwise PostgreSQL may
# read all subscriptions of the channel for a join.
_FIND: Final = """
SELECT found.id FROM unnest(%(platforms)s::text[], %(digests)s::bytea[]) AS given (platform, digest)
CROSS JOIN LATERAL (
  SELECT id FROM subscriptions_app_subscription
  WHERE channel_id = %(channel)s AND platform = given.platform AND address_sha256 = given.digest
  OFFSET 0
) AS found
"""

_GIVEN: Final = ", ".join(COLUMNS)
_TYPES: Final = {
    "vapid_key_id": "uuid", "attributes": "jsonb", "choices": "jsonb", "proven_choices": "jsonb",
    "timezone_changed_at": "timestamptz", "created_at": "timestamptz",
    "registered_at": "timestamptz", "expired_at": "timestamptz", "takeover_until": "timestamptz",
    "is_set_aside": "boolean",
}  # fmt: skip
# Raw, because the ORM needs several times as long for as many rows. The addresses are locked, so
# the only conflict is with the subscriptions that were read.
_UPSERT: Final = f"""
INSERT INTO subscriptions_app_subscription
  (id, channel_id, platform, address, address_sha256, person_id, {_GIVEN})
SELECT id, %(channel)s::uuid, platform, address, sha256(convert_to(address, 'UTF8')), person_id,
  {_GIVEN}
FROM jsonb_to_recordset(%(rows)s::jsonb) AS given (id uuid, platform text, address text,
  person_id uuid, {", ".join(f"{name} {_TYPES.get(name, 'text')}" for name in COLUMNS)})
ORDER BY id
ON CONFLICT (id) DO UPDATE SET person_id = EXCLUDED.person_id,
  {", ".join(f"{name} = EXCLUDED.{name}" for name in COLUMNS)}
"""  # noqa: S608 - names of our own
