"""Reads a channel's subscriptions for the export, a bounded number at a time."""

from collections.abc import Iterator, Sequence
from typing import Any, Final
from uuid import UUID

from pushsvc.common.platforms import PLATFORM_VALUES, Platform
from pushsvc.common.store import sql
from subscriptions_app.models import Subscription
from subscriptions_app.tags.selectors import device_tags

STATES: Final = ("active", "expired")
FIELDS: Final = (
    "subscription_id",
    "platform",
    "active",
    "external_id",
    "language",
    "timezone",
    "attributes",
    "tags",
    "choices",
    "created_at",
    "last_seen_at",
    "expired_at",
    "expired_code",
)
# Of the CSV. In NDJSON, `p256dh` and `auth` of a browser are in `keys`, as browsers give them.
ADDRESS_FIELDS: Final = ("endpoint", "provider_token", "p256dh", "auth", "vapid_public_key")
_SLICE: Final = 500


def subscription_ids_after(
    channel_id: UUID, *, after: UUID, limit: int, state: str | None = None
) -> list[UUID]:
    """The channel's next ids. The steps in the indexes are bounded by `limit`, wherever the page
    is, and whatever other channels have."""
    parameters = {"channel": channel_id, "after": after, "limit": limit}
    return [id_ for (id_,) in sql.rows(_PAGES[state], parameters)]


def subscription_slices(
    ids: Sequence[UUID], *, with_address: bool, is_flat: bool = False
) -> Iterator[list[dict[str, Any]]]:
    """The rows in the order of the ids. A subscription that was deleted meanwhile is missing."""
    for at in range(0, len(ids), _SLICE):
        part = ids[at : at + _SLICE]
        found = Subscription.objects.select_related("person", "vapid_key").in_bulk(part)
        tags = device_tags(part)
        yield [
            _row(found[id_], tags.get(id_, []), with_address, is_flat)
            for id_ in part
            if id_ in found
        ]


def _row(
    device: Subscription, tags: list[str], with_address: bool, is_flat: bool
) -> dict[str, Any]:
    person = device.person
    row = {
        "subscription_id": device.pk,
        "platform": device.platform,
        "active": device.expired_at is None,
        "external_id": person.external_id if person else None,
        "language": device.language or None,
        "timezone": device.timezone or None,
        "attributes": device.attributes,
        "tags": tags,
        # A choice of the person counts before the device's.
        "choices": device.choices | (person.choices if person else {}),
        "created_at": device.created_at,
        "last_seen_at": device.registered_at,
        "expired_at": device.expired_at,
        "expired_code": device.expired_code or None,
    }
    # Another subscription has the address of one that is set aside.
    if not with_address or device.is_set_aside:
        return row
    return row | _address(device, is_flat)


def _address(device: Subscription, is_flat: bool) -> dict[str, Any]:
    if device.platform != Platform.WEB:
        return {"provider_token": device.address, "auth": device.auth or None}
    keys = {"p256dh": device.p256dh, "auth": device.auth}
    public_key = device.vapid_key.public_key if device.vapid_key else None
    return {
        "endpoint": device.address,
        **(keys if is_flat else {"keys": keys}),
        "vapid_public_key": public_key,
    }


def _pages(conditions: Sequence[str]) -> str:
    ranges = " UNION ALL ".join(
        f"""(SELECT id FROM subscriptions_app_subscription
             WHERE channel_id = %(channel)s AND {each} AND id > %(after)s
             ORDER BY id LIMIT %(limit)s)"""  # noqa: S608 - our own conditions
        for each in conditions
    )
    return f"SELECT id FROM ({ranges}) AS found ORDER BY id LIMIT %(limit)s"  # noqa: S608 - ours


# Raw, so that each range is read in the order of an index of its own (`subscription_active`,
# `subscription_ended`).
_ACTIVE: Final = [
    f"platform = '{platform}' AND expired_at IS NULL" for platform in sorted(PLATFORM_VALUES)
]
_ENDED: Final = ["expired_at IS NOT NULL"]
_PAGES: Final = {
    "active": _pages(_ACTIVE),
    "expired": _pages(_ENDED),
    None: _pages([*_ACTIVE, *_ENDED]),
}
