"""Claims messages for calls, and records what became of them.

A claim is a lease with a number. A message whose lease ended, because its worker was killed, is
claimed again; a late result of the first worker changes nothing. Rows are locked in the order
webhook, attempts.
"""

import random
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

import structlog

from channels_app.webhooks import FAILING, GONE, webhook_disable
from notifications_app.webhooks.calls import AT_ONCE, LONGEST_WAIT, Answer, Call
from pushsvc.common import metrics
from pushsvc.common.store import sql
from pushsvc.common.store.crypto import SecretUnreadable, decrypt

logger = structlog.stdlib.get_logger(__name__)

LEASE: Final = timedelta(seconds=60)
# Before the second and each later attempt.
RETRY_WAITS: Final = (
    timedelta(seconds=5),
    timedelta(minutes=5),
    timedelta(minutes=30),
    *(timedelta(hours=each) for each in (2, 5, 10, 14, 20, 24)),
)
_JITTER: Final = 0.1
FAILING_FOR: Final = timedelta(days=5)
SLOW_SECONDS: Final = 5.0
# A failing webhook is held after each call: for a share of the time since it has been failing.
_HELD_SHARE: Final = 0.25
_HELD_LEAST: Final = timedelta(seconds=1)
_HELD_MOST: Final = timedelta(minutes=5)
_ASKED_MOST: Final = timedelta(hours=1)  # of a receiver's Retry-After, for all its messages
# A webhook that responded so lately has AT_ONCE calls at once.
_LATELY: Final = timedelta(minutes=1)
# Longer than any wait between two calls of a message, so that calls were not tried meanwhile.
_QUIET: Final = timedelta(days=2)
_MOST_WEBHOOKS: Final = 50  # of one claim
_OF_ACCOUNT: Final = 4  # an account gets a quarter of the calls


def claim(
    most: int, *, is_troubled: bool, in_flight: Mapping[UUID, int] | None = None
) -> list[Call]:
    """Leases due messages of the webhooks whose last claim is longest ago: of those whose last call
    failed or was slow, or of the others. `in_flight`: how many calls of each account the process
    makes of this kind, of which it makes at most `most`. A webhook has at most AT_ONCE calls at
    once; one, while its calls fail and if none has succeeded lately. An account has at most a
    quarter of `most`."""
    busy = in_flight or {}
    share = max(most // _OF_ACCOUNT, 1)
    room = most - sum(busy.values())
    if room <= 0:
        return []
    parameters: dict[str, Any] = {
        "is_troubled": is_troubled,
        "most": _MOST_WEBHOOKS,
        "at_once": AT_ONCE,
        "lately": _LATELY,
        "room": room,
        "share": share,
        "accounts": list(busy),
        "numbers": list(busy.values()),
        "full": [account for account, number in busy.items() if number >= share],
        "lease": LEASE,
    }
    with sql.brief_transaction():
        hooks = [row[0] for row in sql.rows(_NEXT, parameters)]
        if not hooks:
            return []
        claimed = sql.rows(_CLAIM, parameters | {"hooks": hooks})
    return [_call(*row, is_troubled=is_troubled) for row in claimed]


def is_any_due() -> bool:
    """Whether a worker has something to do, for a tick: facts or due messages."""
    return bool(sql.rows(_ANY_DUE, {"at_once": AT_ONCE, "lately": _LATELY})[0][0])


def record(call: Call, answer: Answer) -> None:
    """Writes the result, unless another worker has claimed the message since. 410 and FAILING_FOR
    without a delivery disable the webhook. A failure holds the webhook's other messages."""
    metrics.WEBHOOK_CALLS.add(1, "delivered" if answer.is_delivered else "failed")
    is_over = answer.is_delivered or answer.is_gone
    wait = None if is_over else wait_after(call.attempts, answer.retry_after)
    parameters = {
        "hook": call.webhook_id,
        "message": call.message_id,
        "number": call.lease_number,
        "delivered": answer.is_delivered,
        "wait": wait,
        "answer": answer.words,
        "is_slow": answer.seconds >= SLOW_SECONDS,
        "share": _HELD_SHARE,
        "least": max(_HELD_LEAST, min(_asked(answer.retry_after), _ASKED_MOST)),
        "longest": _HELD_MOST,
        "quiet": _QUIET,
    }
    with sql.brief_transaction():
        written = sql.rows(_RECORD, parameters)
        if written and not answer.is_delivered:
            _disable_if_hopeless(call.webhook_id, answer, failing_for=written[0][0])


def wait_after(attempts: int, retry_after: float | None) -> timedelta | None:
    """The wait before the next call, after this many failed ones. None if there is no next call. A
    receiver can lengthen the wait, up to a day."""
    if attempts > len(RETRY_WAITS):
        return None
    wait = RETRY_WAITS[attempts - 1] * random.uniform(1 - _JITTER, 1 + _JITTER)  # noqa: S311
    return max(wait, _asked(retry_after))


def _asked(retry_after: float | None) -> timedelta:
    return timedelta(seconds=min(retry_after or 0.0, LONGEST_WAIT))


def _disable_if_hopeless(webhook_id: UUID, answer: Answer, *, failing_for: timedelta) -> None:
    is_hopeless = failing_for >= FAILING_FOR
    code = GONE if answer.is_gone else FAILING
    if (answer.is_gone or is_hopeless) and webhook_disable(webhook_id, code):
        logger.warning("webhook.disabled", webhook=webhook_id, code=code)


def _call(*row: Any, is_troubled: bool) -> Call:
    message, webhook, number, begun, url, format_, body, secret, old_secret, account = row
    secrets = _readable([secret, old_secret])
    return Call(
        message_id=message,
        webhook_id=webhook,
        lease_number=number,
        attempts=begun,
        url=url,
        format=format_,
        body=bytes(body),
        secrets=secrets,
        account_id=account,
        is_troubled=is_troubled,
    )


def _readable(encrypted: Sequence[str]) -> list[str]:
    """The secrets, without those that no key decrypts, which the doctor reports."""
    secrets = []
    for each in filter(None, encrypted):
        try:
            secrets.append(decrypt(each))
        except SecretUnreadable:
            logger.error("webhook.secret_unreadable")
    return secrets


# Raw, because the ORM has neither LATERAL nor RETURNING.
_IN_FLIGHT: Final = """
SELECT count(*) FROM channels_app_webhookattempt
WHERE webhook_id = hook.id AND state = 'waiting' AND lease_until >= statement_timestamp()
"""
_ROOM: Final = f"""
CASE WHEN hook.failing_since IS NULL
  AND hook.last_delivered_at > statement_timestamp() - %(lately)s::interval
THEN %(at_once)s ELSE 1 END - ({_IN_FLIGHT})
"""
_DUE: Final = """
webhook_id = hook.id AND state = 'waiting' AND due_at <= statement_timestamp()
AND (lease_until IS NULL OR lease_until < statement_timestamp())
"""
# Ordered, and looked up for each webhook because of OFFSET, so that PostgreSQL reads the webhook's
# part of an index. Otherwise it might scan the table for each, expecting to find a message soon.
_MAY_BE_CALLED: Final = f"""
hook.is_enabled AND (hook.held_until IS NULL OR hook.held_until <= statement_timestamp())
AND EXISTS (SELECT FROM channels_app_webhookattempt WHERE {_DUE} ORDER BY due_at OFFSET 0)
AND {_ROOM} > 0
"""

# SKIP LOCKED: another worker claims for this webhook, or records a result. The locks make the next
# statement see all other claims, so that the number of calls at once is exact.
_NEXT: Final = f"""
SELECT hook.id FROM channels_app_webhook hook
JOIN channels_app_channel channel ON channel.id = hook.channel_id
WHERE (hook.failing_since IS NOT NULL OR hook.is_slow) = %(is_troubled)s
  AND channel.account_id <> ALL(%(full)s::uuid[]) AND {_MAY_BE_CALLED}
ORDER BY hook.served_at NULLS FIRST, hook.id LIMIT %(most)s
FOR NO KEY UPDATE OF hook SKIP LOCKED
"""  # noqa: S608 - constants

_CLAIM: Final = f"""
WITH found AS (
  SELECT attempt.message_id, hook.id AS webhook_id, channel.account_id, hook.served_at,
    row_number() OVER (PARTITION BY channel.account_id ORDER BY hook.served_at NULLS FIRST, hook.id)
      AS place
  FROM channels_app_webhook hook
  JOIN channels_app_channel channel ON channel.id = hook.channel_id
  CROSS JOIN LATERAL (
    SELECT message_id FROM channels_app_webhookattempt WHERE {_DUE}
    ORDER BY due_at, message_id LIMIT greatest({_ROOM}, 0)
  ) AS attempt
  WHERE hook.id = ANY(%(hooks)s::uuid[])
), due AS (
  SELECT found.message_id, found.webhook_id, found.account_id FROM found
  LEFT JOIN unnest(%(accounts)s::uuid[], %(numbers)s::int[]) AS busy (account_id, number)
    USING (account_id)
  WHERE found.place <= %(share)s - coalesce(busy.number, 0)
  ORDER BY found.served_at NULLS FIRST LIMIT %(room)s
), served AS (
  UPDATE channels_app_webhook SET served_at = clock_timestamp()
  WHERE id IN (SELECT webhook_id FROM due)
)
UPDATE channels_app_webhookattempt attempt
SET lease_until = clock_timestamp() + %(lease)s, lease_number = lease_number + 1,
    attempts = attempts + 1
FROM due
JOIN channels_app_webhook hook ON hook.id = due.webhook_id
JOIN channels_app_webhookmessage message ON message.id = due.message_id
WHERE attempt.message_id = due.message_id AND attempt.webhook_id = due.webhook_id
RETURNING attempt.message_id, attempt.webhook_id, attempt.lease_number, attempt.attempts, hook.url,
  hook.format, message.body, hook.secret_encrypted, CASE
    WHEN hook.old_secret_until > statement_timestamp() THEN hook.old_secret_encrypted ELSE '' END,
  due.account_id
"""  # noqa: S608 - constants

_ANY_DUE: Final = f"""
SELECT EXISTS (SELECT FROM channels_app_feed WHERE unreadable_at IS NULL)
  OR EXISTS (SELECT FROM channels_app_webhook hook WHERE {_MAY_BE_CALLED})
"""  # noqa: S608 - constants

# One statement, so that the order of locks is kept: the webhook, then its attempt. `hook` is read
# with its lock, because after a wait another read would find what was before the last result.
# Returns for how long the webhook has been failing.
_RECORD: Final = """
WITH hook AS (
  SELECT id, CASE WHEN last_failed_at < statement_timestamp() - %(quiet)s::interval
      THEN statement_timestamp() ELSE coalesce(failing_since, statement_timestamp()) END
    AS failing_since
  FROM channels_app_webhook WHERE id = %(hook)s FOR NO KEY UPDATE
), written AS (
  UPDATE channels_app_webhookattempt
  SET state = CASE WHEN %(delivered)s THEN 'delivered'
        WHEN %(wait)s::interval IS NULL THEN 'failed' ELSE state END,
      due_at = coalesce(statement_timestamp() + %(wait)s::interval, due_at),
      finished_at = CASE WHEN %(wait)s::interval IS NULL THEN statement_timestamp() END,
      lease_until = NULL, answer = %(answer)s
  WHERE message_id = %(message)s AND webhook_id = (SELECT id FROM hook)
    AND state = 'waiting' AND lease_number = %(number)s
  RETURNING webhook_id
)
UPDATE channels_app_webhook AS webhook
SET last_answer = %(answer)s,
    last_delivered_at = CASE WHEN %(delivered)s THEN statement_timestamp()
      ELSE last_delivered_at END,
    last_failed_at = CASE WHEN %(delivered)s THEN last_failed_at ELSE statement_timestamp() END,
    failing_since = CASE WHEN %(delivered)s THEN NULL ELSE hook.failing_since END,
    held_until = CASE WHEN %(delivered)s THEN NULL ELSE statement_timestamp() + greatest(
      least((statement_timestamp() - hook.failing_since) * %(share)s, %(longest)s), %(least)s) END,
    is_slow = %(is_slow)s
FROM hook
WHERE webhook.id = (SELECT webhook_id FROM written)
RETURNING statement_timestamp() - coalesce(webhook.failing_since, statement_timestamp())
"""
