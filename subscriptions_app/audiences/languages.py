"""The languages of an audience's devices, from a sample."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Final
from uuid import UUID

from channels_app.selectors import channel_totals
from pushsvc.common.languages import canonical_language
from pushsvc.common.platforms import Platform
from subscriptions_app.audiences.sizes import languages_seen

_MOST_LANGUAGES: Final = 100  # the most frequent; the rest counts as unknown


def language_shares(channel_id: UUID) -> Mapping[str, float]:
    """As `shares_of`, of the channel's active devices."""
    totals = channel_totals(channel_id)
    sizes = {each: int(getattr(totals, f"{each}_subscribers")) for each in Platform}
    return shares_of(languages_seen(channel_id, None, Platform), sizes)


def shares_of(
    seen: Iterable[tuple[str, str, int]], sizes: Mapping[Platform, int]
) -> Mapping[str, float]:
    """The share of each language, the largest first. "" stands for devices with an unknown
    language. Empty without devices.

    `seen`: platforms, languages and counts of a sample. Each platform's sample is weighted by
    `sizes`, the number of its devices.
    """
    rows = list(seen)
    sampled: defaultdict[str, int] = defaultdict(int)
    for platform, _, count in rows:
        sampled[platform] += count
    weights: defaultdict[str, float] = defaultdict(float)
    for platform, language, count in rows:
        weight = sizes[Platform(platform)] * count / sampled[platform]
        weights[canonical_language(language) or language] += weight
    return _shares(weights)


def _shares(weights: Mapping[str, float]) -> dict[str, float]:
    total = sum(weights.values())
    known = sorted((name for name in weights if name), key=lambda each: -weights[each])
    shares = {name: weights[name] / total for name in known[:_MOST_LANGUAGES] if total}
    return shares | ({"": max(1 - sum(shares.values()), 0.0)} if total else {})
