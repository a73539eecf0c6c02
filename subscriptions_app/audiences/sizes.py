"""Counts and samples the subscriptions that a rule selects.

All functions read a limited number of rows, however large the channel is, and fewer rows the more a
rule costs for each. A statement that takes too long is repeated with a twentieth of the rows. All
raise Busy if the account runs too many at once, or if the database is too slow even for few rows.
The statements are raw SQL, because rules are compiled to SQL, and because they need LATERAL, or a
LIMIT inside a count.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Final, NamedTuple
from uuid import UUID

from channels_app.selectors import channel_totals, recent_channel
from pushsvc.common.errors import Busy
from pushsvc.common.platforms import PLATFORM_VALUES, Platform
from pushsvc.common.store import estimates
from pushsvc.common.store.estimates import TooSlow
from subscriptions_app.audiences.narrowing import narrowest
from subscriptions_app.audiences.windows import (
    INDEX_ROWS,
    INDEXED_CANDIDATES,
    are_few_expected,
    newest_part,
)
from subscriptions_app.models import Segment, Subscription
from subscriptions_app.segments.compiler import (
    EVERYBODY,
    Condition,
    compiled,
    compiled_for_index,
    indexed_part,
    row_cost,
)
from subscriptions_app.segments.ledger import LEDGER_CANDIDATES
from subscriptions_app.segments.rules import NOBODY, Rule
from subscriptions_app.tags.selectors import TAGGED_CANDIDATES

EXACT_UP_TO: Final = 10_000
SAMPLE_ROWS: Final = 20_000  # rows of a platform; smaller platforms are read completely
_RECENT_ROWS: Final = 5_000  # rows of a platform that are read for examples and services
# In units of `row_cost`, for one statement. 20 plain conditions still read all SAMPLE_ROWS.
_MOST_WORK: Final = 600_000
_MOST_COST: Final = _MOST_WORK // 500  # of rules that are counted together
_CONSENT_COST: Final = 10
_FEWER: Final = 20
LANGUAGE_ROWS: Final = 2_000  # rows of a platform that are read for languages
_FEW_DEVICES: Final = 200
_ATTRIBUTE_ROWS: Final = 1_000  # rows of a platform that are read for attributes
_MOST_ATTRIBUTES: Final = 100


@dataclass(frozen=True, slots=True)
class Size:
    """A number of active subscriptions."""

    size: int
    estimated: bool


@dataclass(frozen=True, slots=True)
class AttributeSeen:
    """`kinds`: `number`, `string` or both."""

    name: str
    kinds: tuple[str, ...]


def segment_size(segment: Segment) -> Size:
    """The size on all platforms together."""
    sizes = audience_size(segment.channel_id, segment.rule, Platform).values()
    return Size(sum(each.size for each in sizes), any(each.estimated for each in sizes))


def segment_sizes(channel_id: UUID, rules: Sequence[Rule]) -> list[Size | None]:
    """The size of each rule on all platforms together, by one read of the sample.

    The rules share the work of one, so numbers are rougher than those of `audience_size`: 0 with
    `estimated` means few or none. None for rules after those that already cost too much.
    """
    total_costs = accumulate(map(row_cost, rules))
    counted = [
        (rule, cost) for rule, cost in zip(rules, total_costs, strict=True) if cost <= _MOST_COST
    ]
    if not counted:
        return [None] * len(rules)
    conditions = [compiled(rule, prefix=f"rule_{n}") for n, (rule, _) in enumerate(counted)]
    matching = (f"count(*) FILTER (WHERE is_active AND {each.text})" for each in conditions)
    parameters: dict[str, Any] = {"channel": channel_id, "platforms": PLATFORM_VALUES}
    for each in conditions:
        parameters |= each.parameters
    with _share_of(channel_id):
        statement = _SAMPLE_OF_ALL.format(matching=", ".join(matching))
        read = _rows(statement, min(SAMPLE_ROWS, _MOST_WORK // counted[-1][1]), parameters)
    found = _added_up(channel_id, read, len(counted))
    return [*found, *[None] * (len(rules) - len(counted))]


def audience_size(
    channel_id: UUID,
    rule: Rule | None,
    platforms: Iterable[Platform],
    consent: Condition = EVERYBODY,
) -> dict[Platform, Size]:
    """The size on each platform, counting only devices that match `consent`. A rule of None means
    the whole channel, and its size is exact without a condition for `consent`.

    The size of a rule is exact up to EXACT_UP_TO if the platform has fewer than SAMPLE_ROWS
    subscriptions, or if the index on attributes finds few enough. Otherwise it is an estimate: the
    share in a random sample of SAMPLE_ROWS, times the platform's subscribers. The sample is smaller
    if the rule costs much for each row.
    """
    totals = channel_totals(channel_id)
    known = {each: int(getattr(totals, f"{each}_subscribers")) for each in platforms}
    if rule is None and consent is EVERYBODY:
        return {platform: Size(total, estimated=False) for platform, total in known.items()}
    query = _Query(channel_id, rule or {"all": []}, consent)
    with _share_of(channel_id):
        # First, if it reads less than the samples of so many subscribers.
        is_first = max(known.values(), default=0) > SAMPLE_ROWS and query.may_use_index()
        by_index = _by_index(query) if is_first else {}
        sizes = {
            platform: by_index.get(platform) or _sampled(query, platform, total)
            for platform, total in known.items()
        }
        if not is_first and any(each.estimated for each in sizes.values()):
            by_index = _by_index(query) if query.may_use_index() else {}
    return sizes | {each: by_index[each] for each in sizes.keys() & by_index.keys()}


def segment_sample(channel_id: UUID, rule: Rule, limit: int = 10) -> list[Subscription]:
    """Some active subscriptions that match, newest first.

    Searches each platform's newest _RECENT_ROWS, then the index on attributes. So there may be
    matches even if it finds none.
    """
    query = _Query(channel_id, rule)
    with _share_of(channel_id):
        found = query.rows(_RECENT_EXAMPLES, _RECENT_ROWS, limit=limit).found
        if len(found) < limit and query.may_use_index():
            found += query.rows(_INDEXED_EXAMPLES, INDEX_ROWS, limit=limit).found
    ids = {row[0] for row in found}
    return list(Subscription.objects.filter(id__in=ids).order_by("-id")[:limit])


def audience_sample(
    channel_id: UUID,
    rule: Rule | None,
    platforms: Iterable[Platform],
    *,
    limit: int,
    consent: Condition = EVERYBODY,
) -> list[UUID]:
    """Ids of active subscriptions that match, among each platform's newest _RECENT_ROWS, and at
    most `limit` of a platform."""
    query = _Query(channel_id, rule or {"all": []}, consent)
    most = limit if rule is None and consent is EVERYBODY else _RECENT_ROWS
    with _share_of(channel_id):
        read = query.rows(_RECENT_SAMPLE, most, platforms=list(platforms), limit=limit)
    return [row[0] for row in read.found]


def services_seen(
    channel_id: UUID, rule: Rule | None, platform: Platform, consent: Condition = EVERYBODY
) -> list[str]:
    """The push services of the active subscriptions that match, among the platform's newest
    _RECENT_ROWS."""
    query = _Query(channel_id, rule or {"all": []}, consent)
    with _share_of(channel_id):
        read = query.rows(_RECENT_SERVICES, _RECENT_ROWS, platforms=[platform])
    return [name for (name,) in read.found]


def languages_seen(
    channel_id: UUID,
    rule: Rule | None,
    platforms: Iterable[Platform],
    consent: Condition = EVERYBODY,
) -> list[tuple[str, str, int]]:
    """How many devices that match speak which language, by platform and language, in a random
    sample of LANGUAGE_ROWS of each platform, or in all that the index finds if there are few."""
    query = _Query(channel_id, rule or {"all": []}, consent)
    wanted = {"platforms": list(platforms)}
    with _share_of(channel_id):
        found = query.rows(_LANGUAGES, LANGUAGE_ROWS, **wanted).found
        if sum(row[2] for row in found) < _FEW_DEVICES and query.may_use_index():
            found = query.rows(_INDEXED_LANGUAGES, INDEX_ROWS, **wanted).found or found
    return [(platform, language, count) for platform, language, count in found]


def attribute_names(channel_id: UUID) -> list[AttributeSeen]:
    """The attributes of the channel's newest subscriptions, the most frequent first."""
    parameters = {
        "channel": channel_id,
        "platforms": PLATFORM_VALUES,
        "most": _ATTRIBUTE_ROWS,
        "names": _MOST_ATTRIBUTES,
    }
    with _share_of(channel_id):
        found = estimates.rows(_ATTRIBUTES.format(recent=_RECENT), parameters)
    return [AttributeSeen(name, tuple(kinds)) for name, kinds in found]


def _share_of(channel_id: UUID) -> AbstractContextManager[None]:
    return estimates.share_of(recent_channel(channel_id).account_id)


class _Read(NamedTuple):
    """`most`: how many rows the statement could read."""

    found: list[tuple[Any, ...]]
    most: int


class _Query:
    """A channel and a rule, inserted into the statements below.

    Candidates come from the narrowest condition on tags or earlier notifications, or from the index
    on attributes.
    """

    def __init__(self, channel_id: UUID, rule: Rule, consent: Condition = EVERYBODY) -> None:
        self._narrow = narrowest(channel_id, PLATFORM_VALUES, rule)
        indexed_rule = indexed_part(rule)
        self._has_index = indexed_rule is not None
        matches = compiled(rule)
        cost = row_cost(rule) + (_CONSENT_COST if consent is not EVERYBODY else 0)
        self._affordable = _MOST_WORK // cost
        self._indexed = indexed = compiled_for_index(indexed_rule or NOBODY)
        by_attributes = INDEXED_CANDIDATES.format(indexed=indexed.text)
        self._fragments = {
            "rule": f"({matches.text} AND {consent.text})",
            "recent": _RECENT,
            "indexed": _narrow_candidates(self._narrow) or by_attributes,
        }
        self._parameters: dict[str, Any] = {
            "channel": channel_id,
            "platforms": PLATFORM_VALUES,
            **matches.parameters,
            **indexed.parameters,
            **consent.parameters,
        }
        if self._narrow is not None:
            self._parameters["tag"] = self._narrow.get("tag")
            self._parameters["named"] = self._narrow.get("notification")

    def may_use_index(self) -> bool:
        if self._narrow is not None:
            return True
        return self._has_index and are_few_expected(self._indexed, INDEX_ROWS)

    def rows(self, statement: str, most: int, **parameters: Any) -> _Read:
        """Reads at most `most` rows, or fewer if the rule costs much for each or if reading takes
        too long."""
        text = statement.format(**self._fragments)
        return _rows(text, min(most, self._affordable), {**self._parameters, **parameters})


def _narrow_candidates(narrow: Rule | None) -> str:
    if narrow is None:
        return ""
    return TAGGED_CANDIDATES if "tag" in narrow else LEDGER_CANDIDATES


def _rows(statement: str, most: int, parameters: Mapping[str, Any]) -> _Read:
    """Reads at most `most` rows, or fewer if reading takes too long."""
    for rows in (most, most // _FEWER):
        try:
            return _Read(estimates.rows(statement, {**parameters, "most": rows}), rows)
        except TooSlow:
            continue
    raise Busy


def _added_up(channel_id: UUID, read: _Read, rules: int) -> list[Size]:
    """The sizes of the rules, from the rows of _SAMPLE_OF_ALL."""
    totals = channel_totals(channel_id)
    sizes, are_estimated = [0.0] * rules, [False] * rules
    for platform, seen, active, *matching in read.found:
        share = getattr(totals, f"{platform}_subscribers") / max(active, 1)
        for n, count in enumerate(matching):
            is_exact = seen < read.most and count <= EXACT_UP_TO
            sizes[n] += count if is_exact else count * share
            are_estimated[n] |= not is_exact
    return [Size(round(each), rough) for each, rough in zip(sizes, are_estimated, strict=True)]


def _sampled(query: _Query, platform: Platform, total: int) -> Size:
    """The size from a sample. More than EXACT_UP_TO is always an estimate, so that clients need
    only one limit."""
    ((seen, active, matching),), most = query.rows(_SAMPLE, SAMPLE_ROWS, platform=platform)
    if seen < most and matching <= EXACT_UP_TO:
        return Size(matching, estimated=False)
    return Size(round(total * matching / max(active, 1)), estimated=True)


def _by_index(query: _Query) -> dict[Platform, Size]:
    """Exact sizes by platform. Empty if the index finds too many rows."""
    ((candidates, *matching),), most = query.rows(_BY_INDEX, INDEX_ROWS)
    if candidates == most:
        return {}
    sizes = zip((Platform.WEB, Platform.ANDROID, Platform.IOS), matching, strict=True)
    return {each: Size(n, estimated=False) for each, n in sizes if n <= EXACT_UP_TO}


# Digests of addresses are random, so the first ones are a random sample. The sample is the same for
# every rule, so that sizes of similar rules can be compared.
_SAMPLE = """
SELECT count(*), count(*) FILTER (WHERE is_active), count(*) FILTER (WHERE is_active AND {rule})
FROM (
  SELECT subscription.*, expired_at IS NULL AS is_active
  FROM subscriptions_app_subscription AS subscription
  WHERE channel_id = %(channel)s AND platform = %(platform)s
  ORDER BY address_sha256 LIMIT %(most)s
) AS subscription
"""

# The same sample of all platforms, with a column for each rule.
_SAMPLE_OF_ALL = """
SELECT platform, count(*), count(*) FILTER (WHERE is_active), {matching}
FROM (
  SELECT first.*, first.expired_at IS NULL AS is_active
  FROM unnest(%(platforms)s::text[]) AS wanted (platform)
  CROSS JOIN LATERAL (
    SELECT own.* FROM subscriptions_app_subscription AS own
    WHERE channel_id = %(channel)s AND own.platform = wanted.platform
    ORDER BY address_sha256 LIMIT %(most)s
  ) AS first
) AS subscription GROUP BY platform
"""

_BY_INDEX = """
SELECT count(*),
  count(*) FILTER (WHERE matches AND platform = 'web'),
  count(*) FILTER (WHERE matches AND platform = 'android'),
  count(*) FILTER (WHERE matches AND platform = 'ios')
FROM (
  SELECT platform, channel_id = %(channel)s AND {rule} AS matches
  FROM ({indexed}) AS subscription
) AS candidate
"""

_INDEXED_EXAMPLES = """
SELECT id FROM ({indexed}) AS subscription
WHERE channel_id = %(channel)s AND {rule}
ORDER BY id DESC LIMIT %(limit)s
"""

_RECENT = f"""
  SELECT recent.* FROM unnest(%(platforms)s::text[]) AS wanted (platform)
  CROSS JOIN LATERAL ({newest_part("%(most)s")}) AS recent
"""  # noqa: S608 - names of our own

_RECENT_EXAMPLES = """
SELECT id FROM ({recent}) AS subscription WHERE {rule} ORDER BY id DESC LIMIT %(limit)s
"""

_RECENT_SAMPLE = """
SELECT id FROM (
  SELECT id, row_number() OVER (PARTITION BY platform ORDER BY id DESC) AS place
  FROM ({recent}) AS subscription WHERE {rule}
) AS sample WHERE place <= %(limit)s
"""

_RECENT_SERVICES = """
SELECT DISTINCT push_service FROM ({recent}) AS subscription WHERE {rule} ORDER BY push_service
"""

# The language as delivery reads it: the column, or the attribute of the same name.
_SPOKEN = "coalesce(nullif(language, ''), attributes ->> 'language', '')"

_LANGUAGES = f"""
SELECT platform, {_SPOKEN} AS spoken, count(*) FROM (
  SELECT sample.* FROM unnest(%(platforms)s::text[]) AS wanted (platform)
  CROSS JOIN LATERAL (
    SELECT subscription.* FROM subscriptions_app_subscription AS subscription
    WHERE channel_id = %(channel)s AND subscription.platform = wanted.platform
    ORDER BY address_sha256 LIMIT %(most)s
  ) AS sample
) AS subscription
WHERE expired_at IS NULL AND {{rule}} GROUP BY platform, spoken
"""  # noqa: S608 - names of our own

_INDEXED_LANGUAGES = f"""
SELECT platform, {_SPOKEN} AS spoken, count(*) FROM ({{indexed}}) AS subscription
WHERE channel_id = %(channel)s AND platform = ANY (%(platforms)s) AND {{rule}}
GROUP BY platform, spoken
"""  # noqa: S608 - names of our own

_ATTRIBUTES = """
SELECT name, array_agg(DISTINCT jsonb_typeof(value) ORDER BY jsonb_typeof(value))
FROM ({recent}) AS subscription, jsonb_each(subscription.attributes) AS seen (name, value)
GROUP BY name ORDER BY count(*) DESC, name LIMIT %(names)s
"""
