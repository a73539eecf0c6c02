"""Reads of subscriptions."""

import json
import re
from collections.abc import Collection, Mapping, Set
from datetime import datetime
from functools import cache
from types import MappingProxyType
from typing import Any, Final, NamedTuple
from uuid import UUID

from django.db.models import QuerySet
from django.db.models.expressions import RawSQL
from django.utils.translation import gettext

from channels_app.models import Channel, VapidKey
from pushsvc.common.errors import NotFound
from pushsvc.common.ids import parse_uuid
from pushsvc.common.platforms import PLATFORM_VALUES, Platform
from pushsvc.common.store import sql
from subscriptions_app.addresses import Address
from subscriptions_app.audiences.windows import LAST_ID, active_part
from subscriptions_app.errors import DeviceUnproven
from subscriptions_app.models import Subscription, SubscriptionQuerySet

PROVING_ROWS: Final = 1_000


class DeliveryDevice(NamedTuple):
    """A device that a message is sent to. A later expiry compares `registered_at`: if the device
    has registered again since, the row does not expire. `is_proven`: an accepted message changes
    nothing in the row.

    The last fields are those of ASKABLE. They are empty unless they are known and were requested.
    """

    id: UUID
    active: bool
    address: str
    p256dh: str
    auth: str
    vapid_key_id: UUID | None
    registered_at: datetime
    is_proven: bool
    language: str = ""
    timezone: str = ""
    external_id: str = ""
    attributes: Mapping[str, Any] = MappingProxyType({})


# The language is the column, or the attribute of the same name.
ASKABLE: Final[Mapping[str, str]] = {
    "language": "coalesce(nullif(language, ''), attributes ->> 'language', '')",
    "timezone": "timezone",
    "external_id": """coalesce((SELECT external_id FROM subscriptions_app_person
                                WHERE id = subscription.person_id), '')""",
    "attributes": "attributes",
}


def delivery_devices(
    subscription_ids: Collection[UUID], *, asked: Collection[str] = ()
) -> list[DeliveryDevice]:
    """Reads the devices, in any order. Ids that no longer exist are missing. `asked`: the names of
    ASKABLE to read."""
    ids = sql.array(each.hex for each in subscription_ids)
    statement = _targets_statement(frozenset(asked))
    rows = sql.rows(statement, {"ids": ids}, is_prepared=sql.are_few(subscription_ids))
    if "attributes" not in asked:
        return [DeliveryDevice(*row) for row in rows]
    # All at once, which takes half as long as one by one.
    attributes = json.loads(f"[{','.join([row[-1] for row in rows])}]")
    return [DeliveryDevice(*(*row[:-1], own)) for row, own in zip(rows, attributes, strict=True)]


@cache
def _targets_statement(asked: Set[str]) -> str:
    """The statement with the columns of DeliveryDevice, up to the last requested one. Other columns
    of ASKABLE are empty texts."""
    most = max((place for place, name in enumerate(ASKABLE, start=1) if name in asked), default=0)
    columns = [
        f"{column} AS asked_{name}" if name in asked else "''"
        for name, column in list(ASKABLE.items())[:most]
    ]
    return _TARGETS.format(asked="".join(f", {each}" for each in columns))


def unchanged_since(moment: datetime) -> SubscriptionQuerySet:
    """Active subscriptions that have not registered after the moment."""
    return Subscription.objects.filter(expired_at__isnull=True, registered_at__lte=moment)


def keys_proven_by_others(channel_id: UUID, subscription_ids: Collection[UUID]) -> Set[UUID]:
    """Those of these browsers that never took a message, while one of the channel's newest
    subscriptions has taken one with the same VAPID key at the same push service."""
    browsers = Subscription.objects.active().filter(channel_id=channel_id, platform=Platform.WEB)
    newest = browsers.order_by("-channel_id", "-platform", "-id")
    by_key = newest.values_list("vapid_key_id", "push_service", "is_proven")[:PROVING_ROWS]
    proven = {(key_id, service) for key_id, service, is_proven in by_key if is_proven}
    return {
        each.pk
        for each in browsers.filter(pk__in=subscription_ids, is_proven=False)
        if (each.vapid_key_id, each.push_service) in proven
    }


def exists_part(id_column: str) -> str:
    """The SQL condition that the subscription is stored, active or not."""
    table = Subscription._meta.db_table
    return f"EXISTS (SELECT FROM {table} WHERE id = {id_column})"


def device_proven(channel_id: UUID, address: Address, auth: str) -> Subscription:
    """The channel's device at the address that `auth` proves, active or not, with its person.
    Raises DeviceUnproven, also if there is no device at the address."""
    rows = Subscription.objects.filter(
        channel_id=channel_id, platform=address.platform, address_sha256=address.digest
    )
    for device in rows.select_related("person"):
        if device.is_proved_by(auth):
            return device
    raise DeviceUnproven


def devices_of_token(channel: Channel, token: str, *, limit: int) -> list[Subscription]:
    """The newest devices of the person whom the identity token proves, active or not, with the
    person. Empty for a person who is not known. Raises IdentityOff, IdentityRefused."""
    # Here, because workers need other functions of this module, and neither tokens nor DRF.
    from subscriptions_app.people.proof import proven_person

    external_id = proven_person(channel, token)
    own = Subscription.objects.filter(
        person__channel=channel, person__external_id=external_id
    ).select_related("person")
    return list(own.order_by("-id")[:limit])


def vapid_key_id(channel_id: UUID, public_key: str) -> UUID | None:
    """The id of the channel's key pair with this public key, current or retired; None if there is
    none."""
    keys = VapidKey.objects.filter(channel_id=channel_id, public_key=public_key)
    return keys.values_list("id", flat=True).first()


def subscription_active(*, channel_id: UUID, subscription_id: UUID) -> Subscription:
    """Returns the subscription. Raises NotFound, also if it has expired or belongs to another
    channel."""
    found = _active_in(channel_id).filter(id=subscription_id).first()
    if found is None:
        raise NotFound(gettext("The channel has no such active subscription."))
    return found


def subscription_known_as(*, channel_id: UUID, text: str) -> Subscription | None:
    """The active subscription with this id, or whose address has this SHA-256 (hex)."""
    active = _active_in(channel_id)
    word = text.strip().lower()
    if re.fullmatch(r"[0-9a-f]{64}", word, re.ASCII):
        digest = bytes.fromhex(word)
        return active.filter(platform__in=PLATFORM_VALUES, address_sha256=digest).first()
    try:
        return active.filter(id=parse_uuid(word)).first()
    except ValueError:
        return None


def devices_known_as(*, channel_id: UUID, text: str, limit: int) -> list[Subscription]:
    """The active subscription as `subscription_known_as`, or those of the person with this external
    id, the last seen ones first. With their persons."""
    word = text.strip()
    if "\0" in word:  # which PostgreSQL refuses
        return []
    own = _active_in(channel_id).select_related("person")
    found = subscription_known_as(channel_id=channel_id, text=word)
    if found is not None:
        return list(own.filter(pk=found.pk))
    of_person = own.filter(person__channel_id=channel_id, person__external_id=word)
    return list(of_person.order_by("-registered_at")[:limit])


def newest_devices(channel_id: UUID, *, limit: int) -> list[Subscription]:
    """The active subscriptions that were created last, the newest first. With their persons.

    Read by platform, because the index on active subscriptions is in this order."""
    active = _active_in(channel_id).select_related("person").order_by("-id")
    of_all = [each for name in PLATFORM_VALUES for each in active.filter(platform=name)[:limit]]
    return sorted(of_all, key=lambda each: each.pk, reverse=True)[:limit]


def newest_ids(
    channel_id: UUID, *, state: str | None, platforms: Collection[Platform], limit: int
) -> RawSQL:
    """Ids of the channel's newest subscriptions on these platforms, for `id__in` of a query.
    `state`: `active` or `expired`; others mean both. Each range is read in the order of an index,
    whatever other channels have."""
    ranges: list[str] = []
    values: list[Any] = []
    if state != "expired":
        for platform in platforms:
            ranges.append(_NEWEST_ACTIVE)
            values += [channel_id, platform.value] * 2 + [limit]
    if state != "active":
        ranges.append(_NEWEST_ENDED)
        values += [channel_id, channel_id, [each.value for each in platforms], limit]
    statement = _NEWEST.format(ranges=" UNION ALL ".join(ranges))
    return RawSQL(statement, (*values, limit))  # noqa: S611 (constant text; values are parameters)


def _active_in(channel_id: UUID) -> QuerySet[Subscription]:
    return Subscription.objects.active().filter(channel_id=channel_id)


# Raw, because the ORM needs more time to compile a statement with a thousand ids than PostgreSQL to
# run it.
_TARGETS: Final = """
SELECT id, expired_at IS NULL, address, p256dh, auth, vapid_key_id, registered_at,
  is_proven AND not_found_at IS NULL{asked}
FROM subscriptions_app_subscription AS subscription
WHERE id = ANY(%(ids)s::uuid[])
"""


_NEWEST_ACTIVE: Final = f"""(SELECT id FROM {active_part("%s", "%s")}
  ORDER BY channel_id DESC, platform DESC, id DESC LIMIT %s)"""  # noqa: S608 - constants
_NEWEST_ENDED: Final = f"""(SELECT id FROM subscriptions_app_subscription
  WHERE (channel_id, id) >= (%s, '{UUID(int=0)}'::uuid)
    AND (channel_id, id) <= (%s, '{LAST_ID}'::uuid)
    AND expired_at IS NOT NULL AND platform = ANY(%s)
  ORDER BY channel_id DESC, id DESC LIMIT %s)"""  # noqa: S608 - constants
_NEWEST: Final = """
SELECT unnest(ARRAY(SELECT id FROM ({ranges}) AS ranges ORDER BY id DESC LIMIT %s))
"""
