"""Claims newsfeeds that are due, and records what their documents have.

A claim is a lease with a number. A newsfeed whose lease ended, because its worker was killed, is
claimed again; a late result of the first worker changes nothing. One transaction writes which
entries are known and which are to be sent, so that each is found once.
"""

from collections import Counter
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

import structlog

from channels_app import audit
from channels_app.feeds import EventKind, message_add
from notifications_app.models import TROUBLED_AFTER, Newsfeed
from notifications_app.newsfeeds.comparing import Comparison, compared
from notifications_app.newsfeeds.fetching import Check, Failed, Fetched, Result, Unchanged
from notifications_app.newsfeeds.reading import NotAFeed, entries_of
from pushsvc.common.store import sql

logger = structlog.stdlib.get_logger(__name__)

LEASE: Final = timedelta(seconds=60)
FAILING: Final = "failing"
GONE: Final = "gone"
FAILING_FOR: Final = timedelta(days=5)
_LONGEST_WAIT: Final = timedelta(hours=24)
_OF_ACCOUNT: Final = 4  # an account gets a quarter of the requests
_LOOKED_AT: Final = 200  # newsfeeds of one claim
_WORDS: Final = 300


def claim(most: int, *, in_flight: Mapping[UUID, int] | None = None) -> list[Check]:
    """Leases newsfeeds that are due, longest first. `in_flight`: how many requests of each account
    the process makes, of which it makes at most `most`. An account has at most a quarter."""
    busy = Counter(in_flight or {})
    share, room = max(most // _OF_ACCOUNT, 1), most - busy.total()
    full = [account for account, number in busy.items() if number >= share]
    if room <= 0:
        return []
    with sql.brief_transaction():
        due = Newsfeed.objects.due().exclude(channel__account_id__in=full)
        rows = due.select_related("channel").only(
            *("url", "etag", "modified", "known", "daily_limit", "lease_number"),
            "channel__account_id",
        )
        locked = rows.select_for_update(skip_locked=True, no_key=True, of=("self",))
        claimed: list[Newsfeed] = []
        for each in locked.order_by("next_at")[:_LOOKED_AT]:
            account = each.channel.account_id
            if len(claimed) < room and busy[account] < share:
                busy[account] += 1
                claimed.append(each)
        until = sql.now() + LEASE
        for each in claimed:
            each.lease_until, each.lease_number = until, each.lease_number + 1
        Newsfeed.objects.bulk_update(claimed, ["lease_until", "lease_number"])
    return [_check(each) for each in claimed]


def is_any_due() -> bool:
    """Whether a worker has a newsfeed to check, for a tick."""
    return Newsfeed.objects.due().exists()


def record(check: Check, result: Result) -> bool:
    """Writes the result, unless another worker has claimed the newsfeed since or its owner has
    changed it. Returns whether entries are to be sent. 410, and FAILING_FOR without a document,
    disable the newsfeed."""
    read = _read(check, result)
    with sql.brief_transaction():
        own = Newsfeed.objects.select_for_update(no_key=True, of=("self",)).filter(
            pk=check.newsfeed_id, lease_number=check.lease_number, is_enabled=True
        )
        newsfeed = own.first()
        if newsfeed is None:
            return False
        now = sql.now()
        newsfeed.checked_at, newsfeed.lease_until = now, None
        if isinstance(read, Failed):
            _fail(newsfeed, read, now)
        else:
            _succeed(newsfeed, result, read, now)
        newsfeed.save()
        return newsfeed.found is not None


def _check(newsfeed: Newsfeed) -> Check:
    """The conditions of a document that was never read are not sent, so that it comes."""
    is_new = newsfeed.known is None
    return Check(
        newsfeed_id=newsfeed.pk,
        lease_number=newsfeed.lease_number,
        account_id=newsfeed.channel.account_id,
        url=newsfeed.url,
        etag="" if is_new else newsfeed.etag,
        modified="" if is_new else newsfeed.modified,
        known=newsfeed.known,
        most=newsfeed.daily_limit,
    )


def _read(check: Check, result: Result) -> Comparison | Failed | None:
    """What the document has, or why it cannot be read; None if it is unchanged. What the claim
    knew still holds if its result is written: whoever changes that ends the claim."""
    if not isinstance(result, Fetched):
        return None if isinstance(result, Unchanged) else result
    now = sql.now()
    try:
        entries = entries_of(result.body, content_type=result.content_type, url=result.url)
        return compared(entries, check.known, now, most=check.most)
    except NotAFeed as error:
        return Failed(str(error))
    except Exception as error:  # noqa: BLE001 - a document that no test has
        logger.error("newsfeed.unread", error=type(error).__name__)
        return Failed("The document cannot be read.")


def _succeed(newsfeed: Newsfeed, result: Result, found: Comparison | None, now: datetime) -> None:
    newsfeed.failures, newsfeed.failing_since, newsfeed.last_error = 0, None, ""
    newsfeed.next_at = now + timedelta(minutes=newsfeed.every_minutes)
    if found is None or not isinstance(result, Fetched):
        return
    newsfeed.known, newsfeed.latest = found.known, found.latest or newsfeed.latest
    newsfeed.found = found.new or None
    newsfeed.entry_count = found.entry_count
    newsfeed.etag, newsfeed.modified = result.etag, result.modified


def _fail(newsfeed: Newsfeed, failed: Failed, now: datetime) -> None:
    """Checks less often while it fails."""
    newsfeed.failures = min(newsfeed.failures + 1, 1_000)
    newsfeed.failing_since = newsfeed.failing_since or now
    newsfeed.last_error = failed.words[:_WORDS]
    usual = timedelta(minutes=newsfeed.every_minutes)
    wait = min(usual * 2 ** min(newsfeed.failures - 1, 10), _LONGEST_WAIT)
    newsfeed.next_at = now + max(wait, timedelta(seconds=failed.retry_after or 0))
    is_hopeless = (
        newsfeed.failures >= TROUBLED_AFTER and now - newsfeed.failing_since >= FAILING_FOR
    )
    if failed.is_gone or is_hopeless:
        disable(newsfeed, GONE if failed.is_gone else FAILING, failed.words)


def disable(newsfeed: Newsfeed, code: str, detail: str) -> None:
    """Disables the newsfeed for the service's own reason, in the caller's transaction, which saves
    it."""
    newsfeed.is_enabled, newsfeed.disabled_code, newsfeed.found = False, code, None
    audit.record(
        newsfeed,
        audit.Action.UPDATE,
        {"is_enabled": True, "disabled_code": ""},
        {"is_enabled": False, "disabled_code": code},
        note=f"The newsfeed was disabled: {detail}",
    )
    message_add(
        EventKind.NEWSFEED_DISABLED,
        newsfeed.channel_id,
        newsfeed_id=str(newsfeed.pk),
        name=newsfeed.name,
        code=code,
        detail=detail[:200],
    )
    logger.warning("newsfeed.disabled", newsfeed=newsfeed.pk, code=code)
