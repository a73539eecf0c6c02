"""Changes subscriptions, with the channel's counters.

All code that writes subscriptions takes locks in this order: address locks in the order of their
keys, subscription rows in the order of their ids, the channel's capacity (capacity.py), tags,
persons in the order of their ids, then one share of the channel's counters. The visit of a known
device locks only its row and the tags that it changes.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction

from channels_app import audit
from channels_app.models import Channel
from pushsvc.common.store import sql
from subscriptions_app.addresses import Address
from subscriptions_app.models import NOT_FOUND_APART, Subscription
from subscriptions_app.people.counting import Changes, Standing, changes_count

UNSUBSCRIBED = "unsubscribed"


EXPIRED_BY_STAFF = "expired_by_staff"


@dataclass(frozen=True, slots=True)
class GoneSubscription:
    """A subscription to expire, unless its device has registered after `as_of`. `sends`: only after
    this many sends said so, each at least NOT_FOUND_APART after the one before."""

    id: UUID
    as_of: datetime
    code: str
    sends: int = 1


def subscription_unsubscribe(*, channel: Channel, address: Address) -> None:
    """Expires the device's subscription if there is an active one. Safe to repeat."""
    with sql.brief_transaction():
        expired = sql.rows(
            _UNSUBSCRIBE,
            {
                "channel": channel.pk,
                "platform": address.platform,
                "digest": address.digest,
                "code": UNSUBSCRIBED,
            },
        )
        _count_expired(channel.pk, expired)


def subscriptions_expire_or_prove(
    *, channel_id: UUID, gone: Sequence[GoneSubscription], proven: Sequence[UUID] = ()
) -> int:
    """Expires subscriptions that are active and have not registered after `as_of`. Returns how
    many.

    `proven`: other subscriptions, which are marked as proven. Call it in the transaction that
    records the reason. Safe to repeat.
    """
    ids = [*(each.id for each in gone), *proven]
    parameters = {
        "channel": channel_id,
        "ids": ids,
        "as_of": [*(each.as_of for each in gone), *(None for _ in proven)],
        "codes": [*(each.code for each in gone), *("" for _ in proven)],
        "sends": [*(each.sends for each in gone), *(0 for _ in proven)],
        "apart": NOT_FOUND_APART,
    }
    with transaction.atomic():
        changed = sql.rows(_EXPIRE_OR_PROVE, parameters, is_prepared=sql.are_few(ids))
        expired = [row[:4] for row in changed if row[4]]
        _count_expired(channel_id, expired)
    return len(expired)


@transaction.atomic
def subscription_expire(*, subscription: Subscription) -> bool:
    """Expires the subscription on behalf of staff. Returns whether it was active. It becomes active
    again at its next visit."""
    before = audit.fields_of(subscription)
    gone = GoneSubscription(subscription.pk, sql.now(), EXPIRED_BY_STAFF)
    if not subscriptions_expire_or_prove(channel_id=subscription.channel_id, gone=[gone]):
        return False
    subscription.refresh_from_db()
    after = audit.fields_of(subscription)
    audit.record(subscription, audit.Action.UPDATE, before, after, note="Expired by staff.")
    return True


@transaction.atomic
def subscription_forget(*, subscription: Subscription) -> None:
    """Deletes everything stored about the device's address, with keys and attributes.

    Safe to repeat. The log of recipients keeps its outcomes, with an id that no longer exists.
    Messages that are being sent to the device bounce as `unsubscribed`.
    """
    digests = [bytes(subscription.address_sha256)]
    channel_id, changes = subscription.channel_id, Changes()
    for row in Subscription.objects.locked_at(channel_id, subscription.platform, digests):
        audit.record(row, audit.Action.DELETE, audit.fields_of(row), note="Deleted on request.")
        changes.note(Standing.of(row), None)
        row.delete()
    changes_count(channel_id, changes)


def expired_purge(limit: int) -> int:
    """Deletes at most `limit` subscriptions that expired SUBSCRIPTION_RETENTION_DAYS ago. Returns
    how many."""
    days = settings.SUBSCRIPTION_RETENTION_DAYS
    with transaction.atomic():
        old = Subscription.objects.expired_for(days).order_by("expired_at").locked_or_skipped()
        kept = ("channel_id", "platform", "person_id", "expired_at", "expired_code")
        rows = list(old.only(*kept)[:limit])
        Subscription.objects.filter(id__in=[row.pk for row in rows]).delete()
        changes: defaultdict[UUID, Changes] = defaultdict(Changes)
        for row in rows:
            changes[row.channel_id].note(Standing.of(row), None)
        for channel_id in sorted(changes):
            changes_count(channel_id, changes[channel_id])
    return len(rows)


def _count_expired(channel_id: UUID, expired: Iterable[tuple[Any, ...]]) -> None:
    """Counts expired subscriptions. `expired`: platform, person, id and code of each."""
    changes = Changes()
    for platform, person_id, id_, code in expired:
        now = Standing(platform, person_id, is_active=False, id=id_, expired_code=code)
        changes.note(now._replace(is_active=True, expired_code=""), now)
    changes_count(channel_id, changes)


# A row with null for `as_of` becomes proven. A row with more than one for `sends` is counted, and
# expires with the last of them. One statement does all, so that rows are locked in one order. Raw,
# because it joins arrays. A row is found by its id alone, and its channel is
# compared afterwards. Otherwise PostgreSQL might read the whole channel for every id if its
# statistics are old.
_EXPIRE_OR_PROVE = """
WITH named AS (
    SELECT * FROM unnest(%(ids)s::uuid[], %(as_of)s::timestamptz[], %(codes)s::text[],
        %(sends)s::smallint[]) AS given (id, as_of, code, sends)
    ORDER BY id
), locked AS (
    SELECT found.id, found.channel_id, named.code, named.as_of IS NULL AS is_proof,
        named.sends > 1 AS is_counted, found.seen + 1 AS seen,
        named.as_of IS NOT NULL AND found.seen + 1 >= named.sends AS is_gone
    FROM named CROSS JOIN LATERAL (
        SELECT id, channel_id,
            CASE WHEN not_found_at >= registered_at THEN not_found_sends ELSE 0 END AS seen
        FROM subscriptions_app_subscription
        WHERE id = named.id AND CASE
            WHEN named.as_of IS NULL THEN NOT is_proven OR not_found_at IS NOT NULL
            ELSE expired_at IS NULL AND registered_at <= named.as_of AND (named.sends = 1
                OR not_found_at IS NULL OR not_found_at < registered_at
                OR not_found_at < statement_timestamp() - %(apart)s) END
        FOR NO KEY UPDATE
    ) AS found
)
UPDATE subscriptions_app_subscription AS subscription
SET is_proven = is_proven OR locked.is_proof,
    not_found_at = CASE WHEN locked.is_proof THEN NULL
        WHEN locked.is_counted THEN statement_timestamp() ELSE not_found_at END,
    not_found_sends = CASE WHEN locked.is_proof THEN NULL
        WHEN locked.is_counted THEN locked.seen ELSE not_found_sends END,
    expired_at = CASE WHEN locked.is_gone THEN statement_timestamp() ELSE expired_at END,
    expired_code = CASE WHEN locked.is_gone THEN locked.code ELSE expired_code END
FROM locked WHERE subscription.id = locked.id AND locked.channel_id = %(channel)s
RETURNING subscription.platform, subscription.person_id, subscription.id, locked.code,
    locked.is_gone
"""


# Raw, because the ORM has no RETURNING for an update. CASE, because PostgreSQL might read all
# active subscriptions of the channel, if its statistics are from the time before it had many.
_UNSUBSCRIBE = """
UPDATE subscriptions_app_subscription
SET expired_at = statement_timestamp(), expired_code = %(code)s
WHERE channel_id = %(channel)s AND platform = %(platform)s AND address_sha256 = %(digest)s
  AND CASE WHEN NOT is_set_aside THEN expired_at IS NULL END
RETURNING platform, person_id, id, expired_code
"""
