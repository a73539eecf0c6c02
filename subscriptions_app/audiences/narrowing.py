"""Finds the condition of a rule that the fewest devices meet, so that only these are read.

The statement is raw SQL, because it counts at most so many rows of each, in two tables.
"""

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from pushsvc.common.store import sql
from subscriptions_app.segments.compiler import required_leaves
from subscriptions_app.segments.ledger import COUNTED_RECIPIENTS
from subscriptions_app.segments.rules import Rule

_COMPARED: Final = 5_001  # devices of each condition that are counted to find the smallest
_NO_ID: Final = UUID(int=0)


def narrowest(
    channel_id: UUID, platforms: Sequence[str], rule: Rule, after: UUID = _NO_ID
) -> Rule | None:
    """The condition on a tag or on an earlier notification that every matching subscription meets,
    and for which the fewest devices after this id are to be read. None if there is none."""
    required = required_leaves(rule)
    if len(required) <= 1:
        return required[0] if required else None
    parameters = {
        "channel": channel_id,
        "platforms": list(platforms),
        "tags": [leaf.get("tag") for leaf in required],
        "notifications": [leaf.get("notification") for leaf in required],
        "cursor": after,
        "most": _COMPARED,
    }
    ((place,),) = sql.rows(_NARROWEST, parameters)
    return required[int(place) - 1]


_NARROWEST: Final = f"""
SELECT leaf.place
FROM unnest(%(tags)s::text[], %(notifications)s::uuid[])
  WITH ORDINALITY AS leaf (tag, notification_id, place)
ORDER BY CASE WHEN leaf.tag IS NULL THEN ({COUNTED_RECIPIENTS.format(named="leaf.notification_id")})
  ELSE (
    SELECT count(*) FROM (
      SELECT FROM subscriptions_app_tag AS own
      WHERE channel_id = %(channel)s AND platform = ANY (%(platforms)s) AND own.tag = leaf.tag
        AND subscription_id > %(cursor)s
      LIMIT %(most)s
    ) AS first
  ) END, leaf.place LIMIT 1
"""  # noqa: S608 - names of our own
