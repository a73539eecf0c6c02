"""Whether a device wants the notifications of a category, and the choices of devices and people.

A choice is stored once: with the person if the device has one, otherwise with the device. Without a
choice, the category's default counts.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hmac import compare_digest
from typing import Final
from uuid import UUID

from channels_app.models import Channel
from pushsvc.common.platforms import PLATFORM_VALUES, Platform
from pushsvc.common.store import sql
from subscriptions_app.addresses import address_digest, device_address
from subscriptions_app.errors import CategoryUnknown, IdentityRefused
from subscriptions_app.models import Category, Person, Subscription
from subscriptions_app.segments.compiler import Condition
from subscriptions_app.selectors import newest_part

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
    platform: Platform,
    address: str,
    auth: str = "",
    changes: ChoiceChanges | None = None,
) -> list[Preference]:
    """Makes `changes`, and returns the device's preferences. An unknown device has the defaults,
    and nothing is stored for it.

    The choices of a device with a person are the person's, so the device's `auth` is required. Safe
    to repeat. Raises CategoryUnknown, IdentityRefused.
    """
    categories = categories_of(channel.id)
    check_changes(categories, changes or {})
    digest = address_digest(device_address(platform, address))
    devices = Subscription.objects.filter(
        channel=channel, platform=platform, address_sha256=digest, is_set_aside=False
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


def choices_merge(row: Subscription | Person, changes: ChoiceChanges) -> dict[str, bool]:
    """Changes the choices of a device or a person, and returns all choices. One statement, so that
    two concurrent changes are both kept."""
    statement = _MERGE.format(table=row._meta.db_table)
    parameters = {"id": row.pk, "changes": json.dumps(changes)}
    merged: dict[str, bool] = json.loads(sql.rows(statement, parameters)[0][0])
    return merged


def choices_take_over(person_id: UUID, choices: Mapping[str, bool]) -> None:
    """Copies the choices of a device to a person, except for categories about which the person has
    a choice. Call it after `changes_count`, which locks persons in their order."""
    if choices:
        sql.execute(_TAKE_OVER, {"id": person_id, "choices": json.dumps(choices)})


def _choices(device: Subscription | None, auth: str) -> dict[str, bool]:
    if device is None:
        return {}
    _check_proof(device, auth)
    choices: dict[str, bool] = (device.person or device).choices
    return choices


def _choose(device: Subscription | None, auth: str, changes: ChoiceChanges) -> dict[str, bool]:
    """Changes the choices of the device or its person. The device is locked, so it keeps its
    person."""
    if device is None:
        return {}
    _check_proof(device, auth)
    return choices_merge(device.person or device, changes)


def _check_proof(device: Subscription, auth: str) -> None:
    """Raises IdentityRefused without proof. Endpoints and tokens are not secret (claims.py): with
    one, anyone can end the device's subscription, but must not read or change a person's choices,
    which count for all devices of the person."""
    if device.person_id is None:
        return
    if not device.auth or not compare_digest(device.auth.encode(), auth.encode()):
        raise IdentityRefused(_UNPROVEN)


_SEEN: Final = 1_000
_UNPROVEN: Final = (
    "The device belongs to a person. Send the subscription's `keys`, the phone's `auth`, or an"
    " `identity_token`."
)

# For each row, the person is read by its key. A join might read all people instead.
_WANTS: Final = """coalesce(
  (CASE WHEN subscription.person_id IS NULL THEN subscription.choices
   ELSE (SELECT choices FROM subscriptions_app_person WHERE id = subscription.person_id)
   END ->> {category})::boolean,
  (SELECT chosen_by_default FROM subscriptions_app_category
   WHERE channel_id = {channel_id} AND key = {category}),
  true)"""

# Raw, because the ORM has no LATERAL. The row without a key counts all subscribers.
_CHOICES_SEEN: Final = f"""
WITH recent AS MATERIALIZED (
  SELECT coalesce(person.choices, newest.choices) AS choices
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
UPDATE {table} SET choices = jsonb_strip_nulls(choices || %(changes)s::jsonb)
WHERE id = %(id)s RETURNING choices
"""
