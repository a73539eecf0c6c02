"""Splits the audience of a notification among the variants of its content.

By a hash of the subscription's id with a seed of the notification, so nothing is stored for it, and
a device is in another part for each notification.
"""

import json
from hashlib import sha256
from itertools import accumulate
from typing import Any, Final
from uuid import UUID

from notifications_app.models import Notification
from pushsvc.common.store import sql

_MOST_WINDOWS: Final = 4
# The weights of a notification's variants, as JSON. Null or empty: it has none.
WEIGHTS: Final = "jsonb_path_query_array(notification.extras, '$.variants[*].weight')"


def weights_of(text: str | None) -> tuple[int, ...]:
    """`text`: of WEIGHTS."""
    return tuple(json.loads(text)) if text else ()


def variant_part(weights: tuple[int, ...]) -> str:
    """SQL: the number of the variant for a row with an `id`. Parameter: `seed`."""
    bounds = list(accumulate(weights))
    hashed = "(hashtextextended(id::text, %(seed)s) & 9223372036854775807)"
    whens = [f"WHEN {hashed} %% {bounds[-1]} < {bound} THEN {i}" for i, bound in enumerate(bounds)]
    return f"(CASE {' '.join(whens)} END)::smallint"


def placed_part(weights: tuple[int, ...]) -> str:
    """SQL: the rows of `recipients`, with their `variant` if there are any."""
    if not weights:
        return "recipients"
    return f"(SELECT *, {variant_part(weights)} AS variant FROM recipients) AS recipients"  # noqa: S608


def parameters(notification_id: UUID) -> dict[str, Any]:
    return {"seed": int.from_bytes(sha256(notification_id.bytes).digest()[:8], signed=True)}


def windows_in_one(weights: tuple[int, ...]) -> int:
    """How many windows are read at once, so that the batches of each variant are nearly full."""
    return min(max(len(weights), 1), _MOST_WINDOWS)


def variants_of(notification: Notification, ids: list[UUID]) -> dict[UUID, int]:
    """The variant that each subscription got, or would get."""
    weights = tuple(each["weight"] for each in notification.content.variants)
    if not weights or not ids:
        return {}
    own = {"ids": ids, "notification": notification.pk, **parameters(notification.pk)}
    return dict(sql.rows(_VARIANTS_OF.format(variant=variant_part(weights)), own))


_VARIANTS_OF: Final = """
SELECT own.id, coalesce(
  (SELECT batch.variant FROM notifications_app_delivery delivery
   JOIN notifications_app_batch batch ON batch.id = delivery.batch_id
   WHERE delivery.notification_id = %(notification)s AND delivery.subscription_id = own.id),
  {variant})
FROM unnest(%(ids)s::uuid[]) AS own (id)
"""
