"""Stores one answer for each Idempotency-Key of a channel, for 24 hours."""

import json
import re
from collections.abc import Callable
from hashlib import sha256
from typing import Any, Final
from uuid import UUID

from django.db import transaction

from notifications_app.errors import (
    IdempotencyKeyInFlight,
    IdempotencyKeyInvalid,
    IdempotencyKeyReused,
)
from notifications_app.models import IdempotencyRecord
from pushsvc.common.store import sql

_KEY: Final = re.compile(r"[\x20-\x7e]{1,255}")

Answer = dict[str, Any]


def checked_key(key: str) -> str:
    """Returns the key; raises IdempotencyKeyInvalid."""
    if not _KEY.fullmatch(key):
        raise IdempotencyKeyInvalid
    return key


def answer_once(*, channel_id: UUID, key: str, body: Any, act: Callable[[], Answer]) -> Answer:
    """Returns the answer that the key got in the last 24 hours. If there is none, calls `act`, and
    stores and returns its answer.

    Call it with a checked key, in the transaction in which `act` writes. `body` is the request's
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


def once(*, channel_id: UUID, key: str | None, body: Any, act: Callable[[], Answer]) -> Answer:
    """As `answer_once`, in its own transaction. Without a key, calls `act`."""
    if key is None:
        return act()
    with transaction.atomic():
        return answer_once(channel_id=channel_id, key=key, body=body, act=act)


def _lock(channel_id: UUID, key: str) -> None:
    # A try-lock, so that a second request is refused at once and occupies no thread.
    if not sql.try_lock(f"idempotency {channel_id} {key}"):
        raise IdempotencyKeyInFlight


def _live_record(channel_id: UUID, key: str) -> IdempotencyRecord | None:
    records = IdempotencyRecord.objects.filter(channel_id=channel_id, key=key)
    records.expired().delete()
    return records.first()


def _digest(body: Any) -> str:
    return sha256(json.dumps(body, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
