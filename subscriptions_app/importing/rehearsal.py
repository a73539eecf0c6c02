"""What a dry run would have stored so far, so that it judges each row as the import would.

It is kept in a temporary file, so that memory does not grow with the number of rows.
"""

import json
import pickle
import sqlite3
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from types import TracebackType
from typing import Any, Final, Self
from uuid import UUID, uuid5

from subscriptions_app.errors import TooManyDevices
from subscriptions_app.models import MOST_DEVICES, Person, Subscription
from subscriptions_app.people.services import Stance

Place = tuple[str, bytes]  # platform, and digest of the address
_SUBSCRIPTION: Final = [field.attname for field in Subscription._meta.concrete_fields]
_TABLES: Final = """
PRAGMA journal_mode = OFF;
PRAGMA synchronous = OFF;
CREATE TABLE subscription (platform TEXT, digest BLOB, kept BLOB, PRIMARY KEY (platform, digest));
CREATE TABLE person (id BLOB PRIMARY KEY, devices INTEGER);
CREATE TABLE stance (external_id TEXT PRIMARY KEY, kept TEXT);
"""
_FIND: Final = "SELECT kept FROM subscription WHERE platform = ? AND digest = ?"
_COUNT: Final = """
INSERT INTO person VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET devices = devices + excluded.devices
"""


@dataclass(frozen=True, slots=True)
class Kept:
    """A subscription as it would be stored: its columns, what it needs of its person, and its tags
    (None: those that are stored)."""

    columns: Mapping[str, Any]
    external_id: str | None
    opted_out: Any
    tags: Collection[str] | None

    @classmethod
    def of(
        cls,
        known: Subscription | None,
        values: Mapping[str, Any],
        person: Person | None,
        tags: Collection[str] | None,
    ) -> Self:
        before = {name: getattr(known, name) for name in _SUBSCRIPTION} if known else {}
        external_id, opted_out = (
            (person.external_id, person.opted_out_at) if person else (None, None)
        )
        return cls({**before, **values}, external_id, opted_out, tags)

    def subscription(self) -> Subscription:
        row = Subscription(**self.columns)
        if self.external_id is not None:
            row.person = Person(
                pk=row.person_id, external_id=self.external_id, opted_out_at=self.opted_out
            )
        return row


class Rehearsal:
    """Use it as a context. `created`: how many subscriptions the dry run would have added."""

    def __init__(self) -> None:
        self.created = 0
        self._file = sqlite3.connect("", isolation_level=None)  # removed when it is closed
        self._file.executescript(_TABLES)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._file.close()

    def kept(self, place: Place) -> Kept | None:
        found = self._file.execute(_FIND, place)
        row = found.fetchone()
        return Kept(**pickle.loads(row[0])) if row else None  # noqa: S301 - written by `keep`

    def keep(self, subscriptions: Mapping[Place, Kept]) -> None:
        rows = [(*place, pickle.dumps(asdict(each))) for place, each in subscriptions.items()]
        self._file.executemany("INSERT OR REPLACE INTO subscription VALUES (?, ?, ?)", rows)

    def count(self, changes: Counter[UUID]) -> None:
        """Adds the changes to the persons' active devices, as people/counting.py would. Raises
        TooManyDevices."""
        gained = [id_ for id_, change in changes.items() if change > 0]
        stored = Person.objects.filter(pk__in=gained).values_list("pk", "active_devices")
        devices = dict(stored)
        for id_ in gained:
            if devices.get(id_, 0) + self._devices(id_) + changes[id_] > MOST_DEVICES:
                raise TooManyDevices
        self._file.executemany(_COUNT, [(id_.bytes, change) for id_, change in changes.items()])

    def stances(self, external_ids: Collection[str]) -> dict[str, Stance]:
        """Those of these persons that were kept."""
        select = "SELECT kept FROM stance WHERE external_id = ?"
        found = {each: self._file.execute(select, [each]).fetchone() for each in external_ids}
        return {each: Stance(**json.loads(row[0])) for each, row in found.items() if row}

    def keep_stances(self, stances: Mapping[str, Stance]) -> None:
        rows = [(external_id, json.dumps(asdict(each))) for external_id, each in stances.items()]
        self._file.executemany("INSERT OR REPLACE INTO stance VALUES (?, ?)", rows)

    def _devices(self, person: UUID) -> int:
        found = self._file.execute("SELECT devices FROM person WHERE id = ?", [person.bytes])
        row = found.fetchone()
        return row[0] if row else 0


def persons_rehearsed(channel_id: UUID, external_ids: Collection[str]) -> dict[str, Person]:
    """The channel's persons with these ids. Missing ones are not stored, and always get the same
    id here."""
    stored = Person.objects.filter(channel_id=channel_id, external_id__in=external_ids)
    found = {each.external_id: each for each in stored}
    missing = set(external_ids) - found.keys()
    new = {each: Person(pk=uuid5(channel_id, each), external_id=each) for each in missing}
    return {**found, **new}
