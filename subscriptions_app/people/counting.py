"""The only writer of persons' `active_devices` and of a channel's counts of subscriptions.

Code that changes subscriptions notes each change in a `Changes`, and writes them at the end of the
transaction. So persons are locked after subscriptions and before the channel's counters.
"""

from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeVar
from uuid import UUID

from channels_app.counters import counter_add
from channels_app.feeds import EventKind, Fact, feed_add
from channels_app.models import Channel, Identity
from pushsvc.common.ids import uuid7
from pushsvc.common.store import sql
from subscriptions_app.errors import TooManyDevices
from subscriptions_app.models import MOST_DEVICES, Subscription

Result = TypeVar("Result")

DELETED: Final = "deleted"  # why a subscription ended, if its row was deleted while active


class PersonsChanged(Exception):
    """A person was deleted or opted out after the transaction read it. Repeat the transaction."""


class Standing(NamedTuple):
    """The values of a subscription on which counts and facts depend."""

    platform: str
    person_id: UUID | None
    is_active: bool
    id: UUID
    expired_code: str

    @classmethod
    def of(cls, row: Subscription) -> "Standing":
        return cls(row.platform, row.person_id, row.expired_at is None, row.id, row.expired_code)


@dataclass(slots=True)
class Changes:
    """A transaction's changes to a channel's subscriptions. `persons`: the change of each person's
    active devices. A person with 0 is held, so that it cannot be deleted before the transaction
    ends. `facts`: subscriptions that became active or ended, for webhooks. `is_import`: webhooks
    are told how many, not which."""

    platforms: Counter[str] = field(default_factory=Counter)
    persons: Counter[UUID] = field(default_factory=Counter)
    stored: int = 0
    facts: list[Fact] = field(default_factory=list)
    is_import: bool = False

    def note(self, before: Standing | None, after: Standing | None) -> None:
        """Notes the change of one subscription. None means not stored."""
        if before == after:
            return
        self.stored += (after is not None) - (before is not None)
        for standing, change in ((before, -1), (after, 1)):
            if standing is not None and standing.is_active:
                self.platforms[standing.platform] += change
                if standing.person_id is not None:
                    self.persons[standing.person_id] += change
        if after is not None and after.person_id is not None:
            self.hold(after.person_id)
        self._note_fact(before, after)

    def _note_fact(self, before: Standing | None, after: Standing | None) -> None:
        was_active = before is not None and before.is_active
        if after is not None and after.is_active and not was_active:
            fact = Fact(EventKind.CREATED, after.id, after.person_id, "", after.platform)
            self.facts.append(fact)
        elif before is not None and was_active and (after is None or not after.is_active):
            code = after.expired_code if after else DELETED
            fact = Fact(EventKind.EXPIRED, before.id, before.person_id, code, before.platform)
            self.facts.append(fact)

    def told(self) -> list[Fact]:
        """The facts as webhooks are told them."""
        if not self.is_import:
            return self.facts
        counts = Counter((each.platform, each.kind) for each in self.facts)
        return [
            Fact(
                EventKind.IMPORTED,
                uuid7(),
                code=f"{counts[platform, EventKind.CREATED]} {counts[platform, EventKind.EXPIRED]}",
                platform=platform,
            )
            for platform in sorted({each.platform for each in self.facts})
        ]

    def hold(self, person_id: UUID) -> None:
        """Call it for a person whose row is written after `changes_count`. Otherwise the row would
        be locked after the channel's counters, and two transactions could deadlock."""
        self.persons.setdefault(person_id, 0)


class _Person(NamedTuple):
    """A person after the statement."""

    active_devices: int
    change: int
    is_opted_out: bool

    @property
    def crossed(self) -> int:
        """1 if this was its first device, -1 if it was its last."""
        return (self.active_devices > 0) - (self.active_devices - self.change > 0)


def until_counted(channel: Channel, act: Callable[[bool], Result]) -> Result:
    """Runs `act` in a transaction, again while persons change meanwhile.

    Its argument is whether to delete devices of a person who has too many (`crowd_thin`). That is
    the last resort, and only where anyone can name any person: otherwise raises TooManyDevices.
    """
    is_crowded = False
    while True:
        try:
            with sql.brief_transaction():
                return act(is_crowded)
        except TooManyDevices:
            if is_crowded or channel.identity != Identity.TRUST:
                raise
            is_crowded = True
        except PersonsChanged:
            continue


def changes_count(channel_id: UUID, changes: Changes) -> None:
    """Adds the changes to the persons and to the channel's totals, and writes the facts that a
    webhook wants, in the caller's transaction.

    Raises TooManyDevices, and PersonsChanged.
    """
    persons = _persons_count(changes.persons)
    counter_add(
        channel_id,
        stored_subscriptions=changes.stored,
        people=sum(person.crossed for person in persons),
        linked_devices=changes.persons.total(),
        **{f"{name}_subscribers": change for name, change in changes.platforms.items()},
    )
    feed_add(channel_id, changes.told())


def crowd_thin(
    person_id: UUID, number: int, changes: Changes, *, kept: Collection[UUID] = ()
) -> None:
    """Makes room for further devices of a person in a channel where anyone can name any person.

    Deletes at most `number` active devices of the person, the oldest to which no message was ever
    delivered, and notes this in `changes`. `kept`: devices that the caller links. Skips locked
    devices, because the caller may hold others with greater ids.
    """
    unproven = Subscription.objects.active().filter(person=person_id, is_proven=False)
    oldest = unproven.exclude(pk__in=kept).order_by("id").locked_or_skipped()
    for row in oldest[:number]:
        changes.note(Standing.of(row), None)
        row.delete()


def _persons_count(persons: Counter[UUID]) -> list[_Person]:
    if not persons:
        return []
    parameters = {"ids": list(persons), "changes": list(persons.values())}
    counted = [_Person(*row) for row in sql.rows(_COUNT, parameters)]
    gained = [person for person in counted if person.change > 0]
    if len(counted) < len(persons) or any(person.is_opted_out for person in gained):
        raise PersonsChanged
    if any(person.active_devices > MOST_DEVICES for person in gained):
        raise TooManyDevices
    return counted


# Raw, because it joins arrays, and locks rows in order before it changes them. LATERAL, so that
# each person is read by its id even if PostgreSQL's statistics are old.
_COUNT: Final = """
WITH given AS (
  SELECT * FROM unnest(%(ids)s::uuid[], %(changes)s::int[]) AS given (id, change) ORDER BY id
), locked AS (
  SELECT found.id, given.change
  FROM given CROSS JOIN LATERAL (
    SELECT id FROM subscriptions_app_person WHERE id = given.id FOR NO KEY UPDATE
  ) AS found
)
UPDATE subscriptions_app_person AS person
SET active_devices = active_devices + locked.change,
  left_at = CASE WHEN active_devices + locked.change = 0
    THEN coalesce(left_at, statement_timestamp()) END
FROM locked WHERE person.id = locked.id
RETURNING active_devices, locked.change, opted_out_at IS NOT NULL
"""
