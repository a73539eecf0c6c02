"""The languages of a channel's devices, from a sample.

The statement is raw SQL, because the ORM has no LATERAL.
"""

from collections import defaultdict
from collections.abc import Mapping
from typing import Final
from uuid import UUID

from channels_app.selectors import channel_totals
from pushsvc.common.languages import canonical_language
from pushsvc.common.platforms import PLATFORM_VALUES
from pushsvc.common.store import sql

SAMPLE_ROWS: Final = 1_000  # of a platform, so that 3,000 rows are read at most
_MOST_LANGUAGES: Final = 100  # the most frequent; the rest counts as unknown


def language_shares(channel_id: UUID) -> Mapping[str, float]:
    """The share of each language among the channel's active devices, the largest first. "" stands
    for devices with an unknown language. Empty without devices.

    Each platform's sample is weighted by the number of its devices.
    """
    parameters = {"channel": channel_id, "platforms": PLATFORM_VALUES, "sample": SAMPLE_ROWS}
    rows = sql.rows(_LANGUAGES, parameters)
    totals = channel_totals(channel_id)
    seen: defaultdict[str, int] = defaultdict(int)
    for platform, _, count in rows:
        seen[platform] += count
    weights: defaultdict[str, float] = defaultdict(float)
    for platform, language, count in rows:
        weights[canonical_language(language) or language] += (
            getattr(totals, f"{platform}_subscribers") * count / seen[platform]
        )
    return _shares(weights)


def _shares(weights: Mapping[str, float]) -> dict[str, float]:
    total = sum(weights.values())
    known = sorted((name for name in weights if name), key=lambda each: -weights[each])
    shares = {name: weights[name] / total for name in known[:_MOST_LANGUAGES] if total}
    return shares | ({"": max(1 - sum(shares.values()), 0.0)} if total else {})


# The language as delivery reads it: the column, or the attribute of the same name. Digests of
# addresses are random, so the first ones are a random sample.
_LANGUAGES: Final = """
SELECT platform, language, count(*) FROM unnest(%(platforms)s::text[]) AS wanted (platform)
CROSS JOIN LATERAL (
  SELECT coalesce(nullif(language, ''), attributes ->> 'language', '') AS language, expired_at
  FROM subscriptions_app_subscription AS subscription
  WHERE channel_id = %(channel)s AND subscription.platform = wanted.platform
  ORDER BY address_sha256 LIMIT %(sample)s
) AS sample
WHERE expired_at IS NULL
GROUP BY platform, language
"""
