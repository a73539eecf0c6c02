"""Keeps one answer for each Idempotency-Key of a channel, for 24 hours."""

import json
import re
from collections.abc import Callable
from hashlib import sha256
from typing import Any, Final
from uuid import UUID

from notifications_app.errors import (
    IdempotencyKeyInFlight,
    IdempotencyKeyInvalid,
    IdempotencyKeyReused,
)
from notifications_app.models import IdempotencyRecord
from pushsvc.common.store import sql

_KEY: Final = re.compile(r"[\x20-\x7e]{1,255}")

Answer = dict[str, str]


def checked_key(key: str) -> str:
    """Returns the key; raises IdempotencyKeyInvalid."""
    if not _KEY.fullmatch(key):
        raise IdempotencyKeyInvalid
    return key


def answer_once(*, channel_id: UUID, key: str, body: Any, act: Callable[[], Answer]) -> Answer:
    """The answer that the key got in the last 24 hours, else the answer of `act`, which is stored.

    Call it in the transaction that `act` writes in, with a checked key. `body` is the request's
    parsed JSON. An error of `act` is not stored. Raises IdempotencyKeyInFlight,
    IdempotencyKeyReused.
    """
    _lock(channel_id, key)
    digest = _digest(body)
    record = _live_record(channel_id, key)
    if record is None:
        answer = act()
        IdempotencyRecord.objects.create(
            channel_id=channel_id, key=key, body_sha256=digest, response=json.dumps(answer)
        )
        return answer
    if record.body_sha256 != digest:
        raise IdempotencyKeyReused
    stored: Answer = json.loads(record.response)
    return stored


def idempotency_purge(limit: int) -> int:
    """Deletes at most `limit` answers that are older than 24 hours; returns how many."""
    return sql.execute(_PURGE, {"limit": limit})


def _lock(channel_id: UUID, key: str) -> None:
    # A try-lock, so that a second request is refused at once and holds no thread meanwhile.
    name = f"idempotency {channel_id} {key}"
    if not sql.rows(_TRY_LOCK, {"name": name})[0][0]:
        raise IdempotencyKeyInFlight


def _live_record(channel_id: UUID, key: str) -> IdempotencyRecord | None:
    sql.execute(_FORGET, {"channel": channel_id, "key": key})
    return IdempotencyRecord.objects.filter(channel_id=channel_id, key=key).first()


def _digest(body: Any) -> str:
    return sha256(json.dumps(body, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


_TRY_LOCK = "SELECT pg_try_advisory_xact_lock(hashtextextended(%(name)s, 0))"

_FORGET = """
DELETE FROM notifications_app_idempotencyrecord
WHERE channel_id = %(channel)s AND key = %(key)s
    AND created_at <= statement_timestamp() - interval '24 hours'
"""

_PURGE = """
DELETE FROM notifications_app_idempotencyrecord WHERE id IN (
    SELECT id FROM notifications_app_idempotencyrecord
    WHERE created_at <= statement_timestamp() - interval '24 hours'
    ORDER BY created_at LIMIT %(limit)s
    FOR UPDATE SKIP LOCKED
)
"""
