"""Accepts, tests, pauses, resumes, decides, stops and cancels notifications."""

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from functools import partial
from typing import Any, Final
from uuid import UUID

import structlog
from django.db import transaction
from django.db.models.functions import Now
from django.utils.translation import gettext

from channels_app import audit
from channels_app.feeds import EventKind, Fact, feed_add
from channels_app.models import Channel
from channels_app.selectors import KEPT_CHANNEL_PART, ChannelDeleted
from notifications_app import selectors
from notifications_app.content.values import Content, SendRequest
from notifications_app.errors import (
    AlreadyDecided,
    NotCancellable,
    NoTest,
    NotRunning,
    SegmentInUse,
)
from notifications_app.images.services import images_keep
from notifications_app.models import Notification, Target
from notifications_app.pipeline import deciding, halting
from notifications_app.querysets import NotificationQuerySet
from notifications_app.sends.bounds import check_pending, check_volume
from notifications_app.sends.checks import Due, caps_of, send_check, with_defaults
from notifications_app.sends.corrections import check_order
from notifications_app.states import NotificationStatus
from notifications_app.tasks import wake_planner
from pushsvc.common import correlation, metrics
from pushsvc.common.errors import FieldError, Invalid
from pushsvc.common.ids import uuid7
from pushsvc.common.platforms import Platform
from pushsvc.common.store import sql
from subscriptions_app.devices.selectors import subscription_active
from subscriptions_app.segments.selectors import segment_locked

logger = structlog.stdlib.get_logger(__name__)

_WAS_PENDING: Final = {"status": NotificationStatus.PENDING}
_IS_CANCELLED: Final = {"status": NotificationStatus.CANCELLED}


def notification_accept(
    *,
    channel: Channel,
    request: SendRequest,
    sent_by: str = "",
    once: Mapping[str, Any] | None = None,
) -> Notification:
    """Stores the notification, which will be sent, and returns it. `sent_by`: if it is not the
    actor of the current request. `once`: of a schedule that contacts nobody twice in some days, as
    in Notification.

    Raises what `with_defaults`, `check_order`, `send_check`, `check_pending` and `check_volume`
    raise, and ChannelDeleted.
    """
    # A plain send only inserts one row, which needs no transaction.
    is_alone = request.segment_id is None and request.replaces is None and not request.targets
    with nullcontext() if is_alone and not audit.is_by_staff() else transaction.atomic():
        request = with_defaults(channel, request)
        check_order(request)
        due = send_check(channel=channel, request=request)
        check_pending(channel.pk, request)
        check_volume(channel.pk, request)
        own = {"sent_by": sent_by or audit.actor_name(), "once": once}
        notification = _insert(channel, request, due, **own)
        if request.targets:
            targets_store(notification, request)
        if audit.is_by_staff():
            _record_composed(notification)
        transaction.on_commit(partial(metrics.ACCEPTED.add, 1))
        transaction.on_commit(partial(_log_accepted, notification))
        if notification.scheduled_at <= notification.created_at:
            transaction.on_commit(wake_planner)
    return notification


def notification_test(*, channel: Channel, content: Content, subscription_id: UUID) -> Notification:
    """Sends the content immediately to only this subscription. Returns the notification.

    It goes through the same pipeline and counts like any other notification. Raises NotFound if
    the channel has no such active subscription, and what `notification_accept` raises.
    """
    device = subscription_active(channel_id=channel.id, subscription_id=subscription_id)
    test = SendRequest(
        content=content,
        target_platforms=(Platform(device.platform),),
        only_subscription_id=device.id,
    )
    return notification_accept(channel=channel, request=test)


def notification_cancel(*, channel_id: UUID, notification_id: UUID) -> Notification:
    """Cancels a pending notification, so that it is not sent, and returns it. Safe to repeat.

    Raises NotFound, NotCancellable.
    """
    with transaction.atomic():
        own = Notification.objects.filter(id=notification_id, channel_id=channel_id)
        pending = own.filter(status=NotificationStatus.PENDING)
        cancelled = pending.become(NotificationStatus.CANCELLED, finished_at=Now())
        notification = selectors.notification_get(
            channel_id=channel_id, notification_id=notification_id
        )
        if cancelled:
            feed_add(channel_id, [Fact(EventKind.CANCELLED, notification_id)])
            audit.record(notification, audit.Action.UPDATE, _WAS_PENDING, _IS_CANCELLED)
    if notification.status != NotificationStatus.CANCELLED:
        raise NotCancellable(notification.id, notification.status)
    return notification


def notification_pause(*, channel_id: UUID, notification_id: UUID) -> Notification:
    """Pauses a notification that is pending or processing, and returns it. Safe to repeat.

    A pending notification does not start. For a notification that is processing, no further
    recipient is planned, and no call begins later than ten seconds after this returns. Raises
    NotFound, NotRunning.
    """
    notification = _changed(halting.pause, channel_id, notification_id)
    if not notification.is_paused:
        state = "stopped" if notification.is_stopped else notification.status
        raise NotRunning(notification.id, state)
    return notification


def notification_resume(
    *, channel_id: UUID, notification_id: UUID, seen: str | None = None
) -> Notification:
    """Resumes a notification if it is paused, and returns it. Safe to repeat. Raises NotFound,
    Outdated if `seen`, a `pause_version`, is not the notification's, and ChannelDeleted."""
    return _changed(partial(halting.resume, seen=seen), channel_id, notification_id)


def notification_stop(*, channel_id: UUID, notification_id: UUID) -> Notification:
    """Stops a notification that is processing, for good, and returns it. Safe to repeat.

    No call begins later than ten seconds after this returns. Waiting recipients bounce as `stopped`
    within seconds, then the notification ends. Raises NotFound, NotRunning.
    """
    notification = _changed(halting.stop, channel_id, notification_id)
    if not notification.is_stopped:
        is_pending = notification.status == NotificationStatus.PENDING
        remedy = gettext("Cancel it instead.") if is_pending else ""
        raise NotRunning(notification.id, notification.status, remedy)
    return notification


def notification_decide(*, channel_id: UUID, notification_id: UUID, name: str) -> Notification:
    """Decides the test of the notification: those who were not in it get the variant with this
    name. Returns the notification. Safe to repeat.

    Raises NotFound, NoTest, Invalid for a name that no variant has, AlreadyDecided for another one
    than the test found, and NotRunning if it is not being sent.
    """
    before = selectors.notification_get(channel_id=channel_id, notification_id=notification_id)
    if before.test is None:
        raise NoTest(before.id)
    names = [each["name"] for each in before.content.variants]
    if name not in names:
        detail = gettext("Must be one of: %(choices)s.") % {"choices": ", ".join(names)}
        raise Invalid([FieldError("variant", "not_a_choice", detail)])
    number = names.index(name)
    after = _changed(partial(deciding.choose, number=number), channel_id, notification_id)
    if after.winner is None:
        remedy = gettext("Its test has not begun.") if after.started_at is None else ""
        raise NotRunning(after.id, "stopped" if after.is_stopped else after.status, remedy)
    if after.winner != number:
        raise AlreadyDecided(after.id, names[after.winner])
    return after


def segment_delete(*, channel_id: UUID, segment_id: UUID) -> None:
    """Deletes the segment. Raises NotFound, and SegmentInUse while an unfinished notification, an
    enabled schedule, automation or newsfeed uses it.

    A concurrent send that names the segment is either seen here or refused.
    """
    with transaction.atomic():
        segment = segment_locked(channel_id=channel_id, segment_id=segment_id)
        user = selectors.segment_user(segment_id)
        if user is not None:
            raise SegmentInUse(user.id, user.status)
        schedule_id = selectors.segment_schedule(channel_id, segment_id)
        if schedule_id is not None:
            raise SegmentInUse(schedule_id, "scheduled")
        automation_id = selectors.segment_automation(channel_id, segment_id)
        if automation_id is not None:
            raise SegmentInUse(automation_id, "automated")
        newsfeed_id = selectors.segment_newsfeed(channel_id, segment_id)
        if newsfeed_id is not None:
            raise SegmentInUse(newsfeed_id, "newsfeed")
        audit.record(segment, audit.Action.DELETE, audit.fields_of(segment))
        segment.delete()


def _changed(
    change: Callable[[NotificationQuerySet[Notification]], object],
    channel_id: UUID,
    notification_id: UUID,
) -> Notification:
    change(Notification.objects.filter(id=notification_id, channel_id=channel_id))
    return selectors.notification_get(channel_id=channel_id, notification_id=notification_id)


def targets_store(notification: Notification, request: SendRequest) -> None:
    Target.objects.store(
        notification.id, channel_id=notification.channel_id, targets=request.targets
    )


def _insert(channel: Channel, request: SendRequest, due: Due, **own: Any) -> Notification:
    """Inserts the notification. `created_at`, and `scheduled_at` of an immediate send, are the
    database's time."""
    values = Notification.values_of(request.content)
    given = {
        "id": uuid7(),
        "channel_id": channel.pk,
        **values,
        "target_platforms": request.target_platforms,
        "segment_id": request.segment_id,
        "category": request.category,
        "rule": request.rule,
        "root_id": request.root_id,
        "has_targets": bool(request.targets),
        "only_subscription_id": request.only_subscription_id,
        "timing": due.timing.stored() if due.timing else None,
        "expires_at": request.expires_at,
        "rate_per_minute": request.rate_per_minute,
        "caps": caps_of(channel, request),
        "test": request.test,
        "name": request.name,
        "labels": list(request.labels) or None,
        "template_id": request.template_id,
        **own,
        **correlation.current()._asdict(),
    }
    if due.at:
        given["scheduled_at"] = due.at
    notification = sql.insert(Notification, given, if_any=KEPT_CHANNEL_PART)
    if notification is None:
        raise ChannelDeleted
    images_keep(channel.pk, values, due.at)
    return notification


def _log_accepted(notification: Notification) -> None:
    logger.info(
        "notification.accepted",
        notification=notification.pk,
        channel=notification.channel_id,
        **notification.correlation.fields,
    )


def _record_composed(notification: Notification) -> None:
    note = f"A test for {notification.only_subscription_id}." if notification.is_test else ""
    after = audit.fields_of(notification)
    audit.record(notification, audit.Action.CREATE, after=after, note=note)
