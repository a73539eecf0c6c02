"""Reads a channel's subscriptions for the export, a bounded number at a time."""

from collections.abc import Iterator, Sequence
from typing import Final
from uuid import UUID

from pushsvc.common.platforms import PLATFORM_VALUES
from pushsvc.common.store.lines import Kind, Page, csv_lines, json_lines, page_read, texts

STATES: Final = ("active", "expired")
FIELDS: Final = {
    "subscription_id": Kind.PLAIN,
    "platform": Kind.PLAIN,
    "active": Kind.FLAG,
    "external_id": Kind.TEXT,
    "language": Kind.PLAIN,
    "timezone": Kind.PLAIN,
    "attributes": Kind.DOCUMENT,
    "tags": Kind.WORDS,
    "choices": Kind.DOCUMENT,
    "created_at": Kind.MOMENT,
    "last_seen_at": Kind.MOMENT,
    "expired_at": Kind.MOMENT,
    "expired_code": Kind.TEXT,
}
# Of the CSV. In NDJSON, `p256dh` and `auth` of a browser are in `keys`, as browsers give them.
ADDRESS_FIELDS: Final = {
    "endpoint": Kind.TEXT,
    "provider_token": Kind.TEXT,
    "p256dh": Kind.KEY,
    "auth": Kind.KEY,
    "vapid_public_key": Kind.KEY,
}


def subscriptions_page(
    channel_id: UUID, *, after: UUID, limit: int, state: str | None = None
) -> Page:
    """The channel's next subscriptions. The steps in the indexes are bounded by `limit`, wherever
    the page is, and whatever other channels have."""
    return page_read(_PAGES[state], {"channel": channel_id, "after": after}, limit=limit)


def subscription_texts(page: Page, *, with_address: bool, is_csv: bool = False) -> Iterator[str]:
    """The rows of the page as lines, in the order of ids."""
    return texts(_TEXTS[is_csv, with_address], {}, page)


def _page(conditions: Sequence[str]) -> str:
    ranges = " UNION ALL ".join(
        f"""(SELECT id FROM subscriptions_app_subscription
             WHERE channel_id = %(channel)s AND {each} AND id > %(after)s
             ORDER BY id LIMIT %(read)s)"""  # noqa: S608 - our own conditions
        for each in conditions
    )
    return f"SELECT id, true AS is_meant FROM ({ranges}) AS ranges ORDER BY id LIMIT %(read)s"  # noqa: S608 - ours


# Raw, so that each range is read in the order of an index of its own (`subscription_active`,
# `subscription_ended`).
_ACTIVE: Final = [
    f"platform = '{platform}' AND expired_at IS NULL" for platform in sorted(PLATFORM_VALUES)
]
_ENDED: Final = ["expired_at IS NOT NULL"]
_PAGES: Final = {
    "active": _page(_ACTIVE),
    "expired": _page(_ENDED),
    None: _page([*_ACTIVE, *_ENDED]),
}

# OFFSET 0, so that PostgreSQL looks up each row by its id, and never reads a table for a join. A
# choice of the person counts before the device's. Another subscription has the address of one that
# is set aside.
_ROWS: Final = """
SELECT own.id, own.id AS subscription_id, own.platform, own.expired_at IS NULL AS active,
  person.external_id, nullif(own.language, '') AS language, nullif(own.timezone, '') AS timezone,
  own.attributes,
  ARRAY(SELECT tag FROM subscriptions_app_tag WHERE subscription_id = own.id ORDER BY tag) AS tags,
  CASE WHEN person.choices <> '{}' THEN own.choices || person.choices ELSE own.choices END
    AS choices,
  own.created_at, own.registered_at AS last_seen_at, own.expired_at,
  nullif(own.expired_code, '') AS expired_code,
  CASE WHEN own.platform = 'web' AND NOT own.is_set_aside THEN own.address END AS endpoint,
  CASE WHEN own.platform <> 'web' AND NOT own.is_set_aside THEN own.address END AS provider_token,
  CASE WHEN NOT own.is_set_aside THEN nullif(own.p256dh, '') END AS p256dh,
  CASE WHEN NOT own.is_set_aside THEN nullif(own.auth, '') END AS auth,
  CASE WHEN NOT own.is_set_aside THEN vapid_key.public_key END AS vapid_public_key
FROM unnest(%(ids)s::uuid[]) AS given (id)
CROSS JOIN LATERAL (
  SELECT * FROM subscriptions_app_subscription WHERE id = given.id OFFSET 0
) AS own
LEFT JOIN LATERAL (
  SELECT external_id, choices FROM subscriptions_app_person WHERE id = own.person_id OFFSET 0
) AS person ON true
LEFT JOIN LATERAL (
  SELECT public_key FROM channels_app_vapidkey WHERE id = own.vapid_key_id OFFSET 0
) AS vapid_key ON true
"""
_ADDRESS: Final = """CASE
  WHEN endpoint IS NOT NULL THEN concat(
    ',"endpoint":', to_json(endpoint), ',"keys":{"p256dh":"', p256dh, '","auth":"', auth,
    '"},"vapid_public_key":"', vapid_public_key, '"')
  WHEN provider_token IS NOT NULL THEN concat(
    ',"provider_token":', to_json(provider_token), ',"auth":', coalesce('"' || auth || '"', 'null'))
END"""
# By whether it is CSV, and with addresses.
_TEXTS: Final = {
    (False, False): json_lines(_ROWS, FIELDS),
    (False, True): json_lines(_ROWS, FIELDS, last=_ADDRESS),
    (True, False): csv_lines(_ROWS, FIELDS),
    (True, True): csv_lines(_ROWS, FIELDS | ADDRESS_FIELDS),
}
