"""The values that a channel's devices have, with counts, to be suggested to staff.

They come from the random sample from which sizes are estimated, of fewer rows. The statement is raw
SQL, because it needs LATERAL.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from channels_app.selectors import channel_totals, recent_channel
from pushsvc.common.countries import country_of
from pushsvc.common.errors import Busy
from pushsvc.common.platforms import PLATFORM_VALUES
from pushsvc.common.store import estimates
from pushsvc.common.store.estimates import TooSlow

MOST_VALUES: Final = 30  # the most frequent
VALUE_ROWS: Final = 2_000  # rows of a platform that are read
_FEWER: Final = 20
_GROUPS: Final = 1_000  # values of a platform that are compared


@dataclass(frozen=True, slots=True)
class ValuesSeen:
    """How many active devices have a value, the most frequent first. `estimated`: whether a sample
    was counted instead of all devices."""

    devices: Mapping[str, int]
    estimated: bool


def values_seen(channel_id: UUID, subject: str, name: str = "") -> ValuesSeen:
    """`subject`: one of _EXPRESSIONS; others have no values. `name`: of the attribute. Raises
    Busy."""
    expression = _EXPRESSIONS.get(subject)
    if expression is None:
        return ValuesSeen({}, estimated=False)
    parameters = {
        "channel": channel_id,
        "platforms": PLATFORM_VALUES,
        "groups": _GROUPS,
        "name": name,
    }
    with estimates.share_of(recent_channel(channel_id).account_id):
        found = _rows(_VALUES.format(values=expression), parameters)
    return _scaled(channel_id, found, is_zone=subject == "country")


def _rows(statement: str, parameters: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    for most in (VALUE_ROWS, VALUE_ROWS // _FEWER):
        try:
            return estimates.rows(statement, {**parameters, "most": most})
        except TooSlow:
            continue
    raise Busy


def _scaled(channel_id: UUID, found: list[tuple[Any, ...]], *, is_zone: bool) -> ValuesSeen:
    totals = channel_totals(channel_id)
    counts: defaultdict[str, float] = defaultdict(float)
    estimated = False
    for platform, value, devices, seen, is_whole in found:
        share = 1.0 if is_whole else getattr(totals, f"{platform}_subscribers") / seen
        estimated = estimated or not is_whole
        counts[country_of(value) if is_zone else value] += devices * share
    counts.pop("", None)
    frequent = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:MOST_VALUES]
    return ValuesSeen({value: round(count) for value, count in frequent}, estimated)


# By subject, the source of `value` for a row of the sample.
_COLUMN: Final = "CROSS JOIN LATERAL (SELECT {} AS value) AS found"
_EXPRESSIONS: Final = {
    "attribute": _COLUMN.format("sample.attributes ->> %(name)s"),
    "app_version": _COLUMN.format("sample.attributes ->> 'app_version'"),
    "language": _COLUMN.format("sample.language"),
    "timezone": _COLUMN.format("sample.timezone"),
    "country": _COLUMN.format("sample.timezone"),
    "tag": """CROSS JOIN LATERAL (
      SELECT tag AS value FROM subscriptions_app_tag WHERE subscription_id = sample.id OFFSET 0
    ) AS found""",
}

# Digests of addresses are random, so the first ones are a random sample.
_VALUES: Final = """
WITH sample AS MATERIALIZED (
  SELECT first.* FROM unnest(%(platforms)s::text[]) AS wanted (platform)
  CROSS JOIN LATERAL (
    SELECT id, platform, language, timezone, attributes, expired_at
    FROM subscriptions_app_subscription AS own
    WHERE channel_id = %(channel)s AND own.platform = wanted.platform
    ORDER BY address_sha256 LIMIT %(most)s
  ) AS first
), seen AS (
  SELECT platform, count(*) FILTER (WHERE expired_at IS NULL) AS devices,
    count(*) < %(most)s AS is_whole
  FROM sample GROUP BY platform
)
SELECT platform, value, count(*), seen.devices, seen.is_whole
FROM sample {values} JOIN seen USING (platform)
WHERE expired_at IS NULL AND value <> ''
GROUP BY platform, value, seen.devices, seen.is_whole ORDER BY count(*) DESC, value LIMIT %(groups)s
"""
