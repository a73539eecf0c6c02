"""Stores the people of an import: their choices and opt-outs, also of those without a device."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Final

from channels_app.models import Channel
from pushsvc.common.store import sql
from pushsvc.common.texts import later
from subscriptions_app.categories.consent import stored_category_keys
from subscriptions_app.errors import CategoryUnknown
from subscriptions_app.importing.rehearsal import Rehearsal
from subscriptions_app.importing.values import Outcome, PersonRow, Result, refused
from subscriptions_app.models import Person, Subscription
from subscriptions_app.people.services import Stance, people_merge, refused_by_devices

PEOPLE_FULL: Final = "people_full"
_FULL: Final = later("The channel has as many people as it may have subscribers.")


class PeopleImport:
    """Stores rows of people, some hundreds at a time. Use one for an import, because it counts the
    channel's people once.

    A row only adds: an opt-out, and choices about which the person has none here, except for
    categories that a device of the person refused here. So importing it again changes nothing, and
    nobody is opted in. Without either, no person is created. A channel
    gets no new people by imports once it has as many as it may have subscribers.
    """

    def __init__(self, channel: Channel, rehearsal: Rehearsal | None) -> None:
        """`rehearsal`: of a dry run, which stores nothing."""
        self._channel, self._rehearsal = channel, rehearsal
        self._categories: frozenset[str] = frozenset()
        self._room: int | None = None

    def store(self, rows: Sequence[PersonRow]) -> list[Result]:
        """Stores all of them in a transaction. Returns a result for each, in their order."""
        if not rows:
            return []
        self._categories = stored_category_keys(self._channel.pk)
        names = {row.external_id for row in rows}
        found = list(Person.objects.filter(channel_id=self._channel.pk, external_id__in=names))
        stances = {
            each.external_id: Stance(each.choices, each.opted_out_at is not None) for each in found
        }
        if self._rehearsal:
            stances |= self._rehearsal.stances(names)
        changed: dict[str, Stance] = {}
        results = []
        for row in _without_refused(rows, found):
            before = stances.get(row.external_id)
            result = self._judged(row, before)
            if result.outcome in (Outcome.CREATED, Outcome.UPDATED):
                after = (before or Stance()).merged(row.choices, opted_out=row.opted_out)
                stances[row.external_id] = changed[row.external_id] = after
            results.append(result)
        if self._rehearsal:
            self._rehearsal.keep_stances(changed)
        elif changed:
            outcomes = [each.outcome for each in results]
            people_merge(
                channel=self._channel,
                stances=changed,
                note=f"People imported: {outcomes.count(Outcome.CREATED)} created,"
                f" {outcomes.count(Outcome.UPDATED)} updated.",
            )
        return results

    def _judged(self, row: PersonRow, before: Stance | None) -> Result:
        unknown = next((each for each in row.choices if each not in self._categories), None)
        if unknown is not None:
            first = CategoryUnknown(f"choices.{unknown}").errors[0]
            return refused(first.code, first.attr, first.detail)
        known = before or Stance()
        if known == known.merged(row.choices, opted_out=row.opted_out):
            return Result(Outcome.UNCHANGED)
        if before is not None:
            return Result(Outcome.UPDATED)
        if not self._has_room():
            return refused(PEOPLE_FULL, "", _FULL)
        return Result(Outcome.CREATED)

    def _has_room(self) -> bool:
        if self._room is None:
            most = self._channel.most_subscriptions
            parameters = {"channel": self._channel.pk, "most": most}
            self._room = most - sql.rows(_COUNT, parameters)[0][0]
        self._room -= 1
        return self._room >= 0


def _without_refused(rows: Sequence[PersonRow], found: Collection[Person]) -> list[PersonRow]:
    """The rows without choices that would take back what a device refused. The person's choice
    counts before the device's. people_merge looks again, with the devices locked."""
    devices = Subscription.objects.filter(person__in=found).exclude(choices={})
    refused_by = refused_by_devices(devices.only("person_id", "choices"))
    by_name = {each.external_id: refused_by.get(each.pk, set()) for each in found}
    return [
        replace(
            row,
            choices=Stance(row.choices).without(by_name.get(row.external_id, ())).choices,
        )
        for row in rows
    ]


_COUNT: Final = """
SELECT count(*) FROM (
  SELECT FROM subscriptions_app_person WHERE channel_id = %(channel)s LIMIT %(most)s
) AS own
"""
