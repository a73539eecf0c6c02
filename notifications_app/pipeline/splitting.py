"""Splits the audience of a notification among the variants of its content.

If the variants are tested first, also into the part for the test and the rest.

By a hash of the subscription's id with a seed of the notification, so nothing is stored for it, and
a device is in another part for each notification. The hash modulo BUCKETS is the device's bucket,
which decides whether it is in the test. Only the quotient decides its variant, so neither says
anything about the other.
"""

import json
from collections.abc import Sequence
from hashlib import sha256
from itertools import accumulate
from typing import Any, Final
from uuid import UUID

from notifications_app.models import Notification
from pushsvc.common.store import sql
from subscriptions_app.segments.compiler import Condition

BUCKETS: Final = 10_000
BUCKETS_OF_PERCENT: Final = BUCKETS // 100
_MOST_WINDOWS: Final = 4
# The weights of a notification's variants, as JSON. Null or empty: it has none.
WEIGHTS: Final = "jsonb_path_query_array(notification.extras, '$.variants[*].weight')"
# The number of the variant that a notification's test found; null before.
WINNER: Final = "(notification.decision->>'variant')::smallint"
_HASH: Final = "(hashtextextended({id}::text, %(seed)s) & 9223372036854775807)"


def weights_of(text: str | None, winner: int | None = None) -> tuple[int, ...]:
    """`text`: of WEIGHTS. With a `winner`, no other variant has a weight."""
    weights = tuple(json.loads(text)) if text else ()
    if winner is None:
        return weights
    return tuple(int(number == winner) for number in range(len(weights)))


def variant_part(weights: tuple[int, ...]) -> str:
    """SQL: the number of the variant for a row with an `id`. Parameter: `seed`."""
    bounds = list(accumulate(weights))
    place = f"{_HASH.format(id='id')} / {BUCKETS} %% {bounds[-1]}"
    whens = [f"WHEN {place} < {bound} THEN {i}" for i, bound in enumerate(bounds)]
    return f"(CASE {' '.join(whens)} END)::smallint"


def bucket_part(id_: str) -> str:
    """SQL: the bucket of a subscription, from 0. Parameter: `seed`."""
    return f"{_HASH.format(id=id_)} %% {BUCKETS}"


def in_buckets(notification_id: UUID, first: int, end: int) -> Condition:
    """The condition that a subscription is in one of the buckets from `first` to before `end`."""
    bucket = bucket_part("subscription.id")
    bounds = [f"{bucket} >= {first:d}"] if first else []
    bounds += [f"{bucket} < {end:d}"] if end < BUCKETS else []
    return Condition(" AND ".join(bounds) or "true", parameters(notification_id))


def placed_part(weights: tuple[int, ...]) -> str:
    """SQL: the rows of `recipients`, with their `variant` if there are any."""
    if not weights:
        return "recipients"
    return f"(SELECT *, {variant_part(weights)} AS variant FROM recipients) AS recipients"  # noqa: S608


def parameters(notification_id: UUID) -> dict[str, Any]:
    return {"seed": int.from_bytes(sha256(notification_id.bytes).digest()[:8], signed=True)}


def windows_in_one(weights: tuple[int, ...]) -> int:
    """How many windows are read at once, so that the batches of each variant are nearly full."""
    return min(max(sum(weight > 0 for weight in weights), 1), _MOST_WINDOWS)


def variants_of(notification: Notification, ids: Sequence[UUID]) -> dict[UUID, int]:
    """The variant that each subscription got or would get. Until a test is decided, subscriptions
    outside of it are left out."""
    weights = tuple(each["weight"] for each in notification.content.variants)
    if not weights or not ids:
        return {}
    own = {
        "ids": list(ids),
        "notification": notification.pk,
        "tested": tested_buckets(notification),
        "winner": notification.winner,
        **parameters(notification.pk),
    }
    text = _VARIANTS_OF.format(bucket=bucket_part("own.id"), variant=variant_part(weights))
    return {id_: variant for id_, variant in sql.rows(text, own) if variant is not None}


def rest_of(notification: Notification, ids: Sequence[UUID]) -> set[UUID]:
    """Those subscriptions that are not in the part that tests the variants. Empty without a
    test."""
    tested = tested_buckets(notification)
    if tested == BUCKETS or not ids:
        return set()
    own = {"ids": list(ids), "tested": tested, **parameters(notification.pk)}
    return {id_ for (id_,) in sql.rows(_REST_OF, own)}


def tested_buckets(notification: Notification) -> int:
    """How many buckets get one of all variants: all, if there is no test."""
    share = notification.test["share"] if notification.test else 100
    return int(share * BUCKETS_OF_PERCENT)


_VARIANTS_OF: Final = """
SELECT own.id, coalesce(
  (SELECT batch.variant FROM notifications_app_delivery delivery
   JOIN notifications_app_batch batch ON batch.id = delivery.batch_id
   WHERE delivery.notification_id = %(notification)s AND delivery.subscription_id = own.id),
  CASE WHEN {bucket} < %(tested)s THEN {variant} ELSE %(winner)s::smallint END)
FROM unnest(%(ids)s::uuid[]) AS own (id)
"""
_REST_OF: Final = f"""
SELECT own.id FROM unnest(%(ids)s::uuid[]) AS own (id)
WHERE {bucket_part("own.id")} >= %(tested)s
"""  # noqa: S608 - text of our own
