"""SQL that reads a channel's subscriptions in windows, in an order that an index has."""

from typing import Final
from uuid import UUID

from pushsvc.common.store import sql
from subscriptions_app.models import Subscription
from subscriptions_app.segments.compiler import Condition

INDEX_ROWS: Final = 20_000  # of all channels, that may be read through the index on attributes
LAST_ID: Final = UUID(int=2**128 - 1)


def window_part(audience: Condition, columns: str = "") -> str:
    """SQL that reads a window of a channel's active subscriptions in the order of their ids: id,
    push_service, further `columns`, is_recipient. Parameters: those of `audience`, `channel`,
    `platform`, `cursor` (the last id of the previous window), `until` (the last id of all windows),
    `only` (an id, or NULL for all) and `window` (how many)."""
    return f"""
        SELECT id, push_service, {columns}{audience.text} AS is_recipient
        FROM {active_part("%(channel)s", "%(platform)s", first="%(cursor)s", last="%(until)s")}
          AND id > %(cursor)s AND (%(only)s::uuid IS NULL OR id = %(only)s)
        ORDER BY channel_id, platform, id LIMIT %(window)s
    """  # noqa: S608 - names of our own


def zones_window_part(audience: Condition, columns: str = "") -> str:
    """SQL that reads a window of a channel's active subscriptions with these time zones, zone by
    zone, in each in the order of ids: as `window_part`, and `place`, the zone's place from 1.
    Parameters: those of `audience`, `channel`, `platform`, `zones`, `zone_at` and `cursor` (place
    and id of the last subscription of the previous window), and `window`."""
    return f"""
        SELECT subscription.id, push_service, {columns}{audience.text} AS is_recipient, zone.place
        FROM unnest(%(zones)s::text[]) WITH ORDINALITY AS zone (name, place)
        CROSS JOIN LATERAL (
          SELECT * FROM {Subscription._meta.db_table} AS subscription
          WHERE (channel_id, platform, timezone, id) > (%(channel)s, %(platform)s, zone.name,
              CASE WHEN zone.place = %(zone_at)s THEN %(cursor)s ELSE '{UUID(int=0)}' END::uuid)
            AND (channel_id, platform, timezone, id)
              <= (%(channel)s, %(platform)s, zone.name, '{LAST_ID}'::uuid)
            AND expired_at IS NULL
          ORDER BY channel_id, platform, timezone, id LIMIT %(window)s OFFSET 0
        ) AS subscription
        WHERE zone.place >= %(zone_at)s LIMIT %(window)s
    """  # noqa: S608 - names of our own


def moved_window_part(audience: Condition, columns: str = "") -> str:
    """SQL that reads a window of a channel's active subscriptions whose time zone has changed since
    the parameter `since`, as `window_part`, and `timezone`."""
    return f"""
        SELECT id, push_service, {columns}{audience.text} AS is_recipient, timezone
        FROM {Subscription._meta.db_table} AS subscription
        WHERE channel_id = %(channel)s AND platform = %(platform)s
          AND timezone_changed_at >= %(since)s AND expired_at IS NULL AND id > %(cursor)s
        ORDER BY id LIMIT %(window)s
    """  # noqa: S608 - names of our own


def first_part(plans: str) -> str:
    """SQL that reads, for a row of `plans` (channel_id, platform), the first active subscriptions:
    id, push_service, person_id, choices. It reads one more than the parameter `most`."""
    return f"""
        SELECT id, push_service, person_id, choices
        FROM {active_part(f"{plans}.channel_id", f"{plans}.platform")}
        ORDER BY channel_id, platform, id LIMIT %(most)s + 1
    """  # noqa: S608 - names of our own


def newest_part(most: str) -> str:
    """SQL that reads, for a row of `wanted` (platform), the `most` newest active subscriptions.
    Parameters: `channel`, and those of `most`."""
    return f"""
        SELECT * FROM {active_part("%(channel)s", "wanted.platform")}
        ORDER BY channel_id DESC, platform DESC, id DESC LIMIT {most}
    """  # noqa: S608 - names of our own


def active_part(
    channel: str, platform: str, first: str = f"'{UUID(int=0)}'", last: str = f"'{LAST_ID}'"
) -> str:
    """The table, and the condition for active subscriptions between two ids. More conditions and an
    order by all three columns may follow.

    Columns are compared as rows, so that only the index of active subscriptions has the order. If
    each column were compared separately, PostgreSQL might read the primary key, and all of it if
    the platform has few subscribers or if all newer ones belong to other channels.
    """
    return f"""{Subscription._meta.db_table} AS subscription
        WHERE (channel_id, platform, id) >= ({channel}, {platform}, {first}::uuid)
          AND (channel_id, platform, id) <= ({channel}, {platform}, {last}::uuid)
          AND expired_at IS NULL"""


def indexed_window_part(
    audience: Condition, indexed: Condition, columns: str = ""
) -> tuple[str, str]:
    """Two parts of a statement, for an audience whose members all match `indexed`. The first reads
    at most `most` candidates of all channels by the index on attributes. The second reads a
    channel's subscriptions from `candidates`, as `window_part` does; conditions may be added to its
    WHERE. Parameters: those of both conditions, `channel`, `platform` and `most`."""
    scanned = f"""
        SELECT id, push_service, {columns}{audience.text} AS is_recipient
        FROM candidates AS subscription
        WHERE channel_id = %(channel)s AND platform = %(platform)s
    """  # noqa: S608 - names of our own
    return INDEXED_CANDIDATES.format(indexed=indexed.text), scanned


def are_few_expected(indexed: Condition, most: int) -> bool:
    """Whether PostgreSQL expects at most twice `most` candidates of all channels; twice, because it
    estimates. If it expects many, it reads the whole table for them, even if there are few.
    """
    statement = f"EXPLAIN (FORMAT JSON) {INDEXED_CANDIDATES.format(indexed=indexed.text)}"
    ((explained,),) = sql.rows(statement, {**indexed.parameters, "most": most})
    limit = explained[0]["Plan"]
    return bool(limit["Plans"][0]["Plan Rows"] <= 2 * most)


# Without a condition on the channel, so that PostgreSQL uses the index on attributes.
INDEXED_CANDIDATES = """
  SELECT id, channel_id, platform, push_service, attributes, created_at, registered_at,
    person_id, timezone, language, choices
  FROM subscriptions_app_subscription AS subscription
  WHERE expired_at IS NULL AND {indexed}
  LIMIT %(most)s
"""
