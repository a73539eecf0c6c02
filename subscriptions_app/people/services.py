"""Reads and changes one person: attributes, choices, opting out, erasure.

Each change locks the person's devices in the order of their ids, then the person. If a device is
linked meanwhile, the person's count shows it, and the change begins again.
"""

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final
from uuid import UUID

from django.db.models import QuerySet
from django.db.models.functions import Coalesce, Now
from django.utils.translation import gettext

from channels_app import audit
from channels_app.models import Channel
from pushsvc.common.errors import FieldError, Invalid, NotFound
from pushsvc.common.ids import uuid7
from pushsvc.common.platforms import PLATFORM_VALUES
from pushsvc.common.store import sql
from pushsvc.common.texts import later
from subscriptions_app.categories.consent import (
    ChoiceChanges,
    Preference,
    categories_of,
    check_changes,
    choices_forget,
    choices_merge,
    preferences,
)
from subscriptions_app.models import (
    MAX_ATTRIBUTES,
    OPTED_OUT,
    Person,
    Subscription,
    SubscriptionQuerySet,
)
from subscriptions_app.people.counting import (
    Changes,
    PersonsChanged,
    Standing,
    changes_count,
    until_counted,
)
from subscriptions_app.people.proof import proven_person
from subscriptions_app.tags.services import TagChange, device_tags_change

_UNKNOWN: Final = later("The channel has no person with this `external_id`.")
_ERASED: Final = later("The person was erased.")


@dataclass(frozen=True, slots=True)
class PersonChange:
    """Changes to a person. `opted_out` None: unchanged. None removes an attribute or a choice."""

    opted_out: bool | None = None
    choices: ChoiceChanges = field(default_factory=dict)
    attributes: Mapping[str, Any] = field(default_factory=dict)
    tags: TagChange | None = None


@dataclass(frozen=True, slots=True)
class Stance:
    """What a person wants: choices by category, and whether the person opted out."""

    choices: Mapping[str, bool] = field(default_factory=dict)
    opted_out: bool = False

    def merged(self, choices: Mapping[str, bool], *, opted_out: bool) -> "Stance":
        """With choices about which there is none, and an opt-out."""
        return Stance({**choices, **self.choices}, self.opted_out or opted_out)

    def without(self, refused: Collection[str]) -> "Stance":
        """Without consent to these categories."""
        kept = {key: each for key, each in self.choices.items() if not (each and key in refused)}
        return Stance(kept, self.opted_out)


def person_get(*, channel_id: UUID, external_id: str) -> Person:
    """Returns the person. Raises NotFound."""
    found = _named(channel_id, external_id).first()
    if found is None:
        raise NotFound(_UNKNOWN)
    return found


def person_devices(person: Person) -> list[Subscription]:
    """All stored devices of the person, active or not, oldest first."""
    return list(_devices_of(person).order_by("id"))


def person_change(
    *, channel: Channel, external_id: str, change: PersonChange, is_own: bool = False
) -> Person:
    """Changes the person and all devices of the person, or nothing. Safe to repeat.

    Opting out ends all devices. They become active again when they register after the person opted
    in. `is_own`: the change comes from the person. Then an unknown person is created, and the audit
    log has no entry. Raises NotFound, CategoryUnknown, and Invalid for too many attributes or tags.
    """
    check_changes(categories_of(channel.pk), change.choices)

    def act(_: bool) -> Person:
        if is_own:
            people_get_or_create(channel.pk, [external_id])
        person = person_get(channel_id=channel.pk, external_id=external_id)
        before = audit.fields_of(person)
        devices = list(_devices_of(person).locked_by_id())
        _change_devices(devices, change)
        ended = _end(devices) if change.opted_out else Changes()
        ended.hold(person.pk)
        changes_count(channel.pk, ended)
        if change.choices:
            choices_merge(person, change.choices)
        _opt(person, out=change.opted_out)
        person.refresh_from_db()
        if not is_own:
            _record(person, audit.Action.UPDATE, _words(change), before=before)
        return person

    return until_counted(channel, act)


def people_merge(*, channel: Channel, stances: Mapping[str, Stance], note: str) -> None:
    """Gives each person the choices about which it has none, except for categories that a device of
    the person refuses, and opts out those who are so in `stances`. Creates unknown persons. Nobody
    is opted in. Safe to repeat. For an import: the audit log has one entry, with the note."""

    def act(_: bool) -> None:
        known = _found(channel.pk, stances.keys())
        out = {name for name, each in stances.items() if each.opted_out}
        wanting = {name for name, each in stances.items() if any(each.choices.values())}
        # Devices of both are locked, because a device may be refusing a category now. They are
        # locked before people are created: whoever links a locked device may wait for its person.
        owners = [person for name, person in known.items() if name in out | wanting]
        devices = list(Subscription.objects.filter(person__in=owners).locked_by_id())
        persons = people_get_or_create(channel.pk, stances.keys())
        if any(each.active_devices for name, each in persons.items() if each != known.get(name)):
            raise PersonsChanged  # others made a person, whose devices are not locked
        ids = {name: persons[name].pk for name in stances}
        leaving = {ids[name] for name in out}
        ended = _end([each for each in devices if each.person_id in leaving])
        ended.is_import = True
        for id_ in ids.values():
            ended.hold(id_)
        changes_count(channel.pk, ended)
        refused = refused_by_devices(devices)
        given = [
            {"id": str(ids[name]), **asdict(each.without(refused.get(ids[name], set())))}
            for name, each in stances.items()
        ]
        # A device that was linked after the devices were locked is counted by now.
        if sql.execute(_MERGE, {"given": json.dumps(given)}) < len(given):
            raise PersonsChanged
        audit.record(channel, audit.Action.UPDATE, note=note)

    until_counted(channel, act)


def refused_by_devices(devices: Iterable[Subscription]) -> Mapping[UUID | None, set[str]]:
    """The categories that devices refuse, by their persons."""
    refused: dict[UUID | None, set[str]] = {}
    for device in devices:
        keys = {key for key, is_wanted in device.choices.items() if not is_wanted}
        refused.setdefault(device.person_id, set()).update(keys)
    return refused


def person_erase(*, channel: Channel, external_id: str, also: Callable[[], int]) -> int:
    """Deletes the person and everything about the addresses of the person's devices. Returns how
    many devices the person had.

    `also` deletes the caller's data in the same transaction, before rows of subscriptions are
    locked, and returns how many rows. There may be such data even if the person has no row.

    The log of recipients keeps its outcomes, with ids that no longer exist. Messages that are being
    sent to the devices bounce as `unsubscribed`. Raises NotFound, also if the person was already
    erased.
    """

    def act(_: bool) -> int:
        also_erased = also()
        person = _named(channel.pk, external_id).first()
        if person is None and also_erased:
            audit.record(channel, audit.Action.UPDATE, note=_note(external_id, _ERASED))
            return 0
        if person is None:
            raise NotFound(_UNKNOWN)
        addresses = dict(_devices_of(person).values_list("id", "address_sha256"))
        # Also rows of other devices at these addresses. Otherwise the addresses stay stored.
        here = Subscription.objects.filter(channel=channel, platform__in=PLATFORM_VALUES)
        rows = list(here.filter(address_sha256__in=addresses.values()).locked_by_id())
        if addresses.keys() != {each.id for each in rows if each.person_id == person.pk}:
            raise PersonsChanged  # a device left the person, or moved, before it was locked
        changes = Changes()
        for each in rows:
            changes.note(Standing.of(each), None)
        changes.hold(person.pk)
        Subscription.objects.filter(id__in=[each.id for each in rows]).delete()
        changes_count(channel.pk, changes)
        _delete(person)
        _record(person, audit.Action.DELETE, _ERASED)
        return sum(each.person_id == person.pk for each in rows)

    return until_counted(channel, act)


def person_preferences(
    *, channel: Channel, token: str, changes: ChoiceChanges | None, opted_out: bool | None
) -> tuple[list[Preference], bool]:
    """Makes `changes` for the person that the token proves. Returns the person's preferences, and
    whether the person opted out. An unknown person has the defaults. Safe to repeat. Raises
    IdentityOff, IdentityRefused, CategoryUnknown."""
    external_id = proven_person(channel, token)
    if changes or opted_out is not None:
        change = PersonChange(opted_out=opted_out, choices=changes or {})
        person_change(channel=channel, external_id=external_id, change=change, is_own=True)
    known = _named(channel.pk, external_id).first()
    wanted = preferences(categories_of(channel.pk), known.choices if known else {})
    return wanted, bool(known and known.opted_out_at)


def people_get_or_create(channel_id: UUID, external_ids: Collection[str]) -> dict[str, Person]:
    """The channel's persons with these ids. Creates missing ones.

    They are not locked. The transaction that links a device to a person also counts it
    (`changes_count`), so that no other transaction deletes the person. Raises PersonsChanged.
    """
    if not external_ids:
        return {}
    found = _found(channel_id, external_ids)
    missing = sorted(set(external_ids) - found.keys())
    if missing:
        ids = sql.array(uuid7().hex for _ in missing)
        given = {"channel": channel_id, "ids": ids, "external_ids": missing}
        found |= {row.external_id: row for row in Person.objects.raw(_CREATE, given)}
        others = set(external_ids) - found.keys()  # which somebody else created meanwhile
        if others:
            found |= _found(channel_id, others)
    if len(found) < len(set(external_ids)):
        raise PersonsChanged
    return found


def person_exported(person: Person) -> None:
    """Records in the audit log that everything known about the person was exported."""
    _record(person, audit.Action.ACCESS, "Everything known was exported.")


# Raw, because an import creates hundreds of persons at once, for which the ORM takes five times as
# long. In the order of the external ids, as all transactions create persons.
_CREATE: Final = """
INSERT INTO subscriptions_app_person (id, channel_id, external_id)
SELECT id, %(channel)s, external_id
FROM unnest(%(ids)s::uuid[], %(external_ids)s::text[]) AS given (id, external_id)
ON CONFLICT DO NOTHING RETURNING *
"""
# Raw, because the ORM passes each id as a parameter of its own.
_FIND: Final = """
SELECT * FROM subscriptions_app_person
WHERE channel_id = %(channel)s AND external_id = ANY (%(external_ids)s)
"""


# Raw, because the ORM cannot merge JSON. With `left_at`, so that a person who never had a device is
# deleted after the choices are removed, as one whose last device ended.
_MERGE: Final = """
UPDATE subscriptions_app_person AS person
SET choices = given.choices || person.choices,
  opted_out_at = CASE
    WHEN given.opted_out THEN coalesce(opted_out_at, statement_timestamp()) ELSE opted_out_at END,
  left_at = CASE WHEN active_devices = 0 THEN coalesce(left_at, statement_timestamp()) END
FROM jsonb_to_recordset(%(given)s::jsonb) AS given (id uuid, choices jsonb, opted_out boolean)
WHERE person.id = given.id AND (active_devices = 0 OR NOT given.opted_out)
"""


def _named(channel_id: UUID, external_id: str) -> QuerySet[Person]:
    return Person.objects.filter(channel_id=channel_id, external_id=external_id)


def _found(channel_id: UUID, external_ids: Collection[str]) -> dict[str, Person]:
    given = {"channel": channel_id, "external_ids": list(external_ids)}
    return {row.external_id: row for row in Person.objects.raw(_FIND, given)}


def _devices_of(person: Person) -> SubscriptionQuerySet:
    return Subscription.objects.filter(person=person)


def _change_devices(devices: Sequence[Subscription], change: PersonChange) -> None:
    for each in devices:
        each.attributes = _merged(each.attributes, change.attributes)
        if change.tags is not None:
            device_tags_change(each.id, change.tags)
    if change.attributes:
        Subscription.objects.bulk_update(devices, ["attributes"])
    choosers = [each for each in devices if choices_forget(each, change.choices)]
    Subscription.objects.bulk_update(choosers, ["choices"])


def _merged(attributes: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    merged = {name: value for name, value in {**attributes, **changes}.items() if value is not None}
    if len(merged) > max(MAX_ATTRIBUTES, len(attributes)):
        detail = gettext("A device would have %(count)s. It may have at most %(most)s.") % {
            "count": len(merged),
            "most": MAX_ATTRIBUTES,
        }
        raise Invalid([FieldError("attributes", "too_many", detail)])
    return merged


def _end(devices: Sequence[Subscription]) -> Changes:
    changes, now = Changes(), sql.now()
    active = [each for each in devices if each.expired_at is None]
    for each in active:
        before = Standing.of(each)
        each.expired_at, each.expired_code = now, OPTED_OUT
        changes.note(before, Standing.of(each))
    Subscription.objects.bulk_update(active, ["expired_at", "expired_code"])
    return changes


def _opt(person: Person, *, out: bool | None) -> None:
    """Opts the locked person out or in. A device that was linked after the devices were locked is
    counted by now."""
    own = Person.objects.filter(pk=person.pk)
    if out is False:
        own.update(opted_out_at=None)
    elif out and not own.filter(active_devices=0).update(
        opted_out_at=Coalesce("opted_out_at", Now())
    ):
        raise PersonsChanged


def _delete(person: Person) -> None:
    """Deletes the person. While the row is locked, no device can be linked to it. A transaction
    that waits for the lock then finds no person."""
    own = Person.objects.filter(pk=person.pk)
    if own.select_for_update().first() is None or _devices_of(person).exists():
        raise PersonsChanged
    own.delete()


def _record(
    person: Person, action: audit.Action, note: str, before: Mapping[str, Any] | None = None
) -> None:
    after = audit.fields_of(person) if action == audit.Action.UPDATE else None
    audit.record(person, action, before, after, note=_note(person.external_id, note))


def _note(external_id: str, words: str) -> str:
    """The text of an entry, with a hash of the external id. Only who has the external id and the
    service's key can find the person of an entry."""
    return f"{words} Keyed hash of the id: {audit.id_hash(external_id)}."


def _words(change: PersonChange) -> str:
    """The names of the changes, without values."""
    named = {
        "opting out": change.opted_out is not None,
        "choices": bool(change.choices),
        "attributes": bool(change.attributes),
        "tags": change.tags is not None,
    }
    return f"Changed: {', '.join(name for name, is_it in named.items() if is_it) or 'nothing'}."
