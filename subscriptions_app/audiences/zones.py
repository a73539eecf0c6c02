"""The time zones of a channel's active devices, by platform. The statements are raw, because the
ORM has neither recursion nor the CTEs that find targets."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final
from uuid import UUID

from pushsvc.common.platforms import Platform
from pushsvc.common.store import sql
from subscriptions_app.audiences.targets import TargetIds, targets_zones


def zones_present(
    channel_id: UUID, platforms: Sequence[str], named: TargetIds | None = None
) -> dict[Platform, list[str]]:
    """The zones of the channel's devices, or of those that `named` reaches, as they are stored.
    Every platform has at least one; "" is that of devices without any."""
    if named is None:
        found: Iterable[tuple[Any, ...]] = sql.rows(
            _ZONES, {"channel": channel_id, "platforms": list(platforms)}
        )
    else:
        found = targets_zones(channel_id, named)
    zones: Mapping[str, list[str]] = defaultdict(list)
    for platform, name in found:
        zones[platform].append(name)
    return {Platform(each): sorted(zones.get(each, [])) or [""] for each in platforms}


# One step in the index for each zone, however many devices have it.
_ZONES: Final = """
WITH RECURSIVE zone (platform, name) AS (
  SELECT wanted.platform, (
    SELECT timezone FROM subscriptions_app_subscription
    WHERE channel_id = %(channel)s AND platform = wanted.platform AND expired_at IS NULL
    ORDER BY channel_id, platform, timezone LIMIT 1)
  FROM unnest(%(platforms)s::text[]) AS wanted (platform)
  UNION ALL
  SELECT zone.platform, (
    SELECT timezone FROM subscriptions_app_subscription
    WHERE channel_id = %(channel)s AND platform = zone.platform AND expired_at IS NULL
      AND timezone > zone.name
    ORDER BY channel_id, platform, timezone LIMIT 1)
  FROM zone WHERE name IS NOT NULL
)
SELECT platform, name FROM zone WHERE name IS NOT NULL
"""
