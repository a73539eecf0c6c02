"""Facts for webhooks and automations: which kinds of events there are, and how a fact is written.

A fact is written in the transaction that makes it true, and only if a webhook of the channel wants
its kind. If an automation of the channel follows it, the device is noted for that as well. Rare
facts become a message at once (`message_add`). Frequent ones are rows of Feed, which a worker
collects into messages (notifications_app/webhooks/messages.py). A fact leaves Feed in the
transaction that writes its message, so each fact is in exactly one message.

A new kind is an entry in `EventKind`, with `message_add`, or with `feed_call` or `feed_add` and an
entry in the table of notifications_app/webhooks/messages.py.
"""

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any, Final, NamedTuple
from uuid import UUID

from pushsvc.common.ids import uuid7
from pushsvc.common.store import sql
from pushsvc.common.timestamps import format_timestamp

MAX_BODY: Final = 64 * 1024  # bytes of a message
PREFIX: Final = "msg_"


class EventKind(StrEnum):
    FINISHED = "notifications.finished"
    CANCELLED = "notifications.cancelled"
    DECIDED = "notification.decided"
    CLICKED = "notifications.clicked"
    DISMISSED = "notifications.dismissed"
    CREATED = "subscriptions.created"
    EXPIRED = "subscriptions.expired"
    IMPORTED = "subscriptions.imported"
    TAGGED = "subscriptions.tagged"
    PAUSED = "credential.paused"
    RESUMED = "credential.resumed"
    LIMITED = "limit.learned"
    SCHEDULE_DISABLED = "schedule.disabled"
    AUTOMATION_DISABLED = "automation.disabled"
    NEWSFEED_DISABLED = "newsfeed.disabled"
    ALERT = "alert.raised"
    TEST = "webhook.test"


# The events that a webhook can subscribe to. Any webhook can be sent a test. Tags are only for
# automations.
EVENTS: Final = [each.value for each in EventKind if each not in {EventKind.TEST, EventKind.TAGGED}]


class Fact(NamedTuple):
    """A row of Feed. `subject`: a notification or a subscription. `second`: for clicks the
    subscription, for subscriptions the person. `code`: the id of the clicked button, why the
    subscription expired, or for rows of an import how many are new and how many ended."""

    kind: EventKind
    subject: UUID
    second: UUID | None = None
    code: str = ""
    platform: str = ""


def feed_call(
    kind: EventKind,
    *,
    channel: str,
    subject: str,
    second: str = "NULL",
    code: str = "''",
    platform: str = "''",
) -> str:
    """An expression that writes a fact, if a webhook or an automation of the channel wants it, for
    RETURNING of a statement that counts. The texts are SQL, and never come from a request.

    It calls the function of the database that is called `feed_add` as well. Its plan is kept by the
    session. A part of the statement that inserts would be planned each time, also for channels
    without webhooks, which costs a sixth of a click."""
    return f"feed_add({channel}, '{kind}', {subject}, {second}, {code}, {platform})"


def feed_add(channel_id: UUID, facts: Iterable[Fact]) -> None:
    """Writes the facts that a webhook or an automation wants, in the caller's transaction."""
    rows = list(facts)
    if rows:
        columns: dict[str, Any] = {
            name: [getattr(each, name) for each in rows] for name in Fact._fields
        }
        sql.execute(_ADD, {"channel": channel_id, **columns})


def making_allowed(channel_id: UUID) -> bool:
    """Whether a message that names persons may be made in this transaction. Not while a person of
    the channel is being erased: the message could name the person afterwards. Does not wait."""
    return bool(sql.rows(_TRY_MAKING, {"name": _making(channel_id)})[0][0])


def making_stop(channel_id: UUID) -> None:
    """Waits until no transaction makes a message that names persons of the channel, and allows none
    until this transaction ends. Call it before anything else is locked."""
    sql.rows(_STOP_MAKING, {"name": _making(channel_id)})


def _making(channel_id: UUID) -> str:
    return f"webhook messages {channel_id}"


def message_add(kind: EventKind, channel_id: UUID, **data: Any) -> None:
    """Writes a message about one fact, if a webhook wants it, in the caller's transaction."""
    body = encoded(kind, channel_id, data, at=sql.now())
    sql.rows(ADD_MESSAGE, {"id": uuid7(), "channel": channel_id, "kind": kind.value, "body": body})


def encoded(kind: str, channel_id: UUID, data: Mapping[str, Any], *, at: datetime) -> bytes:
    """The bytes of a message."""
    said = {
        "type": kind,
        "timestamp": format_timestamp(at),
        "data": {"channel_id": str(channel_id), **data},
    }
    return json.dumps(said, ensure_ascii=False, separators=(",", ":")).encode()


# Raw, because the ORM has no advisory locks.
_TRY_MAKING: Final = "SELECT pg_try_advisory_xact_lock_shared(hashtextextended(%(name)s, 0))"
_STOP_MAKING: Final = "SELECT pg_advisory_xact_lock(hashtextextended(%(name)s, 0))"

# Raw, because the ORM has no unnest over parallel arrays. The function is in the migrations.
_ADD: Final = """
SELECT feed_add(%(channel)s, kind, subject, second, code, platform)
FROM unnest(%(kind)s::text[], %(subject)s::uuid[], %(second)s::uuid[], %(code)s::text[],
            %(platform)s::text[]) AS fact (kind, subject, second, code, platform)
"""

# Also used by the collector, which has checked that the channel has facts of this kind. A webhook
# that the service disabled gets the message as failed, so that it can be replayed.
ADD_MESSAGE: Final = """
WITH hooks AS (
  SELECT id, is_enabled FROM channels_app_webhook
  WHERE channel_id = %(channel)s AND events ? %(kind)s AND (is_enabled OR disabled_code <> '')
), message AS (
  INSERT INTO channels_app_webhookmessage (id, channel_id, type, body, created_at)
  SELECT %(id)s, %(channel)s, %(kind)s, %(body)s, statement_timestamp()
  WHERE EXISTS (SELECT FROM hooks)
  RETURNING id
)
INSERT INTO channels_app_webhookattempt (message_id, webhook_id, state, due_at, finished_at, answer)
SELECT message.id, hooks.id, CASE WHEN is_enabled THEN 'waiting' ELSE 'failed' END,
  statement_timestamp(), CASE WHEN is_enabled THEN NULL ELSE statement_timestamp() END,
  CASE WHEN is_enabled THEN '' ELSE 'not sent: the webhook is disabled' END
FROM message CROSS JOIN hooks
RETURNING webhook_id
"""
