"""Whether a device wants the notifications of a category, and the choices of devices and people.

A choice is the person's if the device has a person and proves itself with its `auth`; it then
counts for all devices of the person. Any other choice is the device's: anyone who knows the address
can make it, and it counts for this device alone, unless the person has chosen. A person takes over
only what was chosen with proof. Without a choice, the category's default counts.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from channels_app.models import Channel
from pushsvc.common.platforms import PLATFORM_VALUES
from pushsvc.common.store import sql
from subscriptions_app.addresses import Address
from subscriptions_app.audiences.windows import newest_part
from subscriptions_app.errors import CategoryUnknown
from subscriptions_app.models import Category, Person, Subscription
from subscriptions_app.segments.compiler import Condition

# Changes by category: true or false is a choice, null removes a choice.
ChoiceChanges = Mapping[str, bool | None]

# The columns of a subscription that the condition reads, as the beginning of a list.
CONSENT_COLUMNS: Final = "person_id, choices, "


@dataclass(frozen=True, slots=True)
class Preference:
    """A category as a preference page shows it."""

    key: str
    name: str
    description: str
    chosen: bool


@dataclass(frozen=True, slots=True)
class ChoicesSeen:
    """How many of the sampled subscribers chose a category, and how many refused it."""

    category: Category
    wanted: int
    refused: int


def categories_of(channel_id: UUID) -> list[Category]:
    """The channel's categories that are not archived, in the order of their positions."""
    live = Category.objects.filter(channel_id=channel_id, archived_at=None)
    return list(live.order_by("position", "key"))


def stored_category_keys(channel_id: UUID) -> frozenset[str]:
    """Also those of archived categories, about which choices are kept."""
    return frozenset(Category.objects.filter(channel_id=channel_id).values_list("key", flat=True))


def category_page(*, channel_id: UUID, limit: int, offset: int) -> list[Category]:
    """A page of `categories_of`. Empty if the offset is past the end."""
    return categories_of(channel_id)[offset : offset + limit]


def is_category(channel_id: UUID, key: str) -> bool:
    """Whether a send of the channel may name the category."""
    return Category.objects.filter(channel_id=channel_id, key=key, archived_at=None).exists()


def consent_to(category: str) -> Condition:
    """The condition that a device wants the notifications of a category. The statement must have
    the parameter `channel`."""
    return Condition(wants_part("%(channel)s", "%(category)s"), {"category": category})


def wants_part(channel_id: str, category: str) -> str:
    """The same condition as SQL. The arguments are SQL expressions."""
    return _WANTS.format(channel_id=channel_id, category=category)


def refusing(channel_id: UUID, category: str, subscription_ids: Sequence[UUID]) -> set[UUID]:
    """The given subscriptions of the channel that do not want the category's notifications now."""
    wants = consent_to(category)
    parameters = {**wants.parameters, "channel": channel_id, "ids": list(subscription_ids)}
    return {row[0] for row in sql.rows(_REFUSING.format(wants=wants.text), parameters)}


def device_preferences(
    *,
    channel: Channel,
    address: Address,
    auth: str = "",
    changes: ChoiceChanges | None = None,
) -> list[Preference]:
    """Makes `changes`, and returns the preferences: of the device's person if `auth` proves the
    device, otherwise of the device alone. So without proof, the result is the same whether or not
    the device has a person. An unknown device has the defaults, and nothing is stored for it.

    Safe to repeat. Raises CategoryUnknown.
    """
    categories = categories_of(channel.id)
    check_changes(categories, changes or {})
    devices = Subscription.objects.filter(
        channel=channel,
        platform=address.platform,
        address_sha256=address.digest,
        is_set_aside=False,
    )
    if not changes:
        return preferences(categories, _choices(devices.select_related("person").first(), auth))
    with sql.brief_transaction():
        device = devices.select_for_update(no_key=True).first()
        return preferences(categories, _choose(device, auth, changes))


def choices_seen(channel_id: UUID) -> tuple[list[ChoicesSeen], int]:
    """The choices for each category, and how many of the channel's newest subscribers were read: at
    most _SEEN on each platform. Subscribers in neither count have not chosen."""
    parameters = {"channel": channel_id, "platforms": PLATFORM_VALUES, "most": _SEEN}
    found = sql.rows(_CHOICES_SEEN, parameters)
    counts = {key: (wanted, refused) for key, wanted, refused, _ in found}
    looked_at = max((row[3] for row in found), default=0)
    categories = categories_of(channel_id)
    return [ChoicesSeen(each, *counts.get(each.key, (0, 0))) for each in categories], looked_at


def check_changes(categories: Sequence[Category], changes: ChoiceChanges) -> None:
    """Raises CategoryUnknown if a change names another category."""
    known = {each.key for each in categories}
    for key in changes:
        if key not in known:
            raise CategoryUnknown(f"choices.{key}")


def preferences(categories: Sequence[Category], choices: Mapping[str, bool]) -> list[Preference]:
    return [
        Preference(
            each.key, each.name, each.description, choices.get(each.key, each.chosen_by_default)
        )
        for each in categories
    ]


def choices_merge(
    row: Subscription | Person, changes: ChoiceChanges, *, columns: Sequence[str] = ("choices",)
) -> dict[str, bool]:
    """Changes the choices of a device or a person, and returns all choices. One statement, so that
    two concurrent changes are both kept."""
    sets = ", ".join(_MERGED.format(column=column) for column in columns)
    statement = _MERGE.format(table=row._meta.db_table, sets=sets)
    parameters = {"id": row.pk, "changes": json.dumps(changes)}
    merged: dict[str, bool] = json.loads(sql.rows(statement, parameters)[0][0])
    return merged


def choices_forget(device: Subscription, changes: ChoiceChanges) -> bool:
    """Takes the categories about which the person chooses out of the device's choices, without
    saving them. Returns whether there were any."""
    before = device.choices
    device.choices = {key: value for key, value in before.items() if key not in changes}
    return bool(device.choices != before)


def choices_made_with_proof(
    choices: Mapping[str, bool], proven: Mapping[str, bool]
) -> dict[str, bool]:
    """Those of a device's choices that are still as they were chosen with proof. Somebody without
    proof may have changed the others."""
    return {key: value for key, value in choices.items() if proven.get(key) is value}


def choices_take_over(person_id: UUID, choices: Mapping[str, bool]) -> None:
    """Copies the choices of a device to a person, except for categories about which the person has
    a choice. Call it after `changes_count`, which locks persons in their order."""
    if choices:
        sql.execute(_TAKE_OVER, {"id": person_id, "choices": json.dumps(choices)})


def _choices(device: Subscription | None, auth: str) -> dict[str, bool]:
    if device is None:
        return {}
    person = device.person if device.is_proved_by(auth) else None
    return {**device.choices, **(person.choices if person else {})}


def _choose(device: Subscription | None, auth: str, changes: ChoiceChanges) -> dict[str, bool]:
    """Changes the choices of the device or its person. The device is locked, so it keeps its
    person."""
    if device is None:
        return {}
    if not device.is_proved_by(auth):
        return choices_merge(device, changes)
    if device.person is None:
        return choices_merge(device, changes, columns=("choices", "proven_choices"))
    if choices_forget(device, changes):
        device.save(update_fields=["choices"])
    return {**device.choices, **choices_merge(device.person, changes)}


_SEEN: Final = 1_000

# For each row, the person is read by its key. A join might read all people instead.
_WANTS: Final = """coalesce(
  (CASE WHEN subscription.person_id IS NOT NULL THEN
    (SELECT choices FROM subscriptions_app_person WHERE id = subscription.person_id)
   END ->> {category})::boolean,
  (subscription.choices ->> {category})::boolean,
  (SELECT chosen_by_default FROM subscriptions_app_category
   WHERE channel_id = {channel_id} AND key = {category}),
  true)"""

# Raw, because the ORM has no LATERAL. The row without a key counts all subscribers.
_CHOICES_SEEN: Final = f"""
WITH recent AS MATERIALIZED (
  SELECT newest.choices || coalesce(person.choices, '{{}}') AS choices
  FROM unnest(%(platforms)s::text[]) AS wanted (platform)
  CROSS JOIN LATERAL ({newest_part("%(most)s")}) AS newest LEFT JOIN LATERAL (
    SELECT choices FROM subscriptions_app_person WHERE id = newest.person_id
  ) AS person ON true
)
SELECT key, count(*) FILTER (WHERE value = 'true'), count(*) FILTER (WHERE value = 'false'),
  (SELECT count(*) FROM recent)
FROM recent, jsonb_each_text(choices) AS chosen (key, value) GROUP BY key
UNION ALL SELECT '', 0, 0, count(*) FROM recent
"""  # noqa: S608 - names of our own

# Raw, because the condition is SQL.
_REFUSING: Final = """
SELECT id FROM subscriptions_app_subscription AS subscription
WHERE id = ANY (%(ids)s) AND channel_id = %(channel)s AND NOT {wants}
"""

# Raw, because the ORM cannot merge JSON.
_TAKE_OVER: Final = """
UPDATE subscriptions_app_person SET choices = %(choices)s::jsonb || choices WHERE id = %(id)s
"""

# Raw, because the ORM has no RETURNING for an update.
_MERGE: Final = """
UPDATE {table} SET {sets} WHERE id = %(id)s RETURNING choices
"""
_MERGED: Final = "{column} = jsonb_strip_nulls({column} || %(changes)s::jsonb)"
