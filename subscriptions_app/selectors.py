"""Reads of subscriptions and segments."""

import json
import re
from collections.abc import Collection, Mapping, Set
from datetime import datetime
from functools import cache
from types import MappingProxyType
from typing import Any, Final, NamedTuple
from uuid import UUID

from django.db.models import QuerySet

from channels_app.models import VapidKey
from pushsvc.common.errors import NotFound
from pushsvc.common.ids import parse_uuid
from pushsvc.common.platforms import PLATFORM_VALUES, Platform
from pushsvc.common.store import sql
from subscriptions_app.errors import NotificationNotFound
from subscriptions_app.models import Segment, Subscription, SubscriptionQuerySet
from subscriptions_app.segments.compiler import (
    Condition,
)
from subscriptions_app.segments.ledger import FOREIGN_NOTIFICATIONS
from subscriptions_app.segments.rules import Rule, named_notifications

PROVING_ROWS: Final = 1_000
INDEX_ROWS: Final = 20_000  # of all channels, that may be read through the index on attributes


class DeliveryTarget(NamedTuple):
    """A device that a message is sent to. A later expiry compares `registered_at`: if the device
    has registered again since, the row does not expire. `is_proven`: an accepted message changes
    nothing in the row.

    The last fields are those of ASKABLE. They are empty unless they are known and were requested.
    """

    id: UUID
    active: bool
    address: str
    p256dh: str
    auth: str
    vapid_key_id: UUID | None
    registered_at: datetime
    is_proven: bool
    language: str = ""
    timezone: str = ""
    external_id: str = ""
    attributes: Mapping[str, Any] = MappingProxyType({})


# The language is the column, or the attribute of the same name.
ASKABLE: Final[Mapping[str, str]] = {
    "language": "coalesce(nullif(language, ''), attributes ->> 'language', '')",
    "timezone": "timezone",
    "external_id": """coalesce((SELECT external_id FROM subscriptions_app_person
                                WHERE id = subscription.person_id), '')""",
    "attributes": "attributes",
}
_LAST_ID: Final = UUID(int=2**128 - 1)


def delivery_targets(
    subscription_ids: Collection[UUID], *, asked: Collection[str] = ()
) -> list[DeliveryTarget]:
    """Reads the devices, in any order. Ids that no longer exist are missing. `asked`: the names of
    ASKABLE to read."""
    ids = sql.array(each.hex for each in subscription_ids)
    rows = sql.rows(_targets_statement(frozenset(asked)), {"ids": ids})
    if "attributes" not in asked:
        return [DeliveryTarget(*row) for row in rows]
    # All at once, which takes half as long as one by one.
    attributes = json.loads(f"[{','.join([row[-1] for row in rows])}]")
    return [DeliveryTarget(*(*row[:-1], own)) for row, own in zip(rows, attributes, strict=True)]


@cache
def _targets_statement(asked: Set[str]) -> str:
    """The statement with the columns of DeliveryTarget, up to the last requested one. Other columns
    of ASKABLE are empty texts."""
    most = max((place for place, name in enumerate(ASKABLE, start=1) if name in asked), default=0)
    columns = [
        f"{column} AS asked_{name}" if name in asked else "''"
        for name, column in list(ASKABLE.items())[:most]
    ]
    return _TARGETS.format(asked="".join(f", {each}" for each in columns))


def unchanged_since(moment: datetime) -> SubscriptionQuerySet:
    """Active subscriptions that have not registered after the moment."""
    return Subscription.objects.filter(expired_at__isnull=True, registered_at__lte=moment)


def keys_proven_by_others(channel_id: UUID, subscription_ids: Collection[UUID]) -> Set[UUID]:
    """Those of these browsers that never took a message, while one of the channel's newest
    subscriptions has taken one with the same VAPID key at the same push service."""
    browsers = Subscription.objects.active().filter(channel_id=channel_id, platform=Platform.WEB)
    newest = browsers.order_by("-channel_id", "-platform", "-id")
    by_key = newest.values_list("vapid_key_id", "push_service", "is_proven")[:PROVING_ROWS]
    proven = {(key_id, service) for key_id, service, is_proven in by_key if is_proven}
    return {
        each.pk
        for each in browsers.filter(pk__in=subscription_ids, is_proven=False)
        if (each.vapid_key_id, each.push_service) in proven
    }


def rule_part(segment_id: str, channel_id: str) -> str:
    """SQL that reads a segment's rule; NULL if the channel has no such segment. The arguments are
    names of columns."""
    return f"""(
        SELECT rule FROM {Segment._meta.db_table} AS segment
        WHERE segment.id = {segment_id} AND segment.channel_id = {channel_id}
    )"""  # noqa: S608 - names of our own


def window_part(audience: Condition, columns: str = "") -> str:
    """SQL that reads a window of a channel's active subscriptions in the order of their ids: id,
    push_service, further `columns`, is_recipient. Parameters: those of `audience`, `channel`,
    `platform`, `cursor` (the last id of the previous window), `only` (an id, or NULL for all) and
    `window` (how many)."""
    return f"""
        SELECT id, push_service, {columns}{audience.text} AS is_recipient
        FROM {_active_part("%(channel)s", "%(platform)s", first="%(cursor)s")}
          AND id > %(cursor)s AND (%(only)s::uuid IS NULL OR id = %(only)s)
        ORDER BY channel_id, platform, id LIMIT %(window)s
    """  # noqa: S608 - names of our own


def first_part(plans: str) -> str:
    """SQL that reads, for a row of `plans` (channel_id, platform), the first active subscriptions:
    id, push_service, person_id, choices. It reads one more than the parameter `most`."""
    return f"""
        SELECT id, push_service, person_id, choices
        FROM {_active_part(f"{plans}.channel_id", f"{plans}.platform")}
        ORDER BY channel_id, platform, id LIMIT %(most)s + 1
    """  # noqa: S608 - names of our own


def newest_part(most: str) -> str:
    """SQL that reads, for a row of `wanted` (platform), the `most` newest active subscriptions.
    Parameters: `channel`, and those of `most`."""
    return f"""
        SELECT * FROM {_active_part("%(channel)s", "wanted.platform")}
        ORDER BY channel_id DESC, platform DESC, id DESC LIMIT {most}
    """  # noqa: S608 - names of our own


def _active_part(channel: str, platform: str, first: str = f"'{UUID(int=0)}'") -> str:
    """The table, and the condition for active subscriptions from an id on. More conditions and an
    order by all three columns may follow.

    Columns are compared as rows, so that only the index of active subscriptions has the order. If
    each column were compared separately, PostgreSQL might read the primary key, and all of it if
    the platform has few subscribers or if all newer ones belong to other channels.
    """
    return f"""{Subscription._meta.db_table} AS subscription
        WHERE (channel_id, platform, id) >= ({channel}, {platform}, {first}::uuid)
          AND (channel_id, platform, id) <= ({channel}, {platform}, '{_LAST_ID}'::uuid)
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


def exists_part(id_column: str) -> str:
    """The SQL condition that the subscription is stored, active or not."""
    table = Subscription._meta.db_table
    return f"EXISTS (SELECT FROM {table} WHERE id = {id_column})"


def vapid_key_id(channel_id: UUID, public_key: str) -> UUID | None:
    """The id of the channel's key pair with this public key, current or retired; None if there is
    none."""
    keys = VapidKey.objects.filter(channel_id=channel_id, public_key=public_key)
    return keys.values_list("id", flat=True).first()


def subscription_active(*, channel_id: UUID, subscription_id: UUID) -> Subscription:
    """Returns the subscription. Raises NotFound, also if it has expired or belongs to another
    channel."""
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


def segment_get(*, channel_id: UUID, segment_id: UUID) -> Segment:
    """Returns the segment. Raises NotFound, also if it belongs to another channel."""
    return _one(Segment.objects.filter(id=segment_id, channel_id=channel_id))


def segment_find(*, channel_id: UUID, segment_id: UUID | None) -> Segment | None:
    """The segment, or None if there is no id or the segment no longer exists."""
    if segment_id is None:
        return None
    return Segment.objects.filter(channel_id=channel_id, id=segment_id).first()


def segments_by_name(*, channel_id: UUID, limit: int) -> list[Segment]:
    return list(Segment.objects.filter(channel_id=channel_id).order_by("name")[:limit])


def segment_locked(*, channel_id: UUID, segment_id: UUID, to_edit: bool = False) -> Segment:
    """Like `segment_get`, and locks the segment against edits and deletion until the transaction
    ends. With `to_edit`, other transactions may hold it (`segment_hold`)."""
    found = Segment.objects.filter(id=segment_id, channel_id=channel_id)
    return _one(found.select_for_update(no_key=to_edit))


def segment_hold(*, channel_id: UUID, segment_id: UUID) -> bool:
    """Whether the segment exists. If so, locks it against deletion, but not against edits, until
    the transaction ends."""
    return bool(sql.rows(_HOLD, {"channel": channel_id, "segment": segment_id}))


def check_notifications(channel_id: UUID, rule: Rule, attr: str = "rule") -> None:
    """Raises NotificationNotFound if the rule names a notification that is not the channel's.
    `attr` is the path to the rule."""
    named = named_notifications(rule)
    if not named:
        return
    parameters = {"channel": channel_id, "ids": list(named)}
    for (foreign,) in sql.rows(FOREIGN_NOTIFICATIONS, parameters):
        raise NotificationNotFound(attr, foreign)


def segment_page(*, channel_id: UUID, limit: int, offset: int) -> list[Segment]:
    """A page of the channel's segments, newest first. Empty if the offset is past the end."""
    segments = Segment.objects.filter(channel_id=channel_id)
    return list(segments.order_by("-created_at", "-id")[offset : offset + limit])


def _active_in(channel_id: UUID) -> QuerySet[Subscription]:
    return Subscription.objects.active().filter(channel_id=channel_id)


def _one(segments: QuerySet[Segment]) -> Segment:
    found = segments.first()
    if found is None:
        raise NotFound("There is no such segment.")
    return found


# Raw, because the ORM needs more time to compile a statement with a thousand ids than PostgreSQL to
# run it.
_TARGETS: Final = """
SELECT id, expired_at IS NULL, address, p256dh, auth, vapid_key_id, registered_at,
  is_proven AND not_found_at IS NULL{asked}
FROM subscriptions_app_subscription AS subscription
WHERE id = ANY(%(ids)s::uuid[])
"""

# Raw, because the ORM has no FOR KEY SHARE.
_HOLD = """
SELECT FROM subscriptions_app_segment
WHERE id = %(segment)s AND channel_id = %(channel)s
FOR KEY SHARE
"""

# Without a condition on the channel, so that PostgreSQL uses the index on attributes.
INDEXED_CANDIDATES = """
  SELECT id, channel_id, platform, push_service, attributes, created_at, registered_at,
    person_id, timezone, language, choices
  FROM subscriptions_app_subscription AS subscription
  WHERE expired_at IS NULL AND {indexed}
  LIMIT %(most)s
"""
