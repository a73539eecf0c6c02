"""Links devices to people by the ids of their subscriptions, for backends that know the ids."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from channels_app import audit
from channels_app.models import Channel
from pushsvc.common.store import sql
from subscriptions_app.categories.consent import choices_made_with_proof, choices_take_over
from subscriptions_app.models import OPTED_OUT, Person, Subscription
from subscriptions_app.people.counting import (
    Changes,
    Standing,
    changes_count,
    crowd_thin,
    until_counted,
)
from subscriptions_app.people.services import people_get_or_create

MOST_LINKS: Final = 500  # in one request, whose body has at most 64 KiB
_CHANGED: Final = ("person", "choices", "proven_choices", "expired_at", "expired_code")


@dataclass(frozen=True, slots=True)
class Linked:
    """`count`: how many devices are now linked as requested. `unknown`: ids that are not
    subscriptions of the channel."""

    count: int
    unknown: Sequence[UUID]


def devices_link(*, channel: Channel, links: Mapping[UUID, str | None]) -> Linked:
    """Links subscriptions to the persons with these external ids; None unlinks.

    Links all or none. A subscription that is linked to a person who opted out ends. Safe to repeat.
    Raises TooManyDevices.
    """
    return until_counted(channel, lambda crowded: _link(channel, links, crowded=crowded))


def _link(channel: Channel, links: Mapping[UUID, str | None], *, crowded: bool) -> Linked:
    rows = list(Subscription.objects.filter(channel=channel, id__in=links).locked_by_id())
    wanted = {links[row.id] for row in rows}
    persons = people_get_or_create(channel.pk, {each for each in wanted if each is not None})
    changes, now = Changes(), sql.now()
    moved = [row for row in rows if row.person_id != _id_of(persons, links[row.id])]
    taken: list[tuple[UUID, dict[str, bool]]] = []
    for row in moved:
        before = Standing.of(row)
        person = persons.get(links[row.id] or "")
        own = row.choices if person is not None and row.person_id is None else {}
        proven = choices_made_with_proof(own, row.proven_choices)
        if person is not None:
            taken.append((person.pk, proven))
        row.person, row.proven_choices = person, {}
        row.choices = {key: value for key, value in own.items() if key not in proven}
        if person is not None and person.opted_out_at and row.expired_at is None:
            row.expired_at, row.expired_code = now, OPTED_OUT
        changes.note(before, Standing.of(row))
    Subscription.objects.bulk_update(moved, _CHANGED)
    if crowded:
        for person_id, gained in list(changes.persons.items()):
            crowd_thin(person_id, max(gained, 0), changes, kept=links.keys())
    changes_count(channel.pk, changes)
    for person_id, choices in taken:
        choices_take_over(person_id, choices)
    if moved:
        note = f"Devices linked to people, or unlinked: {len(moved)}."
        audit.record(channel, audit.Action.UPDATE, note=note)
    known = {row.id for row in rows}
    return Linked(len(rows), [each for each in links if each not in known])


def _id_of(persons: Mapping[str, Person], external_id: str | None) -> UUID | None:
    return None if external_id is None else persons[external_id].pk
