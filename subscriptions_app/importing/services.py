"""Stores the rows of an import, with the channel's counters.

Locks are taken in the order of devices/services.py, for SLICE rows at once.
"""

import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
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
        for numbered in _rounds(accepted):
            results |= _store(known, numbered, options, rehearsal)
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


def _rounds(numbered: _Numbered) -> Iterator[_Numbered]:
    """Rows of one address go into different rounds, in their order."""
    seen: Counter[Place] = Counter()
    rounds: list[list[tuple[int, Row]]] = []
    for number, row in numbered:
        place = _place(row)
        if seen[place] == len(rounds):
            rounds.append([])
        rounds[seen[place]].append((number, row))
        seen[place] += 1
    yield from rounds


def _place(row: Row) -> Place:
    return row.address.platform, row.address.digest


def _store(
    known: _Known, numbered: _Numbered, options: Options, rehearsal: Rehearsal | None
) -> _Results:
    """Stores rows of different addresses in one transaction. If a person would have too many
    devices, stores the halves apart, so that only that person's rows are refused."""
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
    """Rows of different addresses, in a transaction."""

    def __init__(
        self,
        known: _Known,
        numbered: _Numbered,
        options: Options,
        rehearsal: Rehearsal | None,
    ) -> None:
        self._known, self._numbered, self._options = known, numbered, options
        self._channel, self._rehearsal = known.channel, rehearsal
        self._rehearsed: dict[Place, Kept] = {}

    def store(self, *, alone: bool) -> _Results:
        """`alone`: no other transaction holds the lock of the channel's capacity."""
        now = self._lock_addresses()
        judged = self._judged(now)
        results = {number: each for number, each in judged.items() if isinstance(each, Result)}
        changed = {}
        for number, each in judged.items():
            if isinstance(each, Merged):
                if each.is_change():
                    changed[number] = each
                else:
                    results[number] = Result(Outcome.UNCHANGED)
        new = [number for number, each in changed.items() if each.known is None]
        room = self._room(len(new), alone=alone)
        for number in new[room:]:
            del changed[number]
            error = SubscriptionsFull
            results[number] = refused(
                error.code, "", gettext("The channel has its maximum of subscribers.")
            )
        if changed:
            self._write(list(changed.values()), now)
        for number, each in changed.items():
            results[number] = Result(Outcome.UPDATED if each.known else Outcome.CREATED)
        return results

    def _room(self, wanted: int, *, alone: bool) -> int:
        if not wanted:
            return 0
        before = self._rehearsal.created if self._rehearsal else 0
        return max(0, capacity_room(self._channel, before + wanted, alone=alone) - before)

    def _lock_addresses(self) -> datetime:
        """As registration.py does. Returns the time."""
        addresses = [row.address for _, row in self._numbered]
        names = sorted(
            address_lock(self._channel.pk, each.platform, each.digest) for each in addresses
        )
        statement = _NOW if self._rehearsal else _LOCK
        moment: datetime = sql.rows(statement, {"names": sql.array(names)})[-1][1]
        return moment

    def _judged(self, now: datetime) -> dict[int, Merged | Result]:
        stored, self._rehearsed = self._stored(), self._read_rehearsed()
        stored |= {place: each.subscription() for place, each in self._rehearsed.items()}
        named = [
            each.pk
            for _, row in self._numbered
            if row.tags is not None and (each := stored.get(_place(row)))
        ]
        tags = tags_of(named)
        tags |= {
            stored[place].pk: set(each.tags)
            for place, each in self._rehearsed.items()
            if each.tags is not None
        }
        return {
            number: merged(
                row,
                known := stored.get(_place(row)),
                tags.get(known.pk, set()) if known else set(),
                vapid_key_id=self._known.vapid_key_id(row, known),
                now=now,
                options=self._options,
            )
            for number, row in self._numbered
        }

    def _tags_after(self, each: Merged) -> Collection[str] | None:
        """As Kept.tags."""
        before = self._rehearsed.get(_place(each.row))
        return before.tags if before and each.tags is None else each.tags

    def _read_rehearsed(self) -> dict[Place, Kept]:
        if self._rehearsal is None:
            return {}
        found = {_place(row): self._rehearsal.kept(_place(row)) for _, row in self._numbered}
        return {place: each for place, each in found.items() if each is not None}

    def _stored(self) -> dict[Place, Subscription]:
        """The subscriptions at the addresses. One that was set aside counts only if the row has its
        `auth` and there is no other."""
        parameters = {
            "channel": self._channel.pk,
            "platforms": sql.array(row.address.platform for _, row in self._numbered),
            "digests": [row.address.digest for _, row in self._numbered],
        }
        ids = [each[0] for each in sql.rows(_FIND, parameters)]
        found = Subscription.objects.filter(pk__in=ids)
        ordered = found.order_by("id") if self._rehearsal else found.locked_by_id()
        rows = list(ordered.select_related("person")) if ids else []
        if any(row.person_id is not None and row.person is None for row in rows):
            raise PersonsChanged
        given = {_place(row): row.auth for _, row in self._numbered}
        stored: dict[Place, Subscription] = {}
        for each in sorted(rows, key=lambda row: row.is_set_aside):
            place = (each.platform, bytes(each.address_sha256))
            if not each.is_set_aside or (place not in stored and each.auth == given[place] != ""):
                stored[place] = each
        return stored

    def _write(self, changed: list[Merged], now: datetime) -> None:
        wanted = {each.external_id for each in changed} - {None}
        find = persons_rehearsed if self._rehearsal else people_get_or_create
        persons = find(self._channel.pk, cast("set[str]", wanted))
        changes = Changes(is_import=True)
        written = [_column_values(each, persons, now) for each in changed]
        for each, values in zip(changed, written, strict=True):
            before = Standing.of(each.known) if each.known else None
            after = Standing(
                values["platform"],
                values["person_id"],
                values["expired_at"] is None,
                values["id"],
                values.get("expired_code", ""),
            )
            changes.note(before, after)
        created = sum(each.known is None for each in changed)
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
