"""Claims messages for calls, and records what became of them.

A claim is a lease with a number. A message whose lease ended, because its worker was killed, is
claimed again; a late result of the first worker changes nothing. Rows are locked in the order
webhook, attempts.
"""

import random
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

import structlog

from channels_app.models import WebhookFormat
from channels_app.webhooks import FAILING, GONE, webhook_disable
from notifications_app.webhooks import chats
from notifications_app.webhooks.calls import AT_ONCE, Answer, Call
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
_LONGEST_WAIT: Final = timedelta(days=1)
FAILING_FOR: Final = timedelta(days=5)
_MOST_WEBHOOKS: Final = 50  # of one claim


def claim(room: int) -> list[Call]:
    """Leases due messages, at most `room`, of the webhooks whose last claim is longest ago. A
    webhook has at most AT_ONCE calls at once; one, while its calls fail. So webhooks whose
    receivers do not respond occupy few of the calls that a process can make at once."""
    with sql.brief_transaction():
        hooks = [row[0] for row in sql.rows(_NEXT, {"most": _MOST_WEBHOOKS})]
        if not hooks:
            return []
        parameters = {"hooks": hooks, "at_once": AT_ONCE, "room": room, "lease": LEASE}
        claimed = sql.rows(_CLAIM, parameters)
    return [_call(*row) for row in claimed]


def is_any_due() -> bool:
    """Whether a worker has something to do, for a tick: facts or due messages."""
    return bool(sql.rows(_ANY_DUE, {})[0][0])


def record(call: Call, answer: Answer) -> None:
    """Writes the result, unless another worker has claimed the message since. 410 and FAILING_FOR
    without a delivery disable the webhook."""
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
    asked = min(timedelta(seconds=retry_after or 0), _LONGEST_WAIT)
    return max(wait, asked)


def _disable_if_hopeless(webhook_id: UUID, answer: Answer, *, failing_for: timedelta) -> None:
    is_hopeless = failing_for >= FAILING_FOR
    code = GONE if answer.is_gone else FAILING
    if (answer.is_gone or is_hopeless) and webhook_disable(webhook_id, code):
        logger.warning("webhook.disabled", webhook=webhook_id, code=code)


def _call(*row: Any) -> Call:
    message, webhook, number, begun, url, format_, body, secret, old_secret = row
    secrets = _readable([secret, old_secret])
    sent = chats.body_for(WebhookFormat(format_), bytes(body))
    return Call(message, webhook, number, begun, url, sent, secrets)


def _readable(encrypted: Sequence[str]) -> list[str]:
    """The secrets. A secret that no key decrypts signs nothing; the doctor reports it."""
    secrets = []
    for each in filter(None, encrypted):
        try:
            secrets.append(decrypt(each))
        except SecretUnreadable:
            logger.error("webhook.secret_unreadable")
    return secrets


# Raw, because the ORM has neither LATERAL nor RETURNING. SKIP LOCKED: another worker claims for
# this webhook, or records a result. The locks make the next statement see all other claims, so that
# the number of calls at once is exact.
_NEXT: Final = """
SELECT hook.id FROM channels_app_webhook hook
WHERE hook.is_enabled AND EXISTS (
  SELECT FROM channels_app_webhookattempt
  WHERE webhook_id = hook.id AND state = 'waiting' AND due_at <= statement_timestamp()
    AND (lease_until IS NULL OR lease_until < statement_timestamp()))
ORDER BY hook.served_at NULLS FIRST, hook.id LIMIT %(most)s
FOR NO KEY UPDATE SKIP LOCKED
"""

_CLAIM: Final = """
WITH due AS (
  SELECT attempt.message_id, attempt.webhook_id
  FROM channels_app_webhook hook
  CROSS JOIN LATERAL (
    SELECT CASE WHEN hook.failing_since IS NULL THEN %(at_once)s ELSE 1 END - count(*) AS room
    FROM channels_app_webhookattempt
    WHERE webhook_id = hook.id AND state = 'waiting' AND lease_until >= statement_timestamp()
  ) AS calls
  CROSS JOIN LATERAL (
    SELECT message_id, webhook_id FROM channels_app_webhookattempt
    WHERE webhook_id = hook.id AND state = 'waiting' AND due_at <= statement_timestamp()
      AND (lease_until IS NULL OR lease_until < statement_timestamp())
    ORDER BY due_at, message_id LIMIT greatest(calls.room, 0)
  ) AS attempt
  WHERE hook.id = ANY(%(hooks)s::uuid[])
  ORDER BY hook.served_at NULLS FIRST LIMIT %(room)s
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
  hook.format, message.body, hook.secret_encrypted,
  CASE WHEN hook.old_secret_until > statement_timestamp() THEN hook.old_secret_encrypted ELSE '' END
"""

_ANY_DUE: Final = """
SELECT EXISTS (SELECT FROM channels_app_feed WHERE unreadable_at IS NULL) OR EXISTS (
  SELECT FROM channels_app_webhook hook
  CROSS JOIN LATERAL (
    SELECT FROM channels_app_webhookattempt
    WHERE webhook_id = hook.id AND state = 'waiting' AND due_at <= statement_timestamp()
      AND (lease_until IS NULL OR lease_until < statement_timestamp())
    LIMIT 1) AS due
  WHERE hook.is_enabled)
"""

# One statement, so that the order of locks is kept: the webhook, then its attempt. Returns for how
# long the webhook has been failing.
_RECORD: Final = """
WITH hook AS (
  SELECT id FROM channels_app_webhook WHERE id = %(hook)s FOR NO KEY UPDATE
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
UPDATE channels_app_webhook
SET last_answer = %(answer)s,
    last_delivered_at = CASE WHEN %(delivered)s THEN statement_timestamp()
      ELSE last_delivered_at END,
    last_failed_at = CASE WHEN %(delivered)s THEN last_failed_at ELSE statement_timestamp() END,
    failing_since = CASE WHEN %(delivered)s THEN NULL
      ELSE coalesce(failing_since, statement_timestamp()) END
WHERE id = (SELECT webhook_id FROM written)
RETURNING statement_timestamp() - coalesce(failing_since, statement_timestamp())
"""
