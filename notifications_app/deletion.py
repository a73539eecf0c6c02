"""Deletes channels: an owner asks for it, can undo it for a day, and then everything is deleted.

A channel whose `deletion_asked_at` is set accepts nothing: inserting a notification reads the
column under a lock (KEPT_CHANNEL_PART). Its notifications are paused. After GRACE, housekeeping
deletes the rows of every table in small steps, each in its own transaction, and the channel's row
last. So a step may be repeated, and housekeeping may die at any point.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, partial
from graphlib import TopologicalSorter
from typing import Final
from uuid import UUID

import structlog
from django.apps import apps
from django.db import IntegrityError
from django.db.models import Model
from django.db.models.functions import Now

from channels_app import audit
from channels_app.counters import counters_delete
from channels_app.models import (
    GRACE,
    ApiKey,
    Channel,
    ChannelCounter,
    Feed,
    IdentityKey,
    ProviderCredential,
    Webhook,
    WebhookAttempt,
    WebhookMessage,
)
from channels_app.selectors import ChannelNotFound, recent_forget
from notifications_app.images.services import images_delete
from notifications_app.models import Contact, Image, Notification
from notifications_app.pipeline import halting, wakeup
from notifications_app.states import NotificationStatus
from pushsvc.common.errors import Conflict
from pushsvc.common.store import sql
from pushsvc.common.store.redis_client import redis_client
from pushsvc.common.texts import later
from subscriptions_app.models import LastClick, Person, Subscription

logger = structlog.stdlib.get_logger(__name__)

_STEP: Final = 2_000  # rows
_NOTIFICATIONS: Final = 100  # whose rows are deleted together
_RUN_SECONDS: Final = 20.0
_SCANNED: Final = 1_000  # keys of Redis in a round trip


class DeletionBegun(Conflict):
    """GRACE has passed, so rows may be deleted already."""

    detail = later("It is too late: the day in which this could be undone has passed.")


def deletion_ask(*, channel_id: UUID) -> Channel:
    """From its commit on, the channel accepts no notification; its notifications are then paused
    one by one. The channel is deleted GRACE later. Safe to repeat. Raises ChannelNotFound."""
    with sql.brief_transaction():
        channel = _locked(channel_id)
        if channel.deletion_asked_at is None:
            _set(channel, Now(), note="The channel will be deleted.")
    recent_forget()
    with sql.brief_transaction():
        # Waits for sends that were inserted before, to find them. Not above, because a lock that
        # excludes sends might never be granted while there are some.
        _locked(channel_id, excludes_inserts=True)
    _halt(channel_id)
    return channel


def deletion_undo(*, channel_id: UUID) -> Channel:
    """Keeps the channel. Notifications that are not due yet go out at their time. Those that became
    due meanwhile, or were being sent, stay paused. Safe to repeat. Raises ChannelNotFound,
    DeletionBegun."""
    with sql.brief_transaction():
        channel = _locked(channel_id)
        asked_at = channel.deletion_asked_at
        if asked_at is not None:
            if asked_at + GRACE <= sql.now():
                raise DeletionBegun
            coming = Notification.objects.filter(
                channel=channel,
                status=NotificationStatus.PENDING,
                paused_at=asked_at,  # and not by staff
                scheduled_at__gt=Now(),
            )
            coming.filter(pk__in=coming.lock_all()).update(paused_at=None)
            _set(channel, None, note="The channel will not be deleted.")
    recent_forget()
    wakeup.wake("plan")
    return channel


def halt_deleted() -> None:
    """Pauses what a process that died in `deletion_ask` left unpaused."""
    asked = Channel.objects.filter(deletion_asked_at__isnull=False)
    for channel_id in asked.values_list("pk", flat=True):
        _halt(channel_id)


def purge_deleted(*, seconds: float = _RUN_SECONDS) -> None:
    """Deletes rows of channels whose grace has passed, until nothing is left or the time is
    over."""
    until = time.monotonic() + seconds
    due = Channel.objects.filter(deletion_asked_at__lte=Now() - GRACE)
    for channel_id in due.order_by("deletion_asked_at").values_list("pk", flat=True):
        _purge(channel_id, until)
        if time.monotonic() >= until:
            break


def _set(channel: Channel, value: Now | None, *, note: str) -> None:
    before = audit.fields_of(channel)
    channel.deletion_asked_at = value  # the database's time
    channel.save(update_fields=["deletion_asked_at"])
    channel.refresh_from_db(fields=["deletion_asked_at"])
    audit.record(channel, audit.Action.UPDATE, before, audit.fields_of(channel), note=note)


def _locked(channel_id: UUID, *, excludes_inserts: bool = False) -> Channel:
    rows = Channel.objects.select_for_update(no_key=not excludes_inserts, of=("self",))
    channel = rows.filter(pk=channel_id).first()
    if channel is None:
        raise ChannelNotFound
    return channel


def _halt(channel_id: UUID) -> None:
    """Pauses the channel's notifications. First the pending ones, so that those that start
    meanwhile are found afterwards."""
    sql.execute(_PAUSE_PENDING, {"channel": channel_id, "pending": NotificationStatus.PENDING})
    running = Notification.objects.filter(
        channel_id=channel_id,
        channel__deletion_asked_at__isnull=False,
        status=NotificationStatus.PROCESSING,
        paused_at__isnull=True,
        stopped_at__isnull=True,
    )
    for pk in running.order_by("pk").values_list("pk", flat=True):
        halting.pause(Notification.objects.filter(pk=pk))


def _purge(channel_id: UUID, until: float) -> None:
    deleted: Counter[str] = Counter()
    steps = _steps()
    while steps and time.monotonic() < until:
        name, step = steps[0]
        with sql.brief_transaction():
            if not _is_due(channel_id):
                break  # another process deletes it, or it is gone
            count = step(channel_id)
        deleted[name] += count
        if not count:
            steps = steps[1:]
    is_gone = not steps and _finish(channel_id)
    logger.info("channel.purged", channel=channel_id, is_gone=is_gone, **+deleted)


def _is_due(channel_id: UUID) -> bool:
    """Locks the channel, unless another transaction has it, such as one that undoes the
    deletion."""
    own = Channel.objects.select_for_update(no_key=True, skip_locked=True)
    return own.filter(pk=channel_id, deletion_asked_at__lte=Now() - GRACE).first() is not None


def _finish(channel_id: UUID) -> bool:
    """Deletes the channel's row, unless rows were inserted since the steps: those that transactions
    of then committed. Returns whether it did; otherwise the next run deletes both."""
    _forget_keys(channel_id)
    try:
        with sql.brief_transaction():
            channel = _locked(channel_id, excludes_inserts=True)
            if any(step(channel_id) for _, step in _steps()):
                return False
            note = "The channel was deleted with everything that it had."
            audit.record(channel, audit.Action.DELETE, audit.fields_of(channel), note=note)
            sql.execute(_DELETE_CHANNEL, {"channel": channel_id})
    except (IntegrityError, ChannelNotFound):  # the latter: another process has deleted it
        return False
    recent_forget()
    return True


Step = tuple[str, Callable[[UUID], int]]


def _steps() -> list[Step]:
    """What deletes rows, in order. Each returns how many; none are left once it returns 0."""
    # Without a webhook, no fact and no message is written.
    first: list[type[Model]] = [ApiKey, ProviderCredential, IdentityKey, Webhook, Feed]
    others = {*first, WebhookMessage, Image, ChannelCounter}
    rest = [each for each in _of_channel() if each not in others]
    return [
        *map(_deletion, first),
        ("webhookmessage", _delete_messages),
        ("notification", _delete_notifications),
        ("image", partial(images_delete, limit=_STEP)),  # also from the bucket
        *map(_deletion, rest),
        ("channelcounter", counters_delete),
    ]


@cache
def _of_channel() -> list[type[Model]]:
    """The models with a channel, or with a row that has one, those that refer to others first.
    Without those whose rows are deleted with notifications, messages, people and devices."""
    others: set[type[Model]] = {Notification, WebhookAttempt, Contact, LastClick}
    others.update(_with_column("notification_id", null=False))
    models = [each for each in apps.get_models() if each not in others and _condition(each)]
    return _referring_first(models)


def _condition(model: type[Model]) -> str:
    """SQL that is true for the channel's rows of the model; "" if it has none."""
    fields = model._meta.concrete_fields
    if any(each.column == "channel_id" for each in fields):
        return "channel_id = %(channel)s"
    for each in fields:
        owner = each.related_model
        if isinstance(owner, type) and any(
            of_owner.column == "channel_id" for of_owner in owner._meta.concrete_fields
        ):
            own = f"SELECT id FROM {owner._meta.db_table} WHERE channel_id = %(channel)s"  # noqa: S608
            return f"{each.column} IN ({own})"
    return ""


@cache
def _of_notification() -> list[type[Model]]:
    return _referring_first(_with_column("notification_id"))


def _with_column(name: str, *, null: bool | None = None) -> list[type[Model]]:
    return [
        model
        for model in apps.get_models()
        for each in model._meta.concrete_fields
        if each.column == name and null in {None, each.null}
    ]


def _referring_first(models: Sequence[type[Model]]) -> list[type[Model]]:
    before = {each: _referring_to(each, models) for each in models}
    return list(TopologicalSorter(before).static_order())


def _referring_to(model: type[Model], models: Iterable[type[Model]]) -> Iterator[type[Model]]:
    for other in models:
        if other is not model and any(
            each.related_model is model for each in other._meta.concrete_fields
        ):
            yield other


def _deletion(model: type[Model]) -> Step:
    template = _DELETE_CONTACTED if model in {Person, Subscription} else _DELETE
    statement = template.format(table=model._meta.db_table, condition=_condition(model))

    def delete(channel_id: UUID) -> int:
        return sql.execute(statement, {"channel": channel_id, "limit": _STEP})

    return model._meta.model_name or "", delete


def _delete_messages(channel_id: UUID) -> int:
    """Deletes messages of webhooks with their attempts, which have no channel."""
    return sql.execute(_DELETE_MESSAGES, {"channel": channel_id, "limit": _STEP})


def _delete_notifications(channel_id: UUID) -> int:
    """Deletes rows of the channel's first notifications, or the notifications when these have none
    left."""
    own = Notification.objects.filter(channel_id=channel_id).order_by("-pk")
    ids = list(own.values_list("pk", flat=True)[:_NOTIFICATIONS])
    for model in _of_notification():
        statement = _DELETE.format(
            table=model._meta.db_table, condition="notification_id = ANY(%(ids)s)"
        )
        if deleted := sql.execute(statement, {"ids": ids, "limit": _STEP}):
            return deleted
    return sql.execute(_DELETE_NOTIFICATIONS, {"ids": ids})


def _forget_keys(channel_id: UUID) -> None:
    """Deletes what Redis has about the channel: its limits, breakers and learned limits. Their
    names, or those of members of sorted sets, contain its id. Raises RedisError."""
    client, part = redis_client(), f"*{channel_id}*"
    for key in client.scan_iter(match=part, count=_SCANNED):
        client.unlink(key)
    for key in client.scan_iter(match="pushsvc:*", count=_SCANNED, _type="zset"):
        for member, _ in client.zscan_iter(key, match=part, count=_SCANNED):
            client.zrem(key, member)


# In SQL, because a DELETE of the ORM has no limit, and Django would look for rows that refer to the
# deleted ones.
_DELETE: Final = """
DELETE FROM {table} WHERE ctid = ANY(ARRAY(
  SELECT ctid FROM {table} WHERE {condition} LIMIT %(limit)s))
"""
# With their contacts, which have no index by channel, because it would cost each planned recipient.
# Contacts of people and devices that were deleted before have no other data; they expire.
_DELETE_CONTACTED: Final = """
WITH own AS (
  SELECT id FROM {table} WHERE {condition} LIMIT %(limit)s
), contacts AS (
  DELETE FROM notifications_app_contact WHERE key IN (SELECT id FROM own)
)
DELETE FROM {table} WHERE id IN (SELECT id FROM own)
"""
_DELETE_NOTIFICATIONS: Final = """
DELETE FROM notifications_app_notification WHERE id = ANY(%(ids)s)
"""
_DELETE_MESSAGES: Final = """
WITH own AS (
  SELECT id FROM channels_app_webhookmessage WHERE channel_id = %(channel)s LIMIT %(limit)s
), attempts AS (
  DELETE FROM channels_app_webhookattempt WHERE message_id IN (SELECT id FROM own)
)
DELETE FROM channels_app_webhookmessage WHERE id IN (SELECT id FROM own)
"""
_DELETE_CHANNEL: Final = "DELETE FROM channels_app_channel WHERE id = %(channel)s"
# In SQL, because the ORM has no FOR SHARE: the channel is locked first, so that its deletion is not
# undone meanwhile.
_PAUSE_PENDING: Final = """
WITH channel AS MATERIALIZED (
  SELECT id, deletion_asked_at FROM channels_app_channel
  WHERE id = %(channel)s AND deletion_asked_at IS NOT NULL FOR SHARE
), own AS MATERIALIZED (
  SELECT notification.id, channel.deletion_asked_at FROM channel
  JOIN notifications_app_notification notification ON notification.channel_id = channel.id
  WHERE notification.status = %(pending)s AND notification.paused_at IS NULL
  ORDER BY notification.id FOR NO KEY UPDATE OF notification
)
UPDATE notifications_app_notification AS notification SET paused_at = own.deletion_asked_at
FROM own WHERE notification.id = own.id
"""
