"""A channel's webhooks: creates and changes them, rotates secrets, and replays messages.

notifications_app/webhooks/ sends the messages.
"""

import base64
import json
import secrets
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import Case, Q, QuerySet, Value, When
from django.db.models.functions import Now
from django.utils.translation import gettext

from channels_app import audit
from channels_app.feeds import EventKind, encoded
from channels_app.models import (
    Channel,
    Webhook,
    WebhookAttempt,
    WebhookFormat,
    WebhookMessage,
    WebhookState,
)
from pushsvc.common.endpoints import EndpointNotAllowed, check_endpoint
from pushsvc.common.errors import Conflict, FieldError, Invalid, NotFound
from pushsvc.common.ids import uuid7_at
from pushsvc.common.store import sql
from pushsvc.common.store.crypto import encrypt
from pushsvc.common.texts import later

MOST_WEBHOOKS: Final = 10
MOST_REPLAYED: Final = 10_000  # messages of one request
MAX_DESCRIPTION: Final = 200
MAX_URL: Final = 2_000
OLD_SECRET_FOR: Final = timedelta(hours=24)
KEPT_FOR: Final = timedelta(days=14)
_SECRET_BYTES: Final = 32
_SECRET_PREFIX: Final = "whsec_"  # noqa: S105 - the beginning of every secret
GONE: Final = "gone"
FAILING: Final = "failing"
_CLOCKS_DIFFER: Final = timedelta(hours=1)
_EPOCH: Final = datetime.fromtimestamp(0, UTC)
_NOT_SENT: Final = "not sent: the webhook is disabled"
_NOT_FOR_CHATS: Final = "not sent: a chat gets only alerts"
# Messages that are texts for people.
_FOR_CHATS: Final = Q(message__type__in=(EventKind.ALERT, EventKind.TEST))


class TooManyWebhooks(Conflict):
    """The channel has MOST_WEBHOOKS webhooks."""

    code = "too_many_webhooks"
    title = "Too many webhooks"
    detail = later("The channel has %(most)s webhooks. Delete one first.", most=MOST_WEBHOOKS)


class WebhookDisabled(Conflict):
    """A message would not be sent."""

    code = "webhook_disabled"
    title = "The webhook is disabled"
    detail = later("The webhook is disabled. Enable it first.")


def webhooks_of(channel_id: UUID) -> list[Webhook]:
    """The channel's webhooks, oldest first."""
    return list(Webhook.objects.filter(channel_id=channel_id).order_by("created_at", "pk"))


def webhook_get(*, channel_id: UUID, webhook_id: UUID) -> Webhook:
    """Raises NotFound."""
    found = Webhook.objects.filter(channel_id=channel_id, pk=webhook_id).first()
    if found is None:
        raise NotFound(gettext("The channel has no such webhook."))
    return found


@transaction.atomic
def webhook_create(
    *,
    channel: Channel,
    url: str,
    events: Sequence[str],
    description: str = "",
    format: str = WebhookFormat.STANDARD,
) -> tuple[Webhook, str]:
    """Creates a webhook. Returns it with its secret, which cannot be shown again. Raises Invalid,
    TooManyWebhooks."""
    checked = _checked(url)
    _check_events(format, events)
    Channel.objects.select_for_update(no_key=True).get(pk=channel.pk)
    if Webhook.objects.filter(channel=channel).count() >= MOST_WEBHOOKS:
        raise TooManyWebhooks
    secret = _new_secret()
    webhook = Webhook.objects.create(
        channel=channel,
        url=checked,
        events=list(events),
        description=description,
        format=format,
        secret_encrypted=encrypt(secret),
    )
    webhook.refresh_from_db()
    audit.record(webhook, audit.Action.CREATE, after=audit.fields_of(webhook))
    return webhook, secret


@transaction.atomic
def webhook_update(
    *,
    channel_id: UUID,
    webhook_id: UUID,
    url: str,
    events: Sequence[str],
    description: str = "",
    format: str = WebhookFormat.STANDARD,
    enabled: bool = True,
) -> Webhook:
    """Replaces what the owner chose. Messages that wait are sent to the new address. Enabling it
    ends a disabling by the service, and a webhook that is not enabled gets no messages. Safe to
    repeat. Raises NotFound, Invalid."""
    webhook = webhook_locked(channel_id, webhook_id)
    _check_events(format, events)
    before, was_enabled = audit.fields_of(webhook), webhook.is_enabled
    values: dict[str, Any] = {
        "url": _checked(url) if url != webhook.url else url,
        "events": list(events),
        "description": description,
        "format": format,
        "is_enabled": enabled,
        "held_until": None,
    }
    is_kept = enabled and was_enabled
    if not is_kept:
        values |= {"disabled_code": "", "failing_since": None}
    _change(webhook, values)
    if not is_kept:  # also what was made at the moment when it was disabled
        waiting_fail(webhook.pk)
    elif webhook.is_chat:
        waiting_fail(webhook.pk, ~_FOR_CHATS, _NOT_FOR_CHATS)
    audit.record(webhook, audit.Action.UPDATE, before, audit.fields_of(webhook))
    return webhook


@transaction.atomic
def webhook_delete(*, channel_id: UUID, webhook_id: UUID) -> None:
    """Deletes the webhook. Its messages are not sent. Raises NotFound."""
    webhook = webhook_locked(channel_id, webhook_id)
    audit.record(webhook, audit.Action.DELETE, audit.fields_of(webhook))
    Webhook.objects.filter(pk=webhook.pk).delete()


@transaction.atomic
def webhook_rotate_secret(*, channel_id: UUID, webhook_id: UUID) -> tuple[Webhook, str]:
    """Replaces the secret. Returns the webhook with the new one. The old one signs as well for
    OLD_SECRET_FOR. Raises NotFound."""
    webhook = webhook_locked(channel_id, webhook_id)
    secret = _new_secret()
    _change(
        webhook,
        {
            "secret_encrypted": encrypt(secret),
            "old_secret_encrypted": webhook.secret_encrypted,
            "old_secret_until": sql.now() + OLD_SECRET_FOR,
        },
    )
    audit.record(webhook, audit.Action.UPDATE, note="The webhook's secret was rotated.")
    return webhook, secret


@transaction.atomic
def webhook_test(*, channel_id: UUID, webhook_id: UUID) -> WebhookMessage:
    """Sends the message `webhook.test` to this webhook alone, at once even if its calls fail.
    Raises NotFound, WebhookDisabled."""
    webhook = webhook_locked(channel_id, webhook_id)
    if not webhook.is_enabled:
        raise WebhookDisabled
    _change(webhook, {"held_until": None})
    body = encoded(EventKind.TEST, channel_id, {"webhook_id": str(webhook_id)}, at=sql.now())
    message = WebhookMessage.objects.create(channel_id=channel_id, type=EventKind.TEST, body=body)
    WebhookAttempt.objects.create(message=message, webhook=webhook)
    return message


@transaction.atomic
def webhook_replay(
    *,
    channel_id: UUID,
    webhook_id: UUID,
    since: datetime,
    until: datetime | None = None,
    state: str | None = None,
) -> int:
    """Resends the webhook's messages made at or after `since` and before `until` in the given
    state, oldest first, at most MOST_REPLAYED. By default those that failed, and those that wait
    for another attempt. Returns how many. Skips messages that are being called. Raises NotFound,
    WebhookDisabled."""
    webhook = webhook_locked(channel_id, webhook_id)
    if not webhook.is_enabled:
        raise WebhookDisabled
    _change(webhook, {"held_until": None})
    wanted = Q(state=WebhookState(state or WebhookState.FAILED))
    if state != WebhookState.DELIVERED:
        is_called = Q(lease_until__gte=Now())
        wanted |= Q(~is_called, state=WebhookState.WAITING, attempts__gt=0)
    found = attempts_of(webhook_id).filter(
        wanted,
        message_id__gte=_first_id(since),
        message__created_at__gte=since,
    )
    if webhook.is_chat:
        found = found.filter(_FOR_CHATS)
    if until is not None:
        found = found.filter(message__created_at__lt=until)
    ids = list(found.order_by("message_id").values_list("message_id", flat=True)[:MOST_REPLAYED])
    replayed = attempts_of(webhook_id).filter(wanted, message_id__in=ids)
    count = replayed.update(
        state=WebhookState.WAITING, attempts=0, due_at=Now(), lease_until=None, finished_at=None
    )
    note = f"Messages of the webhook were sent again: {count}."
    audit.record(webhook, audit.Action.UPDATE, note=note)
    return count


def attempts_of(webhook_id: UUID) -> QuerySet[WebhookAttempt]:
    return WebhookAttempt.objects.filter(webhook_id=webhook_id)


def webhook_messages(
    *, channel_id: UUID, webhook_id: UUID, limit: int, offset: int, state: str | None = None
) -> list[WebhookAttempt]:
    """The webhook's messages, newest first, without their bodies. Raises NotFound."""
    webhook_get(channel_id=channel_id, webhook_id=webhook_id)
    own = attempts_of(webhook_id).select_related("message").defer("message__body")
    if state is not None:
        own = own.filter(state=state)
    return list(own.order_by("-message_id")[offset : offset + limit])


def webhook_message(*, webhook_id: UUID, message_id: UUID) -> WebhookAttempt:
    """One message of the webhook, with its body. Raises NotFound."""
    own = attempts_of(webhook_id).filter(message_id=message_id).select_related("message").first()
    if own is None:
        raise NotFound("The webhook has no such message.")
    return own


def waiting_count(webhook_id: UUID) -> int:
    return attempts_of(webhook_id).filter(state=WebhookState.WAITING).count()


def webhook_disable(webhook_id: UUID, code: str) -> bool:
    """Disables the webhook for the service's own reason. Returns whether it was enabled. Call it in
    the transaction that records the reason, which holds the webhook's lock."""
    own = Webhook.objects.filter(pk=webhook_id, is_enabled=True)
    if not own.update(is_enabled=False, disabled_code=code):
        return False
    waiting_fail(webhook_id)
    return True


def waiting_fail(webhook_id: UUID, which: Q | None = None, why: str = _NOT_SENT) -> None:
    """Ends the messages that wait for the webhook, visibly. A message that was called for keeps the
    last answer."""
    answer = Case(When(answer="", then=Value(why)), default="answer")
    attempts_of(webhook_id).filter(which or Q(), state=WebhookState.WAITING).update(
        state=WebhookState.FAILED, answer=answer, finished_at=Now(), lease_until=None
    )


def person_remove(channel_id: UUID, external_id: str) -> int:
    """Removes the person's id from messages that a webhook has not got, which may be sent later, or
    never, if it was deleted. The facts stay. Returns how many messages."""
    named = f'"external_id":{json.dumps(external_id, ensure_ascii=False)}'
    parameters = {"channel": channel_id, "named": named, "unnamed": '"external_id":null'}
    return sql.execute(_REMOVE_PERSON, parameters)


def messages_purge(limit: int) -> int:
    """Deletes at most `limit` messages that are older than KEPT_FOR, with what became of them.
    Also facts of that age, which no worker has collected. Returns how many rows."""
    before = sql.now() - KEPT_FOR
    parameters = {"before": uuid7_at(before), "at": before, "limit": limit}
    return int(sql.rows(_PURGE, parameters)[0][0])


def _first_id(moment: datetime) -> UUID:
    """An id before those of all messages since then, which processes with other clocks make."""
    return uuid7_at(max(moment, _EPOCH + _CLOCKS_DIFFER) - _CLOCKS_DIFFER)


def webhook_locked(channel_id: UUID, webhook_id: UUID) -> Webhook:
    """Locks the webhook for an update and returns it. Raises NotFound."""
    own = Webhook.objects.select_for_update(no_key=True)
    found = own.filter(channel_id=channel_id, pk=webhook_id).first()
    if found is None:
        raise NotFound(gettext("The channel has no such webhook."))
    return found


def _change(webhook: Webhook, values: dict[str, Any]) -> None:
    for name, value in values.items():
        setattr(webhook, name, value)
    webhook.save(update_fields=list(values))


def _checked(url: str) -> str:
    """The address in its canonical form. Raises Invalid."""
    try:
        endpoint = check_endpoint(
            url, trusted_origins=settings.WEBHOOK_TRUSTED_ORIGINS, allowed_hosts=()
        )
    except EndpointNotAllowed as error:
        detail = error.reason.replace("The endpoint", "The address")
        raise Invalid([FieldError("url", "endpoint_not_allowed", detail)]) from error
    return endpoint.url


def _check_events(format_: str, events: Sequence[str]) -> None:
    """Raises Invalid. A chat gets texts for people, which only alerts have."""
    if format_ != WebhookFormat.STANDARD and set(events) != {EventKind.ALERT}:
        detail = gettext("A chat gets only %(event)s. Choose it alone, or another format.") % {
            "event": EventKind.ALERT.value
        }
        raise Invalid([FieldError("events", "not_a_choice", detail)])


def _new_secret() -> str:
    return _SECRET_PREFIX + base64.b64encode(secrets.token_bytes(_SECRET_BYTES)).decode()


# Raw, because the ORM cannot replace a part of bytes. The bytes are JSON without spaces, in which
# quotes of texts are escaped, so only a whole name and value can be equal. bytea has no replace().
_REMOVE_PERSON: Final = """
WITH undelivered AS MATERIALIZED (
  SELECT message.id FROM channels_app_webhookmessage message
  WHERE message.channel_id = %(channel)s AND EXISTS (
    SELECT FROM channels_app_webhookattempt attempt
    WHERE attempt.message_id = message.id AND attempt.state <> 'delivered')
)
UPDATE channels_app_webhookmessage message
SET body = convert_to(replace(convert_from(body, 'UTF8'), %(named)s, %(unnamed)s), 'UTF8')
FROM undelivered
WHERE message.id = undelivered.id AND position(convert_to(%(named)s, 'UTF8') IN body) > 0
"""

# Raw, because a DELETE of the ORM has no limit, and deletes from one table at a time. Ids of
# messages sort by time.
_PURGE: Final = """
WITH old AS (
  SELECT id FROM channels_app_webhookmessage WHERE id < %(before)s ORDER BY id LIMIT %(limit)s
  FOR UPDATE SKIP LOCKED
), attempts AS (
  DELETE FROM channels_app_webhookattempt WHERE message_id IN (SELECT id FROM old)
), messages AS (
  DELETE FROM channels_app_webhookmessage WHERE id IN (SELECT id FROM old) RETURNING 1
), facts AS (
  DELETE FROM channels_app_feed WHERE id IN (
    SELECT id FROM (SELECT id, at FROM channels_app_feed ORDER BY id LIMIT %(limit)s) AS oldest
    WHERE at < %(at)s)
  RETURNING 1
)
SELECT (SELECT count(*) FROM messages) + (SELECT count(*) FROM facts)
"""
