"""Reads a channel's tags, and the devices of a tag for audiences.

Every read takes a bounded number of steps in the index, however many devices a tag has. The
statements are raw SQL, because rules are compiled to SQL, and because the ORM has neither LATERAL
nor recursion.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from pushsvc.common.platforms import PLATFORM_VALUES
from pushsvc.common.store import sql
from subscriptions_app.models import Tag, TagRemoval
from subscriptions_app.segments.compiler import Condition

MOST_COUNTED: Final = 1_000  # devices of a tag in the list
_AFTER_ALL: Final = "~"  # after every character that a tag may have


@dataclass(frozen=True, slots=True)
class TagListed:
    """`devices`: at most MOST_COUNTED. `more`: whether there are more devices."""

    tag: str
    devices: int
    more: bool


def tag_exists(channel_id: UUID, tag: str) -> bool:
    own = Tag.objects.filter(channel_id=channel_id, platform__in=PLATFORM_VALUES, tag=tag)
    return own.exists()


def is_being_removed(channel_id: UUID, tag: str) -> bool:
    """Whether the tag was deleted, and housekeeping still removes it from devices."""
    return TagRemoval.objects.filter(channel_id=channel_id, tag=tag).exists()


def device_tags(subscription_ids: Sequence[UUID]) -> dict[UUID, list[str]]:
    """The sorted tags of each of these devices. Devices without tags are missing."""
    found: dict[UUID, list[str]] = {}
    rows = Tag.objects.filter(subscription__in=subscription_ids).order_by("tag")
    for id_, tag in rows.values_list("subscription_id", "tag"):
        found.setdefault(id_, []).append(tag)
    return found


def tags_page(
    *, channel_id: UUID, limit: int, after: str = "", prefix: str = ""
) -> list[TagListed]:
    """The channel's tags that begin with `prefix` and follow `after`, in the order of code points.
    The counts include expired devices that are still stored."""
    parameters = _range(channel_id, limit, after, prefix) | {"most": MOST_COUNTED + 1}
    return [
        TagListed(tag, min(count, MOST_COUNTED), count > MOST_COUNTED)
        for tag, count in sql.rows(_PAGE, parameters)
    ]


def tag_names(channel_id: UUID, *, limit: int, prefix: str = "") -> list[str]:
    """The channel's first tags that begin with `prefix`, in the order of code points."""
    return [str(tag) for (tag,) in sql.rows(_TAGS, _range(channel_id, limit, "", prefix))]


def _range(channel_id: UUID, limit: int, after: str, prefix: str) -> dict[str, Any]:
    return {
        "channel": channel_id,
        "platforms": PLATFORM_VALUES,
        "after": after,
        "prefix": prefix,
        "end": prefix + _AFTER_ALL,
        "limit": limit,
    }


def tag_window_part(audience: Condition, columns: str = "") -> str:
    """As `selectors.window_part`, for the devices of a tag. The size of a window is the number of
    devices with the tag, active or not, so that its work is bounded. Parameters: those of
    `audience`, `channel`, `platform`, `tag`, `cursor` and `window`."""
    return f"""
        SELECT tagged.id, push_service, {columns}
          subscription.id IS NOT NULL AND {audience.text} AS is_recipient
        FROM (
          SELECT subscription_id AS id FROM subscriptions_app_tag
          WHERE channel_id = %(channel)s AND platform = %(platform)s AND tag = %(tag)s
            AND subscription_id > %(cursor)s
          ORDER BY subscription_id LIMIT %(window)s
        ) AS tagged {_ACTIVE}
    """  # noqa: S608 - names of our own


# For a table `tagged` of ids: its active subscriptions, and NULL for each other id. OFFSET 0, so
# that PostgreSQL looks up each row by its id, and never reads the channel for a join.
_ACTIVE: Final = """LEFT JOIN LATERAL (
  SELECT * FROM subscriptions_app_subscription
  WHERE id = tagged.id AND expired_at IS NULL OFFSET 0
) AS subscription ON true"""

# At most `most` devices of a tag on all platforms as candidates.
TAGGED_CANDIDATES: Final = f"""
  SELECT subscription.* FROM (
    SELECT subscription_id AS id FROM subscriptions_app_tag
    WHERE channel_id = %(channel)s AND platform = ANY (%(platforms)s) AND tag = %(tag)s
    LIMIT %(most)s
  ) AS tagged {_ACTIVE}
"""  # noqa: S608 - names of our own

# The smallest tag above a bound, by one step in the index of each platform.
_NEXT: Final = """
  SELECT min(first.tag) AS tag FROM unnest(%(platforms)s::text[]) AS wanted (platform)
  CROSS JOIN LATERAL (
    SELECT own.tag FROM subscriptions_app_tag AS own
    WHERE channel_id = %(channel)s AND own.platform = wanted.platform AND own.tag < %(end)s
      AND {above}
    ORDER BY own.tag LIMIT 1
  ) AS first
"""

_TAGS: Final = f"""
WITH RECURSIVE found (tag) AS (
  ({_NEXT.format(above="own.tag > %(after)s AND own.tag >= %(prefix)s")})
  UNION ALL
  SELECT later.tag FROM found
  CROSS JOIN LATERAL ({_NEXT.format(above="own.tag > found.tag")}) AS later
  WHERE found.tag IS NOT NULL
)
SELECT tag FROM found WHERE tag IS NOT NULL LIMIT %(limit)s
"""  # noqa: S608 - names of our own

_PAGE: Final = f"""
SELECT listed.tag, (
  SELECT count(*) FROM (
    SELECT FROM subscriptions_app_tag AS own
    WHERE channel_id = %(channel)s AND platform = ANY (%(platforms)s) AND own.tag = listed.tag
    LIMIT %(most)s
  ) AS first
)
FROM ({_TAGS}) AS listed
"""  # noqa: S608 - names of our own
