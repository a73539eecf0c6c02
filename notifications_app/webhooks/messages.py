"""Collects the facts of Feed into messages.

Facts of one channel and kind become one message of at most MOST_FACTS. The facts are deleted in the
transaction that writes their message, so each fact is in exactly one message, whenever a process or
the database is killed. Two workers at once take different facts. A fact of which no message can be
made is set aside, so that it stops no other.

To add a frequent kind, add its name of the list and its statement to `_KINDS`.
"""

import json
from collections import deque
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple
from uuid import UUID

import structlog
from django.db import DataError, InterfaceError, OperationalError

from channels_app.feeds import ADD_MESSAGE, MAX_BODY, EventKind, encoded, making_allowed
from pushsvc.common.ids import uuid7
from pushsvc.common.store import sql

logger = structlog.stdlib.get_logger(__name__)

MOST_FACTS: Final = 500
_MOST_GROUPS: Final = 1_000
_MOST_REASONS: Final = 5
_ROOM: Final = MAX_BODY - 512  # for the rest of the message

_Group = tuple[UUID, str]  # a channel and a kind
_START: Final = (UUID(int=0), "")


class _Kind(NamedTuple):
    """`name`: of the list in `data`. `statement`: reads what the facts are about, given their rows
    of Feed; each row is the fact's id and its JSON."""

    name: str
    statement: str


class Collector:
    """Makes messages of the facts that are stored. Each channel and kind has its turn, even if the
    time never suffices for all."""

    def __init__(self) -> None:
        self._after = _START

    def make_messages(self, may_go_on: Callable[[], bool]) -> int:
        """Makes messages until nothing is left or `may_go_on()` is false, one of each channel and
        kind in turn. Goes on after the one that was last. Returns how many."""
        total = made = 0
        is_whole_round = self._after == _START
        while may_go_on():
            groups = deque(_groups(self._after))
            is_end = len(groups) < _MOST_GROUPS
            while groups and may_go_on():
                self._after = groups.popleft()
                made += _make(*self._after)
            if groups or not is_end:
                continue
            total, self._after = total + made, _START
            if is_whole_round and not made:
                break
            made, is_whole_round = 0, True
        return total + made


def make_messages(may_go_on: Callable[[], bool]) -> int:
    """As a new Collector does."""
    return Collector().make_messages(may_go_on)


def _groups(after: _Group) -> list[_Group]:
    channel_id, kind = after
    found = sql.rows(_GROUPS, {"channel": channel_id, "kind": kind, "most": _MOST_GROUPS})
    return [(channel_id, kind) for channel_id, kind in found]


def _make(channel_id: UUID, kind: str, most: int = MOST_FACTS) -> bool:
    """Makes one message, or sets facts aside. Returns False if other workers have taken all facts,
    while a person of the channel is being erased, and after an unexpected error."""
    try:
        return _made(channel_id, kind, most)
    except (OperationalError, InterfaceError):
        raise
    except (DataError, LookupError, TypeError, ValueError) as error:
        # A kind that this version does not have is set aside as a whole. Otherwise the fact that
        # cannot be read is found by taking ever fewer.
        if most == 1 or kind not in _KINDS:
            return _set_aside(channel_id, kind, most, error)
        return _make(channel_id, kind, most // 2)
    except Exception:
        logger.exception("webhook.facts_failed", channel=channel_id, kind=kind)
        return False


def _made(channel_id: UUID, kind: str, most: int) -> bool:
    with sql.brief_transaction():
        if not making_allowed(channel_id):
            return False
        taken = sql.rows(_TAKE, {"channel": channel_id, "kind": kind, "most": most})
        if not taken:
            return False
        (_, at), ids = taken[0], [row[0] for row in taken]
        shape = _KINDS[EventKind(kind)]
        facts = dict(sql.rows(shape.statement, {"ids": ids, "reasons": _MOST_REASONS}))
        fitting = _fitting([(id_, facts.get(id_)) for id_ in ids])
        sql.execute(_DELETE, {"ids": [id_ for id_, _ in fitting]})
        told = [fact for _, fact in fitting if fact is not None]
        if told:
            _write(channel_id, kind, {shape.name: told}, at)
    return True


def _set_aside(channel_id: UUID, kind: str, most: int, error: Exception) -> bool:
    """Returns whether there were facts."""
    with sql.brief_transaction():
        taken = sql.rows(_TAKE, {"channel": channel_id, "kind": kind, "most": most})
        sql.execute(_SET_ASIDE, {"ids": [row[0] for row in taken]})
    logger.error(
        "webhook.facts_unreadable",
        channel=channel_id,
        kind=kind,
        facts=len(taken),
        error=type(error).__name__,
    )
    return bool(taken)


def _write(channel_id: UUID, kind: str, data: dict[str, Any], at: datetime) -> None:
    body = encoded(kind, channel_id, data, at=at)
    sql.rows(ADD_MESSAGE, {"id": uuid7(), "channel": channel_id, "kind": kind, "body": body})


def _fitting(facts: Sequence[tuple[int, Any]]) -> Sequence[tuple[int, Any]]:
    """The first facts that fit into one message. None for what was deleted meanwhile."""
    size = 0
    for place, (_, fact) in enumerate(facts):
        size += len(json.dumps(fact, ensure_ascii=False).encode()) + 1
        if size > _ROOM and place:
            return facts[:place]
    return facts


# Raw, because the ORM has no recursion, which finds each pair with one index lookup, however many
# facts there are.
_GROUPS: Final = """
WITH RECURSIVE pairs AS (
  (SELECT channel_id, kind FROM channels_app_feed
   WHERE (channel_id, kind) > (%(channel)s, %(kind)s) AND unreadable_at IS NULL
   ORDER BY channel_id, kind LIMIT 1)
  UNION ALL
  SELECT after.channel_id, after.kind FROM pairs CROSS JOIN LATERAL (
    SELECT channel_id, kind FROM channels_app_feed
    WHERE (channel_id, kind) > (pairs.channel_id, pairs.kind) AND unreadable_at IS NULL
    ORDER BY channel_id, kind LIMIT 1) AS after
)
SELECT channel_id, kind FROM pairs LIMIT %(most)s
"""

_TAKE: Final = """
SELECT id, statement_timestamp() FROM channels_app_feed
WHERE channel_id = %(channel)s AND kind = %(kind)s AND unreadable_at IS NULL
ORDER BY id LIMIT %(most)s
FOR UPDATE SKIP LOCKED
"""

_DELETE: Final = "DELETE FROM channels_app_feed WHERE id = ANY(%(ids)s::bigint[])"

_SET_ASIDE: Final = """
UPDATE channels_app_feed SET unreadable_at = statement_timestamp()
WHERE id = ANY(%(ids)s::bigint[])
"""

# A time as everywhere in the API.
_MOMENT: Final = """to_char({0} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')"""

# The counts are those of this moment: a click can come before the message is made.
_NOTIFICATIONS: Final = """
SELECT fact.id, json_strip_nulls(json_build_object(
  'notification_id', notification.id,
  'status', notification.status,
  'recipient_count', notification.recipient_count,
  'delivered_count', notification.delivered_count,
  'bounced_count', notification.bounced_count,
  'clicked_count', notification.clicked_count,
  'external_id', target.external_id,
  'reasons', reasons.list
))
FROM channels_app_feed fact
JOIN notifications_app_notification notification ON notification.id = fact.subject
LEFT JOIN LATERAL (
  SELECT min(external_id) AS external_id FROM (
    SELECT external_id FROM notifications_app_target
    WHERE notification_id = notification.id ORDER BY position LIMIT 2) AS first
  HAVING count(*) = 1) AS target ON true
CROSS JOIN LATERAL (
  SELECT coalesce(json_agg(json_build_object('code', code, 'count', number)
    ORDER BY number DESC, code), '[]') AS list
  FROM (SELECT code, sum(count) AS number FROM notifications_app_outcomeminute
        WHERE notification_id = notification.id AND code <> ''
        GROUP BY code ORDER BY sum(count) DESC, code LIMIT %(reasons)s) AS most) AS reasons
WHERE fact.id = ANY(%(ids)s::bigint[])
"""

_EVENTS: Final = f"""
SELECT fact.id, json_build_object(
  'notification_id', fact.subject,
  'subscription_id', fact.second,
  'external_id', person.external_id,
  'action', nullif(fact.code, ''),
  'at', {_MOMENT.format("fact.at")})
FROM channels_app_feed fact
LEFT JOIN subscriptions_app_subscription subscription ON subscription.id = fact.second
LEFT JOIN subscriptions_app_person person ON person.id = subscription.person_id
WHERE fact.id = ANY(%(ids)s::bigint[])
"""  # noqa: S608 - constants

_SUBSCRIPTIONS: Final = f"""
SELECT fact.id, json_build_object(
  'subscription_id', fact.subject,
  'external_id', person.external_id,
  'platform', fact.platform,
  'code', nullif(fact.code, ''),
  'at', {_MOMENT.format("fact.at")})
FROM channels_app_feed fact
LEFT JOIN subscriptions_app_person person ON person.id = fact.second
WHERE fact.id = ANY(%(ids)s::bigint[])
"""  # noqa: S608 - constants

_IMPORTS: Final = f"""
SELECT id, json_build_object(
  'platform', platform,
  'created', split_part(code, ' ', 1)::int,
  'expired', split_part(code, ' ', 2)::int,
  'at', {_MOMENT.format("at")})
FROM channels_app_feed WHERE id = ANY(%(ids)s::bigint[])
"""  # noqa: S608 - constants

_KINDS: Final = {
    EventKind.FINISHED: _Kind("notifications", _NOTIFICATIONS),
    EventKind.CANCELLED: _Kind("notifications", _NOTIFICATIONS),
    EventKind.CLICKED: _Kind("events", _EVENTS),
    EventKind.DISMISSED: _Kind("events", _EVENTS),
    EventKind.CREATED: _Kind("subscriptions", _SUBSCRIPTIONS),
    EventKind.EXPIRED: _Kind("subscriptions", _SUBSCRIPTIONS),
    EventKind.IMPORTED: _Kind("imports", _IMPORTS),
}
