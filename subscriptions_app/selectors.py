"""Reads of subscriptions and segments.

The functions that count or show the subscriptions of a rule read a limited number of rows, however
large the channel is. Their statements are raw SQL, because rules are compiled to SQL, and because
they need LATERAL, or a LIMIT inside a count.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NamedTuple
from uuid import UUID

from django.db.models import Q, QuerySet

from channels_app.models import VapidKey
from channels_app.selectors import channel_totals
from pushsvc.common.errors import NotFound
from pushsvc.common.ids import parse_uuid
from pushsvc.common.platforms import PLATFORM_VALUES, Platform
from pushsvc.common.store import sql
from subscriptions_app.models import Segment, Subscription
from subscriptions_app.segments.compiler import Condition, compiled, indexed_part
from subscriptions_app.segments.rules import NOBODY, Rule

EXACT_UP_TO: Final = 10_000
SAMPLE_ROWS: Final = 20_000  # of a platform; smaller ones are read completely
_CANDIDATES: Final = 20_000  # rows of all channels that may be read through the index on attributes
_RECENT_ROWS: Final = 5_000  # rows of a platform that are read for examples
_NAMED_ROWS: Final = 1_000  # rows of a platform that are read for attributes
_MOST_NAMES: Final = 100


class DeliveryTarget(NamedTuple):
    """Where a message goes. A later expiry compares `registered_at`: if the device has registered
    again since, the row does not expire. `is_proven`: a push service took a message for it before.
    """

    id: UUID
    active: bool
    address: str
    p256dh: str
    auth: str
    vapid_key_id: UUID | None
    registered_at: datetime
    is_proven: bool


def delivery_targets(subscription_ids: Sequence[UUID]) -> list[DeliveryTarget]:
    """In no particular order. Ids that no longer exist are left out."""
    found = Subscription.objects.filter(id__in=subscription_ids).annotate(
        active=Q(expired_at__isnull=True)
    )
    return [DeliveryTarget(*row) for row in found.values_list(*DeliveryTarget._fields)]


def unchanged_since(moment: datetime) -> QuerySet[Subscription]:
    """Those that are active and have not registered after the moment."""
    return Subscription.objects.filter(expired_at__isnull=True, registered_at__lte=moment)


def rule_part(segment_id: str, channel_id: str) -> str:
    """The part of a larger statement that reads a segment's rule: NULL if the channel has no such
    segment. The arguments are names of columns."""
    return f"""(
        SELECT rule FROM {Segment._meta.db_table} AS segment
        WHERE segment.id = {segment_id} AND segment.channel_id = {channel_id}
    )"""  # noqa: S608 - names of our own


def window_part(audience: Condition) -> str:
    """The part of a larger statement that reads a window of a channel's active subscriptions in the
    order of their ids: id, push_service, is_recipient. Parameters: those of `audience`, `channel`,
    `platform`, `cursor` (the last id of the window before), `only` (an id, or NULL for all) and
    `window` (how many)."""
    return f"""
        SELECT id, push_service, {audience.text} AS is_recipient
        FROM {Subscription._meta.db_table} AS subscription
        WHERE channel_id = %(channel)s AND platform = %(platform)s AND expired_at IS NULL
          AND id > %(cursor)s AND (%(only)s::uuid IS NULL OR id = %(only)s)
        ORDER BY id LIMIT %(window)s
    """  # noqa: S608 - names of our own


def exists_part(id_column: str) -> str:
    """The condition, for a larger statement, that the subscription is stored, active or not."""
    table = Subscription._meta.db_table
    return f"EXISTS (SELECT FROM {table} WHERE id = {id_column})"


def vapid_key_id(channel_id: UUID, public_key: str) -> UUID | None:
    """The channel's key pair with this public key, current or retired."""
    keys = VapidKey.objects.filter(channel_id=channel_id, public_key=public_key)
    return keys.values_list("id", flat=True).first()


def subscription_active(*, channel_id: UUID, subscription_id: UUID) -> Subscription:
    """Raises NotFound, also if the subscription has expired or belongs to another channel."""
    found = _active_in(channel_id).filter(id=subscription_id).first()
    if found is None:
        raise NotFound("The channel has no such active subscription.")
    return found


def subscription_known_as(*, channel_id: UUID, text: str) -> Subscription | None:
    """The active subscription with this id, or whose address has this SHA-256 (hex)."""
    active = _active_in(channel_id)
    word = text.strip().lower()
    if re.fullmatch(r"[0-9a-f]{64}", word, re.ASCII):
        digest = bytes.fromhex(word)
        return active.filter(platform__in=PLATFORM_VALUES, address_sha256=digest).first()
    try:
        return active.filter(id=parse_uuid(word)).first()
    except ValueError:
        return None


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


def segment_get(*, channel_id: UUID, segment_id: UUID) -> Segment:
    """Raises NotFound, also if it belongs to another channel."""
    return _one(Segment.objects.filter(id=segment_id, channel_id=channel_id))


def segment_find(*, channel_id: UUID, segment_id: UUID | None) -> Segment | None:
    """None for the whole channel, and if the segment no longer exists."""
    if segment_id is None:
        return None
    return Segment.objects.filter(channel_id=channel_id, id=segment_id).first()


def segments_by_name(*, channel_id: UUID, limit: int) -> list[Segment]:
    return list(Segment.objects.filter(channel_id=channel_id).order_by("name")[:limit])


def segment_locked(*, channel_id: UUID, segment_id: UUID, to_edit: bool = False) -> Segment:
    """Like `segment_get`, and locks the segment. Until the transaction ends, nobody else edits or
    deletes it. Others may hold it (`segment_hold`) if the lock is only `to_edit`."""
    found = Segment.objects.filter(id=segment_id, channel_id=channel_id)
    return _one(found.select_for_update(no_key=to_edit))


def segment_hold(*, channel_id: UUID, segment_id: UUID) -> bool:
    """Whether the segment exists. Then nobody deletes it until the transaction ends. It may still
    be edited."""
    return bool(sql.rows(_HOLD, {"channel": channel_id, "segment": segment_id}))


def segment_page(*, channel_id: UUID, limit: int, offset: int) -> list[Segment]:
    """Newest first. Empty if the offset is past the end."""
    segments = Segment.objects.filter(channel_id=channel_id)
    return list(segments.order_by("-created_at", "-id")[offset : offset + limit])


def segment_size(segment: Segment) -> Size:
    """The size on all platforms together."""
    sizes = audience_size(segment.channel_id, segment.rule, Platform).values()
    return Size(sum(each.size for each in sizes), any(each.estimated for each in sizes))


def audience_size(
    channel_id: UUID, rule: Rule | None, platforms: Iterable[Platform]
) -> dict[Platform, Size]:
    """The size on each platform. A rule of None is the whole channel, and its size is exact.

    The size of a rule is exact up to EXACT_UP_TO if the platform has fewer than SAMPLE_ROWS
    subscriptions, or if the index on attributes finds few enough. Otherwise it is an estimate: the
    share of a random sample of SAMPLE_ROWS, times the platform's subscribers.
    """
    totals = channel_totals(channel_id)
    known = {each: int(getattr(totals, f"{each}_subscribers")) for each in platforms}
    if rule is None:
        return {platform: Size(total, estimated=False) for platform, total in known.items()}
    query = _Query(channel_id, rule)
    sizes = {platform: _sampled(query, platform, total) for platform, total in known.items()}
    if query.has_index and any(size.estimated for size in sizes.values()):
        by_index = _by_index(query)
        sizes |= {each: by_index[each] for each in sizes.keys() & by_index.keys()}
    return sizes


def segment_sample(channel_id: UUID, rule: Rule, limit: int = 10) -> list[Subscription]:
    """Active subscriptions that match, newest first.

    Searches each platform's newest _RECENT_ROWS, then the index on attributes. So there may be
    others, even if it finds none.
    """
    query = _Query(channel_id, rule)
    found = query.rows(_RECENT_EXAMPLES, looked_at=_RECENT_ROWS, limit=limit)
    if len(found) < limit and query.has_index:
        found += query.rows(_INDEXED_EXAMPLES, most=_CANDIDATES, limit=limit)
    ids = {row[0] for row in found}
    return list(Subscription.objects.filter(id__in=ids).order_by("-id")[:limit])


def attribute_names(channel_id: UUID) -> list[AttributeSeen]:
    """The attributes of the channel's newest subscriptions, the most frequent first."""
    parameters = {
        "channel": channel_id,
        "platforms": PLATFORM_VALUES,
        "looked_at": _NAMED_ROWS,
        "names": _MOST_NAMES,
    }
    found = sql.rows(_NAMES.format(recent=_RECENT), parameters)
    return [AttributeSeen(name, tuple(kinds)) for name, kinds in found]


class _Query:
    """A channel and a rule, inserted into the statements below."""

    def __init__(self, channel_id: UUID, rule: Rule) -> None:
        indexed_rule = indexed_part(rule)
        self.has_index = indexed_rule is not None
        matches = compiled(rule)
        indexed = compiled(indexed_rule or NOBODY, prefix="indexed")
        self._fragments = {
            "rule": matches.text,
            "recent": _RECENT,
            "indexed": _INDEXED.format(indexed=indexed.text),
        }
        self._parameters: dict[str, Any] = {
            "channel": channel_id,
            "platforms": PLATFORM_VALUES,
            **matches.parameters,
            **indexed.parameters,
        }

    def rows(self, statement: str, **parameters: Any) -> list[tuple[Any, ...]]:
        return sql.rows(statement.format(**self._fragments), self._parameters | parameters)


def _sampled(query: _Query, platform: Platform, total: int) -> Size:
    """More than EXACT_UP_TO is always an estimate, so that clients need to know only one limit."""
    ((seen, active, matching),) = query.rows(_SAMPLE, platform=platform, sample=SAMPLE_ROWS)
    if seen < SAMPLE_ROWS and matching <= EXACT_UP_TO:
        return Size(matching, estimated=False)
    return Size(round(total * matching / max(active, 1)), estimated=True)


def _by_index(query: _Query) -> dict[Platform, Size]:
    """Exact sizes by platform. Empty if the index finds too many rows."""
    ((candidates, *matching),) = query.rows(_BY_INDEX, most=_CANDIDATES)
    if candidates == _CANDIDATES:
        return {}
    sizes = zip((Platform.WEB, Platform.ANDROID, Platform.IOS), matching, strict=True)
    return {each: Size(n, estimated=False) for each, n in sizes if n <= EXACT_UP_TO}


def _active_in(channel_id: UUID) -> QuerySet[Subscription]:
    return Subscription.objects.active().filter(channel_id=channel_id)


def _one(segments: QuerySet[Segment]) -> Segment:
    found = segments.first()
    if found is None:
        raise NotFound("There is no such segment.")
    return found


# Raw, because the ORM has no FOR KEY SHARE.
_HOLD = """
SELECT FROM subscriptions_app_segment
WHERE id = %(segment)s AND channel_id = %(channel)s
FOR KEY SHARE
"""

# Digests of addresses are random, so the first of them are a random sample. It is the same for
# every rule, so that sizes of similar rules can be compared.
_SAMPLE = """
SELECT count(*), count(*) FILTER (WHERE is_active), count(*) FILTER (WHERE is_active AND {rule})
FROM (
  SELECT subscription.*, expired_at IS NULL AS is_active
  FROM subscriptions_app_subscription AS subscription
  WHERE channel_id = %(channel)s AND platform = %(platform)s
  ORDER BY address_sha256 LIMIT %(sample)s
) AS subscription
"""

# The condition on the channel is outside of it, so that PostgreSQL uses the index on attributes.
_INDEXED = """
  SELECT id, channel_id, platform, attributes, created_at, registered_at
  FROM subscriptions_app_subscription AS subscription
  WHERE expired_at IS NULL AND {indexed}
  LIMIT %(most)s
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

_RECENT = """
  SELECT recent.* FROM unnest(%(platforms)s::text[]) AS wanted (platform)
  CROSS JOIN LATERAL (
    SELECT * FROM subscriptions_app_subscription AS subscription
    WHERE channel_id = %(channel)s AND platform = wanted.platform AND expired_at IS NULL
    ORDER BY id DESC LIMIT %(looked_at)s
  ) AS recent
"""

_RECENT_EXAMPLES = """
SELECT id FROM ({recent}) AS subscription WHERE {rule} ORDER BY id DESC LIMIT %(limit)s
"""

_NAMES = """
SELECT name, array_agg(DISTINCT jsonb_typeof(value) ORDER BY jsonb_typeof(value))
FROM ({recent}) AS subscription, jsonb_each(subscription.attributes) AS seen (name, value)
GROUP BY name ORDER BY count(*) DESC, name LIMIT %(names)s
"""
