"""Stores one response for each Idempotency-Key of a channel, for 24 hours."""

import json
import re
from collections.abc import Callable
from hashlib import sha256
from typing import Any, Final
from uuid import UUID

from django.db import transaction
from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request

from notifications_app.errors import (
    IDEMPOTENCY_HEADER,
    IdempotencyKeyInFlight,
    IdempotencyKeyInvalid,
    IdempotencyKeyReused,
)
from notifications_app.models import IdempotencyRecord
from pushsvc.common.store import sql

IDEMPOTENCY_PARAMETER: Final = OpenApiParameter(
    IDEMPOTENCY_HEADER,
    {"type": "string", "minLength": 1, "maxLength": 255},
    OpenApiParameter.HEADER,
    description="For safe retries: within 24 hours, the same key and body return the first"
    " response again.",
)
_KEY: Final = re.compile(r"[\x20-\x7e]{1,255}")


def idempotency_key(request: Request) -> str | None:
    """The checked key of the request, or None. Raises IdempotencyKeyInvalid."""
    key = request.headers.get(IDEMPOTENCY_HEADER)
    return None if key is None else checked_key(key)


def checked_key(key: str) -> str:
    """Returns the key; raises IdempotencyKeyInvalid."""
    if not _KEY.fullmatch(key):
        raise IdempotencyKeyInvalid
    return key


def once(
    *, channel_id: UUID, key: str | None, body: Any, act: Callable[[], dict[str, Any]]
) -> dict[str, Any]:
    """Returns the response that the key got in the last 24 hours. If there is none, calls `act`,
    and stores its response in the same transaction. Without a key, only calls `act`.

    `key` is a checked key, `body` the request's parsed JSON. Nothing is stored if `act` raises.
    Raises IdempotencyKeyInFlight, IdempotencyKeyReused.
    """
    if key is None:
        return act()
    with transaction.atomic():
        _lock(channel_id, key)
        digest = _digest(body)
        record = _live_record(channel_id, key)
        if record is None:
            response = act()
            IdempotencyRecord.objects.create(
                channel_id=channel_id, key=key, body_sha256=digest, response=json.dumps(response)
            )
            return response
    if record.body_sha256 != digest:
        raise IdempotencyKeyReused
    stored: dict[str, Any] = json.loads(record.response)
    return stored


def _lock(channel_id: UUID, key: str) -> None:
    # A try-lock, so that a second request is refused immediately and occupies no thread.
    if not sql.try_lock(f"idempotency {channel_id} {key}"):
        raise IdempotencyKeyInFlight


def _live_record(channel_id: UUID, key: str) -> IdempotencyRecord | None:
    records = IdempotencyRecord.objects.filter(channel_id=channel_id, key=key)
    records.expired().delete()
    return records.first()


def _digest(body: Any) -> str:
    return sha256(json.dumps(body, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
